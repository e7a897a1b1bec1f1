"""Options with their text, and yes or no with a reason."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import OPENERS


@family(
    "option_text",
    "a letter of several options, with the option's text, dashes, check marks; another letter, two letters are wrong",
)
def option_text(rng: random.Random) -> Draw:
    a, b = rng.randint(12, 49), rng.randint(12, 49)
    values = rng.sample(sorted({a * b, a * b + 10, a * b - 10, a * (b + 1)}), 4)
    options = dict(zip("ABCD", values, strict=True))
    right = next(k for k, v in options.items() if v == a * b)
    listed = "\n".join(f"({k}) {v}" for k, v in options.items())
    draw = Draw(f"What is ${a} \\times {b}$?\n{listed}\nAnswer with one letter.", right, right, verifier="choice")
    start = rng.choice(OPENERS)
    for k, v in options.items():
        for text in (
            f"The correct choice is **{k}**.",
            f"**Answer: ({k}) {v}**",
            f"$\\boxed{{\\text{{({k}) }} {v}}}$",
            f"Option {k} — {v} — is correct. ✅",
            f"Final answer: {k}",
            f"$\\boxed{{\\textbf{{({k})}}}}$",
        ):
            if k == right:
                draw.right("letter", start + text, form="whole", said=k)
            else:
                draw.wrong("letter", k, start + text, form="whole", said=k)
        if k != right:
            draw.wrong(
                "two letters",
                (k, right),
                f"{start}The correct choice is **{right}** or **{k}**.",
                f"{start}Final answer: {k} or {right}",
                form="whole",
                said=f"{right}, {k}",
            )
            draw.right(
                "excluded",
                f"{start}({k}) {v} is too far off. The correct choice is **{right}**.",
                form="whole",
                said=right,
            )
            draw.wrong(
                "excluded",
                k,
                f"{start}({right}) {options[right]} is too far off. The correct choice is **{k}**.",
                form="whole",
                said=k,
            )
    return draw


@family("yes_no_reason", "yes or no with the reason after it: is a number prime; the other word, or neither, is wrong")
def yes_no_reason(rng: random.Random) -> Draw:
    n = rng.choice((91, 119, 133, 143, 97, 101, 103, 107, 109, 113, 127, 161, 187, 209, 221))
    factor = next((k for k in range(2, n) if n % k == 0), 0)
    gold = "No" if factor else "Yes"
    draw = Draw(f"Is {n} a prime number? Answer yes or no.", gold, gold, verifier="choice")
    start = rng.choice(OPENERS)
    for word in ("Yes", "No"):
        reason = f"{n} is prime" if word == "Yes" else f"{n} is not prime"
        for text in (
            f"{word}, {reason}.",
            f"**Answer: {word}** — {reason}.",
            f"**{word}.** {reason[0].upper()}{reason[1:]}.",
            f"Final answer: {word}",
            f"$\\boxed{{\\text{{{word}}}}}$",
            f"The answer is {word.lower()}, because {reason}.",
        ):
            if word == gold:
                draw.right("reason", start + text, form="whole", said=word)
            else:
                draw.wrong("other word", word, start + text, form="whole", said=word)
    draw.wrong(
        "neither",
        None,
        f"{start}Yes and no: it depends.",
        f"{start}It may be prime or not.",
        f"{start}The answer is either yes or no.",
        form="whole",
    )
    return draw
