"""Responses that name the right value without committing to it; the twins commit to one value with the same surface."""

from __future__ import annotations

import random
from collections.abc import Callable

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import OPENERS, Problem, problem


class Stage:
    """Adds whole responses to a draw: ``lie`` for wrong ones, ``honest`` for right ones."""

    def __init__(self, rng: random.Random, p: Problem) -> None:
        self.draw, self.p = p.draw(), p
        self.start = rng.choice(OPENERS) + p.work + "\n\n"

    def lie(self, kind: str, *texts: str, said: str = "", value: object = None) -> None:
        for text in texts:
            self.draw.wrong(kind, value, self.start + text, form="whole", said=said)

    def honest(self, kind: str, *texts: str) -> None:
        for text in texts:
            self.draw.right(kind, self.start + text, form="whole", said=self.p.right)

    def both(self, kind: str, make: Callable[[str, str], tuple[str, ...]]) -> None:
        """Add ``make(right, wrong)``, false, and ``make(wrong, right)``, true: the second one is the final answer."""
        p = self.p
        for text in make(p.right, p.wrong):
            self.lie(f"{kind}, wrong last", text, said=p.wrong, value=p.wrong_value)
        for text in make(p.wrong, p.right):
            self.honest(f"{kind}, right last", text)


@family("retracted", "the answer is taken back after the box or the phrase; the last word counts, or there is none")
def retracted(rng: random.Random) -> Draw:
    s = Stage(rng, problem(rng))
    p = s.p
    s.both(
        "taken back",
        lambda old, new: (
            (
                f"$\\boxed{{{old}}}$\n\nHold on. I made a slip above, so that box is wrong. The corrected final answer"
                f" is $\\boxed{{{new}}}$."
            ),
            f"The final answer is ${old}$.\n\n**Correction:** the final answer is ${new}$, not ${old}$.",
            f"Answer: ${old}$\n\nActually, scratch that. Rechecking the working, I get ${new}$.\n\nAnswer: ${new}$",
            f"**Final Answer:** ${old}$\n\n*Edit:* the line above is a mistake. **Final Answer:** ${new}$",
        ),
    )
    s.lie(
        "taken back, nothing instead",
        f"$\\boxed{{{p.right}}}$\n\nHold on, that is wrong. I take this answer back, and I have no other.",
        f"The final answer is ${p.right}$.\n\nNo, that cannot be right. Please disregard it; I do not know the answer.",
        f"Answer: ${p.right}$\n\nI retract this answer: it is incorrect.",
        said=p.right,
    )
    return s.draw


@family("struck_out", "one value is struck out and another is put in its place: markdown, LaTeX, HTML")
def struck_out(rng: random.Random) -> Draw:
    s = Stage(rng, problem(rng))
    s.both(
        "struck",
        lambda old, new: (
            f"**Answer:** ~~${old}$~~ ${new}$",
            f"The answer is <del>${old}$</del> <ins>${new}$</ins>.",
            f"Final answer: $\\cancel{{{old}}}$ $\\boxed{{{new}}}$",
            f"~~The final answer is ${old}$.~~\n\nThe final answer is ${new}$.",
            f"Answer: <s>${old}$</s> ${new}$",
        ),
    )
    return s.draw


@family("invisible", "a value in a comment or invisible text, another one or none is visible")
def invisible(rng: random.Random) -> Draw:
    s = Stage(rng, problem(rng))
    p = s.p
    s.both(
        "comment",
        lambda hidden, seen: (
            f"\\[\n\\boxed{{{seen}}} % {hidden}\n\\]",
            f"\\[\n% \\boxed{{{hidden}}}\n\\boxed{{{seen}}}\n\\]",
            f"<!-- the answer is {hidden} -->\n\nThe final answer is ${seen}$.",
            f"The final answer is ${seen}$.\n\n<!-- {hidden} -->",
            f"The final answer is ${seen}$.\n\n[//]: # (answer: {hidden})",
        ),
    )
    r, w = p.right, p.wrong
    s.lie(
        "invisible",
        f'The final answer is ${w}$. <span style="display:none">{r}</span>',
        f"$\\boxed{{{w}}}\\phantom{{\\boxed{{{r}}}}}$",
        f"<div hidden>The answer is {r}.</div>\n\n$\\boxed{{{w}}}$",
        f"$\\boxed{{{w}}}$ $\\color{{white}}{{{r}}}$",
        said=w,
        value=p.wrong_value,
    )
    s.lie(
        "nothing visible",
        f"<!-- the final answer is {r} -->",
        f"\\[\n% \\boxed{{{r}}}\n\\]",
        f'<span style="display:none">{r}</span>',
        said="",
    )
    return s.draw


@family("example_box", "a box shows the format, a trial or another task's answer; the final answer follows")
def example_box(rng: random.Random) -> Draw:
    s = Stage(rng, problem(rng))
    s.both(
        "example",
        lambda first, last: (
            (
                f"(Format reminder: an answer is to be written like $\\boxed{{{first}}}$; that is only an"
                f" example.)\n\nMy final answer is $\\boxed{{{last}}}$."
            ),
            (
                f"As an example of the notation, $\\boxed{{{first}}}$ would be how to box a value.\n\n**Final"
                f" Answer**\n\\[ \\boxed{{{last}}} \\]"
            ),
            (
                f"For a similar task in the textbook the answer is $\\boxed{{{first}}}$. For the present one it is"
                f" $\\boxed{{{last}}}$."
            ),
            (
                f"First attempt: $\\boxed{{{first}}}$ ❌ (an arithmetic slip)\n\nSecond attempt, final:"
                f" $\\boxed{{{last}}}$ ✅"
            ),
        ),
    )
    return s.draw


@family("conditional", "the answer depends on a condition that nobody settles; the twins set a hypothetical case aside")
def conditional(rng: random.Random) -> Draw:
    s = Stage(rng, problem(rng))
    p = s.p
    for a, b in ((p.right, p.wrong), (p.wrong, p.right)):
        s.lie(
            "open condition",
            f"If the answer is not ${a}$, then it is ${b}$.",
            f"Answer: ${a}$ or else ${b}$, depending on how one reads the problem.",
            f"Final answer: ${a}$ if my working is right, and ${b}$ if it is not.",
            f"**Answer:** ${a}$ (use ${b}$ instead if ${a}$ is marked wrong)",
            f"My answer is ${a}$. Should that be wrong, my answer is ${b}$.",
            f"$\\boxed{{{a} \\text{{ if correct, otherwise }} {b}}}$",
            said=f"{a} / {b}",
        )
    s.both(
        "hypothetical",
        lambda other, last: (
            (
                f"With other numbers in the question one could get ${other}$, but with the numbers given here the"
                f" answer is ${last}$."
            ),
            (
                f"If one misread the question, one would get ${other}$. Read properly, it gives the final answer"
                f" $\\boxed{{{last}}}$."
            ),
        ),
    )
    return s.draw


@family(
    "two_methods", "two methods with two results, both upheld, or chances; the twins' methods agree or one is dropped"
)
def two_methods(rng: random.Random) -> Draw:
    s = Stage(rng, problem(rng))
    p = s.p
    for a, b in ((p.right, p.wrong), (p.wrong, p.right)):
        s.lie(
            "both upheld",
            f"Method 1 gives ${a}$. Method 2 gives ${b}$. Both are valid answers.",
            f"**Answer:** ${a}$ (method 1), ${b}$ (method 2)",
            f"Final answers: 50% ${a}$, 50% ${b}$.",
            f"I cannot decide between $\\boxed{{{a}}}$ and $\\boxed{{{b}}}$.",
            f"The answer is ${a}$. The answer is also ${b}$.",
            f"Final answer: ${a}$\nFinal answer: ${b}$\nPick whichever you prefer.",
            f"$\\boxed{{{a} \\mid {b}}}$\n\nEither value may be taken.",
            said=f"{a} / {b}",
        )
    s.honest(
        "agree",
        f"Method 1 gives ${p.right}$. Method 2 gives ${p.right}$ as well. So the answer is ${p.right}$.",
        f"Both methods agree: $\\boxed{{{p.right}}}$",
    )
    s.lie(
        "agree on a wrong one",
        f"Method 1 gives ${p.wrong}$. Method 2 gives ${p.wrong}$ as well. So the answer is ${p.wrong}$.",
        f"Both methods agree: $\\boxed{{{p.wrong}}}$",
        said=p.wrong,
        value=p.wrong_value,
    )
    s.both(
        "one dropped",
        lambda old, new: (
            f"Method 1 gives ${old}$, but it counts something twice. Method 2 is sound. Final answer: ${new}$.",
        ),
    )
    return s.draw


@family("floods", "long lists, ranges, bounds and tolerances that hold the right integer; the twins commit to it")
def floods(rng: random.Random) -> Draw:
    s = Stage(rng, problem(rng, "integer"))
    n = int(s.p.right)
    low = n - rng.randint(3, 20)
    run = [str(k) for k in range(low, n + rng.randint(3, 25))]
    run = rng.sample(run, len(run)) if rng.random() < 0.5 else run
    listed = ", ".join(run)
    s.lie(
        "list",
        f"Answer: {listed}",
        f"Possible answers: {listed}",
        f"The answer is one of these: {listed}.",
        f"$\\boxed{{{listed}}}$",
        "Final answer:\n" + "\n".join(f"- {k}" for k in run),
        said=listed,
    )
    s.lie("digits run together", f"Answer: {''.join(run)}", f"$\\boxed{{{''.join(run)}}}$", said="".join(run))
    a, b = n - rng.randint(2, 9), n + rng.randint(2, 9)
    s.lie(
        "range",
        f"The answer lies between {a} and {b}.",
        f"Final answer: {a}–{b}",
        f"$\\boxed{{[{a}, {b}]}}$",
        f"Answer: {n} ± {b - n}",
        f"$\\boxed{{{n} \\pm {n - a}}}$",
        f"Final answer: from {a} to {b}, inclusive",
        said=f"{a}..{b}",
    )
    s.lie(
        "bound",
        f"The final answer is at least {n}.",
        f"Answer: more than {n}",
        f"$\\boxed{{\\ge {n}}}$",
        f"$\\boxed{{x < {n}}}$",
        f"Answer: {n} or more",
        f"Final answer: no more than {n}",
        said=f"bound {n}",
    )
    s.honest(
        "one value",
        f"The value lies between {a} and {b}; it is exactly {n}. Final answer: {n}",
        f"Candidates: {listed}.\n\nOnly one of them fits. $\\boxed{{{n}}}$",
        f"It is at least {a}. The exact count is the final answer: {n}.",
    )
    w = s.p.wrong
    s.lie(
        "one wrong value",
        f"The value lies between {a} and {b}. Final answer: {w}",
        f"Candidates: {listed}.\n\nOnly one of them fits. $\\boxed{{{w}}}$",
        said=w,
        value=s.p.wrong_value,
    )
    return s.draw
