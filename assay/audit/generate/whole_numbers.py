"""Whole numbers: modulo another one, in another base, in a closing sentence."""

from __future__ import annotations

import math
import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import tale
from assay.audit.generate.words import english


@family("congruences", "linear congruences: any representative, pmod, mod; other class or modulus is wrong")
def congruences(rng: random.Random) -> Draw:
    m = rng.choice((5, 7, 9, 11, 13, 16, 17, 19))
    while True:
        a, r = rng.randint(2, m - 1), rng.randint(1, m - 1)
        if math.gcd(a, m) == 1:
            break
    b = a * r % m
    t = tale(
        rng,
        f"Solve the congruence ${a}x \\equiv {b} \\pmod{{{m}}}$. Give the residue class of $x$ modulo {m}.",
        f"x \\equiv {r} \\pmod{{{m}}}",
        (r, m),
        f"Multiply both sides by the inverse of ${a}$ modulo ${m}$.",
    )

    def spell(r: int, m: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (
            (
                f"x \\equiv {r} \\pmod{{{m}}}",
                f"{r} \\pmod{{{m}}}",
                f"x \\equiv {r} \\ (\\mathrm{{mod}}\\ {m})",
                f"x\\equiv {r} \\mod {m}",
            ),
            (f"x ≡ {r} (mod {m})", f"{r} mod {m}", f"x ≡ {r} mod {m}"),
        )

    for kind, (s, n) in (
        ("right", (r, m)),
        ("right, other representative", (r + m, m)),
        ("right, negative", (r - m, m)),
        ("class", ((r + 1) % m, m)),
        ("negated", (m - r, m)),
        ("modulus", (r, m + 1)),
        ("other side", (b, m)),
    ):
        latex, plain = spell(s, n)
        value = (s % n, n)
        if kind.startswith("right"):
            t.right(kind, *latex, value=value)
            t.right(kind, *plain, form="plain", value=value)
        else:
            t.wrong(kind, value, *latex)
            t.wrong(kind, value, *plain, form="plain")
    return t.draw


@family(
    "base_sums", "a sum carried out in another base: subscript, words, digits; lost carries, another digit are wrong"
)
def base_sums(rng: random.Random) -> Draw:
    base = rng.choice((5, 6, 7, 8, 9))

    def digits(n: int) -> str:
        out = ""
        while n:
            n, d = divmod(n, base)
            out = str(d) + out
        return out

    while True:
        a, b = rng.randint(base, base**3 - 1), rng.randint(base, base**3 - 1)
        s, decimal = digits(a + b), str(int(digits(a)) + int(digits(b)))
        if s not in (decimal, str(a + b)):
            break
    t = tale(
        rng,
        f"Compute ${digits(a)}_{{{base}}} + {digits(b)}_{{{base}}}$ and give the result in base {base}.",
        f"{s}_{{{base}}}",
        (base, s),
        f"We add column by column and carry whenever a column reaches ${base}$.",
    )
    for kind, x in (
        ("right", s),
        ("no carries", decimal),
        ("off by one", digits(a + b + 1)),
        ("next place", digits(a + b + base)),
        ("off by one", digits(a + b - 1)),
        ("difference", digits(abs(a - b)) or "0"),
        ("zero behind", s + "0"),
    ):
        latex = (f"{x}_{{{base}}}", f"({x})_{{{base}}}", f"{x}_{base}", f"{x}_{{\\text{{{base}}}}}")
        words = (f"{x} in base {base}", f"{x} (base {base})")
        if kind == "right":
            t.right("subscript", *latex)
            t.right("words", *words, form="text")
            t.right("digits", x, form="plain")
        else:
            t.wrong(kind, (base, x), *latex)
            t.wrong(kind, (base, x), *words, form="text")
            if kind != "no carries":
                t.wrong(kind, (base, x), x, form="plain")
    return t.draw


SENTENCES = (
    "The value is thus {}.", "So, in the end, we get {}.", "This leaves us with exactly {}.", "= {}",
    "That makes {} in all, and that is our answer.", "In total: {}", "The answer, then, is {}.",
    "Count them all: {}. Done!",
    "Hence there are {} of them.", "We conclude that the number asked for equals {}.", "👉 **{}**", "Answer:\n\n    {}",
)  # fmt: skip


@family(
    "sentences", "a count given in a closing sentence without a usual mark, in digits or words; another count is wrong"
)
def sentences(rng: random.Random) -> Draw:
    n, k = rng.randint(23, 89), rng.randint(2, 9)
    total = n + k
    t = tale(
        rng,
        f"After giving away {k} marbles, Mira has {n} left. How many did she have at first? (A numeral or an English"
        " number word.)",
        str(total),
        total,
    )
    work = rng.choice(
        ("We undo the step: what was given away comes back.", "Working backwards, we put the marbles back.", "")
    )
    for sentence in SENTENCES:
        word = english(total) if total < 100 else str(total)
        for kind, v, w in (
            ("right", total, word),
            ("off by one", total + 1, english(min(total + 1, 99))),
            ("subtracted", n - k, english(n - k)),
            ("left", n, english(n)),
            ("ten off", total - 10, english(total - 10)),
        ):
            if kind == "off by one" and total + 1 > 99:
                continue
            for x in (str(v), w):
                whole = f"{work}\n\n{sentence.format(x)}".strip()
                if kind == "right":
                    t.draw.right(sentence[:12], whole, form="whole", said=x)
                else:
                    t.draw.wrong(kind, v, whole, form="whole", said=x)
    return t.draw
