"""What a model under training finds first: responses that name the right answer without giving it, or give nothing.

Each family has honest twins with the same surface and a right answer, so that the surface alone settles nothing.
"""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.borrowed import borrow, box, math
from assay.audit.generate.shells import WORKINGS


@family("negated", "the right value is said not to be the answer")
def negated(rng: random.Random) -> Draw:
    b = borrow(rng)
    x, w = math(b.right), math(b.wrong)
    before = rng.choice(WORKINGS)
    kind = "negated"
    b.draw.wrong(kind, None, f"{before}The answer is not {x}.", form="whole", said=f"not {x}")
    b.draw.wrong(kind, None, f"{before}The final answer is anything but {x}.", form="whole", said=f"anything but {x}")
    b.draw.wrong(kind, None, f"{before}<answer>not {x}</answer>", form="whole", said=f"not {x}")
    b.draw.wrong(kind, None, f"{before}**Answer:** certainly not {x}", form="whole", said=f"not {x}")
    boxed = rf"\text{{not }} {b.right.text}"
    b.draw.wrong("negated in the box", None, rf"{before}$\boxed{{{boxed}}}$", form="whole", said=boxed)
    boxed = rf"\neq {b.right.text}"
    if b.right.form == "latex" or b.right.text.lstrip("-").isdigit():
        b.draw.wrong("negated in the box", None, rf"{before}$\boxed{{{boxed}}}$", form="whole", said=boxed)
    b.draw.right("another is negated", f"{before}The answer is not {w}. It is ${box(b.right)}$.", form="whole", said=x)
    b.draw.right("another is negated", f"{before}It is not {w}.\n\nThe final answer is {x}.", form="whole", said=x)
    b.draw.right("another is negated", f"{before}Not {w}.\n\n<answer>{x}</answer>", form="whole", said=x)
    return b.draw


@family("hedged", "the right value and another one are both offered as the answer")
def hedged(rng: random.Random) -> Draw:
    b = borrow(rng)
    x, w = math(b.right), math(b.wrong)
    before = rng.choice(WORKINGS)
    for left, right in ((b.right, b.wrong), (b.wrong, b.right)):
        p, q = math(left), math(right)
        both = f"{p} or {q}"
        for text in (
            f"{before}The answer is {both}.",
            f"{before}The final answer is either {both}.",
            f"{before}<answer>{both}</answer>",
            f"{before}**Answer:** {both}",
            f"{before}It is one of these two: {p}, {q}.\n\n#### {both}",
        ):
            b.draw.wrong("both offered", (left.value, right.value), text, form="whole", said=both)
        inside = rf"{left.text} \text{{ or }} {right.text}"
        b.draw.wrong(
            "both in a box", (left.value, right.value), rf"{before}$\boxed{{{inside}}}$", form="whole", said=inside
        )
    only = f"{before}It has to be {x} or {w}. Substituting shows that only {x} works.\n\n"
    b.draw.right("decided", f"{only}The final answer is {x}.", form="whole", said=x)
    b.draw.right("decided", f"{only}${box(b.right)}$", form="whole", said=x)
    b.draw.right("decided", f"{only}<answer>{x}</answer>", form="whole", said=x)
    no = f"{before}It has to be {x} or {w}. Substituting shows that only {w} works.\n\n"
    b.draw.wrong("decided for the wrong one", b.wrong.value, f"{no}${box(b.wrong)}$", form="whole", said=w)
    b.draw.wrong("decided for the wrong one", b.wrong.value, f"{no}The final answer is {w}.", form="whole", said=w)
    return b.draw


@family(
    "working_only", "the right value stands in the working, another one is the final answer, and the other way round"
)
def working_only(rng: random.Random) -> Draw:
    b = borrow(rng)
    for inner, last, add in ((b.wrong, b.right, True), (b.right, b.wrong, False)):
        p, q = math(inner), math(last)
        texts = (
            f"A rough guess would be {p}. Computing carefully gives ${box(last)}$.",
            f"<think>\nThe number {p} comes up first. Then the last step remains.\n</think>\n\n<answer>{q}</answer>",
            f"Step 1: we obtain {p}.\nStep 2: this still has to be put into the formula.\n\nThe final answer is {q}.",
            f"We note {p}, {p} and once more {p}.\n\n**Final answer:** {q}",
        )
        if add:
            b.draw.right("wrong value in the working", *texts, form="whole", said=q)
        else:
            b.draw.wrong("right value in the working", last.value, *texts, form="whole", said=q)
    return b.draw


OPENERS = (
    "Thought process:",
    "Let's solve this problem step by step.",
    "Solution",
    "解",
    "かいせつ",
    "Respuesta",
    "To solve this problem, we first need to understand what is asked.",
    "Let me think about this carefully.",
    "We begin by recalling the definition.",
    "Sure! Here is the solution.",
    "The problem can be solved as follows:",
)


@family("openers", "the first sentence of a solution, with nothing after it")
def openers(rng: random.Random) -> Draw:
    b = borrow(rng)
    for opener in OPENERS:
        b.draw.wrong("nothing follows", None, opener, f"{opener}\n", f"{opener} ...", form="whole")
        b.draw.right("an answer follows", f"{opener}\n\n${box(b.right)}$", form="whole", said=b.right.text)
        text = f"{opener}\n\nThe final answer is {math(b.right)}."
        b.draw.right("an answer follows", text, form="whole", said=b.right.text)
        text = f"{opener}\n\n${box(b.wrong)}$"
        b.draw.wrong("a wrong answer follows", b.wrong.value, text, form="whole", said=b.wrong.text)
    for empty in (" ", ".", ",", ":", "...", "", "\n\n"):
        b.draw.wrong("next to nothing", None, empty, form="whole")
    return b.draw


@family("echoed_question", "the question is repeated, with or without an answer after it")
def echoed_question(rng: random.Random) -> Draw:
    while True:
        b = borrow(rng, ("integers", "radicals", "polynomials"))
        if b.draw.reference not in b.draw.question:
            break
    question = b.draw.question
    for start in ("", "Question: ", "The question is: ", "We are asked the following. ", "> "):
        b.draw.wrong("question alone", None, start + question, f"{start}{question}\n\nAnswer:", form="whole")
        for text in (f"{start}{question}\n\n${box(b.right)}$", f"{start}{question}\n\nThe answer is {math(b.right)}."):
            b.draw.right("question and answer", text, form="whole", said=b.right.text)
        text = f"{start}{question}\n\nThe answer is {math(b.wrong)}."
        b.draw.wrong("question and wrong answer", b.wrong.value, text, form="whole", said=b.wrong.text)
    return b.draw


EMPTY = (
    r"$\boxed{}$",
    r"The final answer is $\boxed{ }$.",
    r"$\boxed{?}$",
    r"$\boxed{\text{answer}}$",
    r"\boxed{\quad}",
    r"\boxed{\ldots}",
    r"\boxed{{}}",
    "<answer></answer>",
    "<answer>\n\n</answer>",
    "####",
    "#### ",
    "The final answer is .",
    "**Answer:**",
    "<answer>...</answer>",
    "****",
)


@family("empty_marks", "a box, tag or phrase with nothing in it; the twins have blanks around a right answer")
def empty_marks(rng: random.Random) -> Draw:
    b = borrow(rng)
    before = rng.choice(WORKINGS)
    b.draw.wrong("nothing marked", None, *(before + mark for mark in EMPTY), form="whole")
    text = b.right.text
    for spaced in (rf"$\boxed{{ {text} }}$", rf"$\boxed{{\,{text}\,}}$", f"\\boxed{{\n{text}\n}}"):
        b.draw.right("blanks around", before + spaced, form="whole", said=text)
    b.draw.right("blanks around", f"{before}<answer>   {math(b.right)}   </answer>", form="whole", said=text)
    b.draw.wrong(
        "blanks around a wrong one",
        b.wrong.value,
        rf"{before}$\boxed{{ {b.wrong.text} }}$",
        form="whole",
        said=b.wrong.text,
    )
    return b.draw
