"""Short text, several letters of a choice, one word out of a fixed list."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family

FACTS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("What is the capital of France?", "Paris", (), ("London", "Lyon", "Rome", "Berlin")),
    ("What is the capital of Australia?", "Canberra", (), ("Sydney", "Melbourne", "Perth")),
    ("Who painted the Mona Lisa?", "Leonardo da Vinci", (), ("Michelangelo", "Raphael", "Pablo Picasso")),
    (
        "What is the longest river of Africa?",
        "the Nile",
        ("Nile", "The Nile", "the Nile River"),
        ("the Congo", "the Niger"),
    ),
    ("Which element has the symbol Fe?", "iron", (), ("gold", "fluorine", "lead", "silver")),
    (
        "Which chemical formula does water have?",
        "H2O",
        ("H₂O", "$H_2O$", "$\\mathrm{H_2O}$"),
        ("HO2", "H2O2", "CO2", "OH"),
    ),
    ("In which country is Machu Picchu?", "Peru", (), ("Bolivia", "Chile", "Mexico")),
    (
        "Which scientist published the theory of general relativity?",
        "Albert Einstein",
        (),
        ("Isaac Newton", "Niels Bohr"),
    ),
    (
        "What is the name of a polygon with six sides?",
        "hexagon",
        ("a hexagon", "Hexagon"),
        ("pentagon", "octagon", "heptagon"),
    ),
    (
        "Which ocean lies between Africa and Australia?",
        "Indian Ocean",
        ("the Indian Ocean",),
        ("Pacific Ocean", "Atlantic Ocean"),
    ),
    ("Which blood cells carry oxygen?", "red blood cells", ("Red blood cells",), ("white blood cells", "platelets")),
    ("What is the day after Wednesday?", "Thursday", (), ("Tuesday", "Friday", "Wednesday")),
)


@family("short_text", "a name or a word: case, article and quotes may differ; a related one, or two of them, is wrong")
def short_text(rng: random.Random) -> Draw:
    question, good, others, bad = rng.choice(FACTS)
    draw = Draw(question, good, good.casefold(), verifier="text")
    draw.right("as it is", good)
    draw.right("case", good.casefold(), good.upper())
    draw.right("quoted", f'"{good}"', f"“{good}”", form="text")
    draw.right("latex", rf"\text{{{good}}}", rf"\textbf{{{good}}}", rf"\text{{ {good} }}", form="latex")
    draw.right("full stop", f"{good}.", form="text")
    if others:
        draw.right("variant", *others, form="text")
    for text in bad:
        draw.wrong("another one", text.casefold(), text, text.casefold(), text.upper())
        draw.wrong("another one", text.casefold(), rf"\text{{{text}}}", form="latex")
        draw.wrong(
            "two of them", ("or", good, text), f"{good} or {text}", f"{text} or {good}", f"{good}, {text}", form="text"
        )
        draw.wrong("negated", ("not", good), f"not {good}", f"{text}, not {good}", form="text")
    draw.wrong("unknown", ("unknown",), "unknown", "I do not know", form="text")
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
