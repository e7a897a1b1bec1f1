"""Choices: letters, yes or no, a sign, a word of a list, a name."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    nonzero,
    table,
)

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
        fact = rng.choice(table("choices"))
        ask, options = fact["ask"], [fact["right"], *rng.sample(fact["wrong"], size - 1)]
    answer = options[0]
    rng.shuffle(options)
    at = options.index(answer)
    letter, mark = LETTERS[at], rng.choice(("{l}. ", "({l}) ", "{l}) "))
    listed = "\n".join(mark.format(l=LETTERS[i]) + text for i, text in enumerate(options))
    ends = {"options": f"A through {LETTERS[size - 1]}"}
    draw = Draw(f"{ask}\n{listed}\nChoose the correct option.", letter, letter, verifier="choice", slots=ends)
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
    either = {"words": " or ".join(words)}
    draw = Draw(question, rng.choice((word, word.lower())), gold, verifier="choice", slots=either)
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


@family("several_letters", "all correct letters of a multiple choice, in any order; one missing or extra is wrong")
def several_letters(rng: random.Random) -> Draw:
    d = rng.randint(3, 7)
    good = rng.sample([d * k for k in range(4, 14)], rng.choice((2, 2, 3)))
    bad = rng.sample([d * k + r for k in range(4, 14) for r in range(1, d)], 5 - len(good))
    options = [(n, True) for n in good] + [(n, False) for n in bad]
    rng.shuffle(options)
    letters = "ABCDE"
    gold = [letters[i] for i, (_, ok) in enumerate(options) if ok]
    listed = "\n".join(f"{letters[i]}. {n}" for i, (n, _) in enumerate(options))
    question = f"Which of these numbers are divisible by {d}? Choose all that apply.\n{listed}"
    draw = Draw(question, ", ".join(gold), frozenset(gold), verifier="choice")

    def texts(chosen: list[str]) -> tuple[list[str], list[str]]:
        joined = ", ".join(chosen)
        plain = [joined, ",".join(chosen), ", ".join(f"({c})" for c in chosen)]
        if len(chosen) > 1:
            plain += ["".join(chosen), f"{', '.join(chosen[:-1])} and {chosen[-1]}"]
        return plain, [rf"\text{{{joined}}}", rf"\{{{joined}\}}", ", ".join(rf"\text{{{c}}}" for c in chosen)]

    for kind, chosen in (("in order", gold), ("another order", gold[::-1])):
        code, latex = texts(chosen)
        draw.right(kind, *code)
        draw.right(f"{kind}, latex", *latex, form="latex")
    rest = [c for c in letters if c not in gold]
    for kind, chosen in (
        ("one missing", gold[1:]),
        ("one missing", gold[:-1]),
        ("one extra", sorted([*gold, rest[0]])),
        ("one changed", sorted([*gold[1:], rest[-1]])),
        ("all", list(letters)),
        ("the others", rest),
    ):
        if chosen:
            code, latex = texts(chosen)
            draw.wrong(kind, frozenset(chosen), *code)
            draw.wrong(kind, frozenset(chosen), *latex, form="latex")
    return draw


@family("fixed_list", "one word of a list that the question names")
def fixed_list(rng: random.Random) -> Draw:
    pick = rng.randrange(3)
    words: tuple[str, ...]
    if pick == 0:
        a, b = rng.randint(1, 9) * rng.choice((-1, 1)), rng.randint(-9, 9)
        words, gold = ("increasing", "decreasing"), "increasing" if a > 0 else "decreasing"
        question = f"Is the function $f(x) = {a}x {b:+d}$ increasing or decreasing?"
    elif pick == 1:
        x, y, z = rng.choice(
            ((3, 4, 5), (5, 12, 13), (6, 7, 8), (4, 5, 6), (2, 3, 4), (3, 5, 7), (8, 15, 17), (5, 6, 7), (4, 7, 9))
        )
        words = ("acute", "right", "obtuse")
        gold = "right" if x * x + y * y == z * z else "acute" if x * x + y * y > z * z else "obtuse"
        question = f"A triangle has sides {x}, {y} and {z}. Is it acute, right or obtuse?"
    else:
        n = rng.choice((1, 2, 3, 4, 5, 6, 7, 8))
        words, gold = ("even", "odd"), "even" if n % 2 == 0 else "odd"
        question = f"Is the function $f(x) = x^{n}$ even or odd?"
    draw = Draw(question, gold, gold, verifier="choice")
    draw.right("word", gold, gold.capitalize(), gold.upper())
    draw.right("latex", rf"\text{{{gold}}}", rf"\textbf{{{gold}}}", rf"\mathrm{{{gold}}}", form="latex")
    draw.right("sentence", f"It is {gold}", form="text")
    for word in words:
        if word != gold:
            draw.wrong("another word", word, word, word.capitalize())
            draw.wrong("another word", word, rf"\text{{{word}}}", form="latex")
            draw.wrong("both", (gold, word), f"{gold} and {word}", f"{word} or {gold}", form="text")
            draw.wrong("negated", ("not", gold), f"not {gold}", form="text")
    draw.wrong("neither", "neither", "neither", "none of these")
    return draw


@family("short_text", "a name or a word: case, article and quotes may differ; a related one, or two of them, is wrong")
def short_text(rng: random.Random) -> Draw:
    fact = rng.choice(table("facts"))
    good = str(fact["right"])
    draw = Draw(fact["ask"], good, good.casefold(), verifier="text")
    draw.right("as it is", good)
    draw.right("case", good.casefold(), good.upper())
    draw.right("quoted", f'"{good}"', f"“{good}”", form="text")
    draw.right("latex", rf"\text{{{good}}}", rf"\textbf{{{good}}}", rf"\text{{ {good} }}", form="latex")
    draw.right("full stop", f"{good}.", form="text")
    draw.right("variant", *fact.get("also", ()), form="text")
    for text in fact["wrong"]:
        draw.wrong("another one", text.casefold(), text, text.casefold(), text.upper())
        draw.wrong("another one", text.casefold(), rf"\text{{{text}}}", form="latex")
        draw.wrong(
            "two of them", ("or", good, text), f"{good} or {text}", f"{text} or {good}", f"{good}, {text}", form="text"
        )
        draw.wrong("negated", ("not", good), f"not {good}", f"{text}, not {good}", form="text")
    draw.wrong("unknown", ("unknown",), "unknown", "I do not know", form="text")
    return draw
