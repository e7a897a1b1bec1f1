"""The same answers in responses of other shapes: text after the answer, corrections, other languages."""

from __future__ import annotations

import random

from assay.audit.generate.base import Answer, Draw, family
from assay.audit.generate.borrowed import borrow, box, math
from assay.audit.generate.shells import WORKINGS

AFTER = {
    "offer of help": "\n\nLet me know if you have any questions!",
    "hope": "\n\nI hope this helps. Feel free to ask for more details.",
    "estimate": "\n\nThis agrees with an estimate made beforehand.",
    "rule": "\n\n---\n*End of the solution.*",
    "numbers": "\n\nNote that we used only 2 rules of algebra, and checked 3 times.",
    "brackets": "\n\n(All steps can be reversed, so nothing is lost.)",
    "smiley": "\n :)",
}


def marked(answer: Answer, rng: random.Random) -> str:
    """Return a sentence that marks the answer beyond doubt, so that more text may follow it."""
    text = math(answer)
    return rng.choice(
        (
            f"${box(answer)}$",
            f"The final answer is ${box(answer)}$.",
            f"<answer>{text}</answer>",
            f"**Final answer:** {text}",
            f"The answer is **{text}**.",
            f"The final answer is: {text}",
            f"#### {text}",
        )
    )


@family("trailing_text", "friendly or technical text after a marked answer")
def trailing_text(rng: random.Random) -> Draw:
    b = borrow(rng)
    for kind, after in AFTER.items():
        for answer, add in ((b.right, True), (b.wrong, False)):
            text = rng.choice(WORKINGS) + marked(answer, rng) + after
            if add:
                b.draw.right(kind, text, form="whole", said=answer.text)
            else:
                b.draw.wrong(kind, answer.value, text, form="whole", said=answer.text)
    return b.draw


TURNS = (
    "Wait, I made a mistake. Let me redo this.\n\nAfter checking each step: ",
    "Hmm, that does not satisfy the condition. Correcting the sign slip above gives another result.\n\n",
    "Actually, let me verify this... The check fails, so the above is wrong. Redoing it:\n\n",
    "On reflection I have to change my answer.\n\n",
)


@family("self_correction", "an answer is given, then changed: the last one counts")
def self_correction(rng: random.Random) -> Draw:
    b = borrow(rng)
    for first, last, add in ((b.wrong, b.right, True), (b.right, b.wrong, False), (b.other, b.wrong, False)):
        texts = [
            f"So we get ${box(first)}$.\n\n{rng.choice(TURNS)}The final answer is ${box(last)}$.",
            f"The answer is {math(first)}. Wait, no. I made a mistake. The answer is {math(last)}.",
            f"<think>\nMaybe it is {math(first)}.\n</think>\n\nThe final answer is {math(last)}.",
            f"First attempt: {math(first)}\n\n{rng.choice(TURNS)}**Final answer:** {math(last)}",
            f"$${box(first)}$$\n\n{rng.choice(TURNS)}$${box(last)}$$",
        ]
        if add:
            b.draw.right("corrected", *texts, form="whole", said=last.text)
        else:
            kind = "changed to a wrong one" if first is b.right else "wrong twice"
            b.draw.wrong(kind, last.value, *texts, form="whole", said=last.text)
    return b.draw


@family("two_boxes", "an intermediate result is boxed too; the final one counts")
def two_boxes(rng: random.Random) -> Draw:
    b = borrow(rng)
    step = rng.randint(2, 99)
    openings = (
        rf"Step 1. The auxiliary value is $\boxed{{{step}}}$." + "\n\nStep 2. With it, ",
        rf"As a first result, $k = \boxed{{{step}}}$, which is not yet what is asked. " + "\n\n",
        "Part one: $\\boxed{\\text{done}}$\n\nPart two: ",
    )
    for opening in openings:
        b.draw.right("last box", f"{opening}the final answer is ${box(b.right)}$.", form="whole", said=b.right.text)
        text = f"{opening}the final answer is ${box(b.wrong)}$."
        b.draw.wrong("last box", b.wrong.value, text, form="whole", said=b.wrong.text)
    easier, asked = "An easier variant of the problem would give", "The problem as stated has the answer"
    text = f"{easier} ${box(b.right)}$. {asked} ${box(b.wrong)}$."
    b.draw.wrong("right value in the first box", b.wrong.value, text, form="whole", said=b.wrong.text)
    text = f"{easier} ${box(b.wrong)}$. {asked} ${box(b.right)}$."
    b.draw.right("wrong value in the first box", text, form="whole", said=b.right.text)
    return b.draw


PHRASES = {
    "chinese": ("因此，答案是{}。", "答案：{}", "最终答案是 {}。", "综上所述，答案为{}。", "故答案为：{}"),
    "spanish": (
        "La respuesta es {}.",
        "Por lo tanto, la respuesta final es {}.",
        "Respuesta: {}",
        "Respuesta final: {}",
    ),
    "french": ("La réponse est {}.", "La réponse finale est {}.", "Réponse : {}", "Donc, la réponse finale est : {}"),
}
BEFORE = {
    "chinese": ("我们一步一步来解决这个问题。\n\n", "先列出已知条件，然后计算。\n\n", ""),
    "spanish": ("Resolvamos el problema paso a paso.\n\n", "Primero anotamos los datos.\n\n", ""),
    "french": ("Résolvons le problème étape par étape.\n\n", "Commençons par les données.\n\n", ""),
}


@family("answer_phrases", "the sentence that states the answer is in Chinese, Spanish or French, with or without a box")
def answer_phrases(rng: random.Random) -> Draw:
    b = borrow(rng)
    for language, phrases in PHRASES.items():
        for phrase in phrases:
            for answer, add in ((b.right, True), (b.wrong, False)):
                for text in (math(answer), f"${box(answer)}$"):
                    whole = rng.choice(BEFORE[language]) + phrase.format(text)
                    if add:
                        b.draw.right(language, whole, form="whole", said=answer.text)
                    else:
                        b.draw.wrong(language, answer.value, whole, form="whole", said=answer.text)
    return b.draw
