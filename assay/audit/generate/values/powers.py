"""Powers, some far too large to write out."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    RAISED,
    plain,
    tex,
)


@family("powers", "powers written out, with another base, negative exponents")
def powers(rng: random.Random) -> Draw:
    base, exponent = rng.choice(
        ((2, 5), (2, 7), (2, 10), (2, 12), (3, 4), (3, 6), (5, 3), (5, 4), (7, 3), (10, 5), (4, 4), (6, 3), (9, 3))
    )
    if rng.random() < 0.35:
        exponent = -exponent
    gold = Fraction(base) ** exponent
    a = rng.randint(-9, 9)
    question = f"Compute ${base}^{{{a}}} \\cdot {base}^{{{exponent - a}}}$. A power is accepted as an answer."
    draw = Draw(question, rng.choice((rf"{base}^{{{exponent}}}", tex(gold))), gold)

    def add(kind: str, b: int, e: int) -> None:
        shown = f"{e}" if e >= 0 else f"({e})"
        code, latex = [f"{b}^{shown}", f"{b}**{shown}", f"{b}{str(e).translate(RAISED)}"], [rf"{b}^{{{e}}}"]
        if e < 0:
            latex += [rf"\frac{{1}}{{{b}^{{{-e}}}}}", rf"\left(\frac{{1}}{{{b}}}\right)^{{{-e}}}"]
            code.append(f"1/{b}^{-e}")
        draw.spell(kind, Fraction(b) ** e, code, latex)

    add("power", base, exponent)
    for root in (2, 3):
        other = round(base ** (1 / root))
        if other**root == base:
            add("another base", other, exponent * root)
    if exponent % 2 == 0:
        add("another base", base**2, exponent // 2)
    draw.right("written out", plain(gold))
    draw.right("written out", tex(gold), form="latex")
    add("exponent off by one", base, exponent + 1)
    add("exponent off by one", base, exponent - 1)
    add("exponent's sign", base, -exponent)
    add("base off by one", base + 1, exponent)
    if exponent > 0:
        add("swapped", exponent, base)
    draw.wrong("product", Fraction(base * exponent), str(base * exponent))
    draw.wrong("negative", -gold, plain(-gold))
    draw.wrong("written out, off by one", gold + 1, plain(gold + 1))
    return draw


@family(
    "huge_powers",
    "powers of hundreds of digits: equal ones with another base or a factor, and ones that are off by one",
)
def huge_powers(rng: random.Random) -> Draw:
    base, exponent = rng.choice((2, 3, 5, 7, 10)), 2 * rng.randint(100, 1000)
    gold = base**exponent
    question = (
        f"Simplify ${base}^{{{exponent - 1}}} \\cdot {base}$. Leave the answer as a power or a product of powers."
    )
    draw = Draw(question, rf"{base}^{{{exponent}}}", gold)
    draw.right("power", rf"{base}^{{{exponent}}}", form="latex")
    draw.right("power", f"{base}^{exponent}", f"{base}**{exponent}")
    draw.right("another base", rf"{base**2}^{{{exponent // 2}}}", form="latex", value=(base**2) ** (exponent // 2))
    draw.right("factor", rf"{base} \cdot {base}^{{{exponent - 1}}}", form="latex", value=base * base ** (exponent - 1))
    draw.right(
        "power of a power",
        rf"\left({base}^{{2}}\right)^{{{exponent // 2}}}",
        rf"({base}^{{{exponent // 2}}})^2",
        form="latex",
    )
    for kind, b, e in (
        ("exponent off by one", base, exponent + 1),
        ("exponent off by one", base, exponent - 1),
        ("base off by one", base + 1, exponent),
        ("exponent not halved", base**2, exponent),
    ):
        draw.wrong(kind, b**e, f"{b}^{e}")
        draw.wrong(kind, b**e, rf"{b}^{{{e}}}", form="latex")
    draw.wrong("plus one", gold + 1, rf"{base}^{{{exponent}}} + 1", form="latex")
    draw.wrong("minus one", gold - 1, f"{base}^{exponent} - 1")
    draw.wrong("one too many", base ** (exponent + 1), rf"{base} \cdot {base}^{{{exponent}}}", form="latex")
    draw.wrong("negative", -gold, rf"-{base}^{{{exponent}}}", form="latex")
    return draw
