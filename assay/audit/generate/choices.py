"""Multiple choice, and yes or no."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import nonzero

LETTERS = "ABCDE"


@family(
    "choice_letter",
    "one letter of several options: brackets, with the option's text, the text alone; a mixed one is wrong",
)
def choice_letter(rng: random.Random) -> Draw:
    size = rng.choice((4, 4, 5))
    if rng.random() < 0.5:
        a, b = rng.randint(12, 60), rng.randint(12, 60)
        ask = f"What is {a} + {b}?"
        options = [
            str(a + b),
            *map(str, rng.sample([a + b + d for d in (-20, -11, -10, -2, -1, 1, 2, 9, 10, 20)], size - 1)),
        ]
    else:
        ask, good, bad = rng.choice(FACTS)
        options = [good, *rng.sample(bad, size - 1)]
    answer = options[0]
    rng.shuffle(options)
    at = options.index(answer)
    letter, mark = LETTERS[at], rng.choice(("{l}. ", "({l}) ", "{l}) "))
    listed = "\n".join(mark.format(l=LETTERS[i]) + text for i, text in enumerate(options))
    draw = Draw(f"{ask}\n{listed}\nChoose the correct option.", letter, letter, verifier="choice")
    draw.right("letter", letter, f"({letter})", f"{letter}.", f"{letter})")
    draw.right("latex letter", rf"\text{{{letter}}}", rf"\textbf{{({letter})}}", rf"\mathrm{{{letter}}}", form="latex")
    draw.right("latex letter", rf"\mathbf{{{letter}}}", rf"\textbf{{{letter}}}", rf"(\text{{{letter}}})", form="latex")
    draw.right(
        "letter and text", f"{letter}. {answer}", f"({letter}) {answer}", f"{letter}: {answer}", f"{letter}) {answer}"
    )
    draw.right("option", f"Option {letter}", f"option ({letter})", f"Choice {letter}")
    draw.right("text alone", answer)
    draw.right("lower case", f"({letter.lower()})")
    for i, text in enumerate(options):
        if i == at:
            continue
        other = LETTERS[i]
        draw.wrong("another letter", other, other, f"({other})", f"{other}.")
        draw.wrong("another letter", other, rf"\text{{{other}}}", rf"\textbf{{({other})}}", form="latex")
        draw.wrong("another option", other, f"{other}. {text}", f"({other}) {text}", f"Option {other}")
        draw.wrong("another text", other, text)
        draw.wrong("letter with another text", (letter, other), f"{letter}. {text}", f"({letter}) {text}")
        draw.wrong(
            "two letters",
            frozenset((letter, other)),
            f"{letter} and {other}",
            f"{letter}, {other}",
            f"{letter} or {other}",
        )
    missing = LETTERS[size] if size < 5 else "F"
    draw.wrong("no such option", missing, missing, f"({missing})")
    draw.wrong("all", frozenset(LETTERS[:size]), "All of the above", ", ".join(LETTERS[:size]))
    draw.wrong("none", "none", "None of the above")
    return draw


FACTS: tuple[tuple[str, str, list[str]], ...] = (
    ("Which planet is closest to the Sun?", "Mercury", ["Venus", "Mars", "Jupiter", "Saturn", "Neptune"]),
    ("Which gas do plants take up for photosynthesis?", "carbon dioxide", ["oxygen", "nitrogen", "helium", "argon"]),
    ("What is the derivative of $x^2$?", "2x", ["x", "x^2", "2", "x^3/3"]),
    ("Which of these numbers is prime?", "29", ["27", "33", "39", "51"]),
    ("Which metal is liquid at room temperature?", "mercury", ["iron", "copper", "gold", "aluminium"]),
    ("What is the SI unit of force?", "newton", ["joule", "watt", "pascal", "volt"]),
)


@family("yes_no", "yes or no, also as true or false where the question allows it")
def yes_no(rng: random.Random) -> Draw:
    n, d = rng.randint(20, 400), rng.randint(3, 12)
    if rng.random() < 0.5:
        n -= n % d
    gold = n % d == 0
    true_false = rng.random() < 0.5
    if true_false:
        question, words, others = f"True or false: {d} divides {n}.", ("True", "False"), ("true", "false")
    else:
        question, words, others = f"Is {n} divisible by {d}? Answer yes or no.", ("Yes", "No"), ("yes", "no")
    word, opposite = words[not gold], words[gold]
    draw = Draw(question, rng.choice((word, word.lower())), gold, verifier="choice")
    draw.right("word", word, others[not gold], word.upper())
    draw.right("latex", rf"\text{{{word}}}", rf"\textbf{{{word}}}", rf"\mathrm{{{word}}}", form="latex")
    reason = f"{n} = {d} * {n // d}" + (f" + {n % d}" if n % d else "")
    draw.right("with a reason", f"{word}, because {reason}", form="text")
    draw.right("with a reason", f"{word}, {d} {'divides' if gold else 'does not divide'} {n}", form="text")
    draw.wrong("opposite", not gold, opposite, others[gold], opposite.upper())
    draw.wrong("opposite", not gold, rf"\text{{{opposite}}}", rf"\textbf{{{opposite}}}", form="latex")
    draw.wrong("opposite with a reason", not gold, f"{opposite}, as one sees by dividing", form="text")
    draw.wrong(
        "both",
        ("both",),
        f"{words[0]} and {words[1].lower()}",
        f"{words[0]}/{words[1]}",
        f"{words[0]} or {words[1].lower()}",
    )
    draw.wrong("cannot tell", ("unknown",), "Cannot be determined", "Maybe")
    return draw


@family("comparison", "which of the signs <, > or = holds between two expressions")
def comparison(rng: random.Random) -> Draw:
    a, b = nonzero(rng, 2, 9), nonzero(rng, 2, 9)
    left, right = a**b, b**a
    gold = "<" if left < right else ">" if left > right else "="
    draw = Draw(f"Which sign, <, > or =, belongs in the gap: ${a}^{b}$ _ ${b}^{a}$?", gold, gold)
    words = {"<": ("less than", r"\lt"), ">": ("greater than", r"\gt"), "=": ("equal to", "=")}
    draw.right("sign", gold)
    draw.right("word", words[gold][0], words[gold][0].capitalize())
    draw.right("filled in", f"{a}^{b} {gold} {b}^{a}", f"{left} {gold} {right}")
    if gold != "=":
        draw.right("latex", words[gold][1], form="latex")
    for sign in "<>=":
        draw.wrong("another sign", sign, *([] if sign == gold else [sign, words[sign][0], f"{a}^{b} {sign} {b}^{a}"]))
    return draw
