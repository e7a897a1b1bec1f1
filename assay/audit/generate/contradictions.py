"""A stated unit against the question, and measured values: the number alone does not settle the answer."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family

STEPS = (
    ("hours", "minutes", "min", 60),
    ("litres", "millilitres", "ml", 1000),
    ("kilometres", "metres", "m", 1000),
    ("centimetres", "millimetres", "mm", 10),
    ("kilograms", "grams", "g", 1000),
    ("seconds", "milliseconds", "ms", 1000),
)
"""Unit, smaller unit, its symbol, how many of it make one."""
COINS = (("£", "pounds", "pence"), ("$", "dollars", "cents"), ("€", "euros", "cents"))


@family("stated_units", "a conversion: the number with the unit asked for, or bare; with the old unit it is wrong")
def stated_units(rng: random.Random) -> Draw:
    old, new, symbol, factor = rng.choice(STEPS)
    value = Fraction(rng.randint(11, 99), 10)
    n = value * factor
    text = f"{float(n):g}"
    ask = rng.choice((f"Convert {float(value):g} {old} to {new}.", f"How many {new} are {float(value):g} {old}?"))
    draw = Draw(ask, text, (n, new))
    draw.right("unit asked for", f"{text} {new}", f"{text} {symbol}", f"{text}\\,\\text{{{symbol}}}")
    draw.right("number alone", text)
    draw.wrong("old unit", (n, old), f"{text} {old}", f"{text}\\,\\text{{{old}}}")
    draw.wrong("another number", (n * 10, new), f"{float(n * 10):g} {new}")
    return draw


@family("stated_currency", "a price in the question's currency: another currency, or its hundredth part, is wrong")
def stated_currency(rng: random.Random) -> Draw:
    (sign, name, small), (other, foreign, _) = rng.sample(COINS, 2)
    price, count = rng.randint(3, 40), rng.randint(3, 12)
    n = price * count
    draw = Draw(f"A ticket costs {sign}{price}. How much do {count} tickets cost?", str(n), (n, name))
    draw.right("currency", f"{sign}{n}", f"{n} {name}", f"{sign}{n}.00", form="text")
    draw.right("number alone", str(n))
    draw.wrong("another currency", (n, foreign), f"{other}{n}", f"{n} {foreign}", form="text")
    draw.wrong("hundredth part", (n, small), f"{n} {small}", form="text")
    draw.wrong("another number", (n + price, name), f"{sign}{n + price}", form="text")
    return draw


@family("measured_values", "a value with its uncertainty in one of many spellings; either number changed is wrong")
def measured_values(rng: random.Random) -> Draw:
    unit = rng.choice(("cm", "kg", "s", "m"))
    a, b = rng.randint(110, 990), rng.randint(110, 990)
    e, f = rng.randint(1, 4), rng.randint(1, 4)

    def spell(value: int, error: int, unit: str) -> tuple[str, ...]:
        v, d = f"{value / 10:.1f}", f"{error / 10:.1f}"
        return (
            f"({v} ± {d}) {unit}",
            f"{v} ± {d} {unit}",
            f"{v} {unit} +/- {d} {unit}",
            f"{v} {unit} plus or minus {d} {unit}",
        )

    question = (
        f"Two quantities of {a / 10:.1f} ± {e / 10:.1f} {unit} and {b / 10:.1f} ± {f / 10:.1f} {unit} are added. Give"
        " the sum with its largest possible error."
    )
    draw = Draw(question, f"({(a + b) / 10:.1f} \\pm {(e + f) / 10:.1f})\\ \\text{{{unit}}}", (a + b, e + f, unit))
    draw.right("spellings", *spell(a + b, e + f, unit), form="text")
    draw.right("LaTeX", f"{(a + b) / 10:.1f} \\pm {(e + f) / 10:.1f}\\,\\mathrm{{{unit}}}", form="latex")
    draw.wrong("another error", (a + b, e + f + 1, unit), *spell(a + b, e + f + 1, unit), form="text")
    draw.wrong("another value", (a + b + 1, e + f, unit), *spell(a + b + 1, e + f, unit), form="text")
    draw.wrong("another unit", (a + b, e + f, "mm"), *spell(a + b, e + f, "mm"), form="text")
    draw.wrong("no error", (a + b, 0, unit), f"{(a + b) / 10:.1f} {unit}", form="text")
    return draw
