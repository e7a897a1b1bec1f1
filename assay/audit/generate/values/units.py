"""Quantities with a unit: lengths, areas, speeds, temperatures, ratios."""

from __future__ import annotations

import random
from fractions import Fraction
from math import gcd

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Quantity
from assay.audit.generate.spell import (
    decimal,
    table,
    tex,
)

Unit = tuple[str, str, Fraction]
"""Symbol, word, size in base units."""


def units_of(dimension: str) -> list[Unit]:
    return [(symbol, word, Fraction(size)) for symbol, word, size in table("units")[dimension]["units"]]


def british(word: str) -> str:
    return word.replace("meters", "metres").replace("liters", "litres")


def unit_question(rng: random.Random, named: bool) -> tuple[str, Unit, int, str]:
    """Return (question, unit, amount, dimension)."""
    dimension = rng.choice(sorted(table("units")))
    unit = symbol, word, _ = rng.choice(units_of(dimension))
    n, each = rng.randint(2, 12), rng.randint(2, 60)
    in_unit, free = (f"many {word} long", "long") if dimension == "length" else (f", in {word}", "")
    tail = " Give the number only or with its unit." if named else " Give the answer with its unit."
    ask = str(table("units")[dimension]["ask"])
    return ask.format(n=n, v=each, u=symbol, ask=in_unit if named else free) + tail, unit, n * each, dimension


def with_unit(draw: Draw, symbol: str, word: str, amount: int) -> None:
    draw.right("symbol", f"{amount} {symbol}", f"{amount}{symbol}", f"{amount}.0 {symbol}")
    draw.right("word", f"{amount} {word}", f"{amount} {british(word)}")
    draw.right("latex", rf"{amount}\text{{ {symbol}}}", rf"{amount}\,\text{{{symbol}}}", form="latex")
    draw.right("latex", rf"{amount}\,\mathrm{{{symbol}}}", rf"{amount}~\mathrm{{{symbol}}}", form="latex")
    draw.right("latex word", rf"{amount} \text{{ {word}}}", rf"{amount}\ \text{{{word}}}", form="latex")


def wrong_units(draw: Draw, unit: Unit, amount: int, dimension: str) -> None:
    symbol, word, size = unit
    for other, other_word, other_size in units_of(dimension):
        if other != symbol:
            value = Quantity(amount * other_size, dimension)
            draw.wrong("another unit", value, f"{amount} {other}", f"{amount} {other_word}")
            draw.wrong("another unit", value, rf"{amount}\text{{ {other}}}", form="latex")
    stranger, strange_word = ("kg", "kilograms") if dimension != "mass" else ("m", "meters")
    value = Quantity(Fraction(amount), "mass" if dimension != "mass" else "length")
    draw.wrong("another dimension", value, f"{amount} {stranger}", f"{amount} {strange_word}")
    for kind, number in (("off by one", amount + 1), ("decimal shift", amount * 10), ("off by one", amount - 1)):
        value = Quantity(number * size, dimension)
        draw.wrong(kind, value, f"{number} {symbol}", f"{number} {word}")
        draw.wrong(kind, value, rf"{number}\,\mathrm{{{symbol}}}", form="latex")


@family("units_named", "quantities whose unit the question names: it may be left out, another one is wrong")
def units_named(rng: random.Random) -> Draw:
    question, unit, amount, dimension = unit_question(rng, named=True)
    symbol, word, size = unit
    reference = rng.choice((str(amount), f"{amount} {symbol}", rf"{amount}\text{{ {symbol}}}"))
    draw = Draw(question, reference, Quantity(amount * size, dimension), slots={"unit": symbol})
    with_unit(draw, symbol, word, amount)
    draw.right("omitted", str(amount), f"{amount}.0")
    wrong_units(draw, unit, amount, dimension)
    draw.wrong("digits only, off by one", Quantity((amount + 1) * size, dimension), str(amount + 1))
    return draw


@family("units_converted", "quantities in a unit of one's choice: 5 km is 5000 m")
def units_converted(rng: random.Random) -> Draw:
    question, unit, amount, dimension = unit_question(rng, named=False)
    symbol, word, size = unit
    draw = Draw(
        question, rng.choice((f"{amount} {symbol}", rf"{amount}\text{{ {symbol}}}")), Quantity(amount * size, dimension)
    )
    with_unit(draw, symbol, word, amount)
    for other, other_word, other_size in units_of(dimension):
        text = decimal(amount * size / other_size)
        if other == symbol or text is None or len(text) > 9:
            continue
        value = Quantity(Fraction(text) * other_size, dimension)
        draw.right("converted", f"{text} {other}", f"{text} {other_word}", value=value)
        draw.right("converted", rf"{text}\text{{ {other}}}", rf"{text}\,\mathrm{{{other}}}", form="latex")
        for kind, factor in (("converted tenfold", 10), ("converted by a tenth", Fraction(1, 10))):
            wrong = decimal(Fraction(text) * factor)
            if wrong is not None:
                draw.wrong(
                    kind, Quantity(Fraction(wrong) * other_size, dimension), f"{wrong} {other}", f"{wrong} {other_word}"
                )
    wrong_units(draw, unit, amount, dimension)
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


@family("temperature", "Celsius to Fahrenheit: sign, words, LaTeX degrees; the wrong scale, no offset are wrong")
def temperature(rng: random.Random) -> Draw:
    c = 5 * rng.choice([n for n in range(-7, 21) if n not in (0, -8)])
    f = c * 9 // 5 + 32
    draw = Draw(
        f"What is ${c}\\,^\\circ\\text{{C}}$ in degrees Fahrenheit?",
        f"{f}^\\circ\\text{{F}}",
        ("F", f),
        f"The conversion is $F = \\frac{{9}}{{5}} C + 32$, and here $C = {c}$.",
        form="latex",
    )
    draw.right(
        "latex", f"{f}^\\circ\\text{{F}}", f"{f}^{{\\circ}} \\mathrm{{F}}", f"{f}\\,^\\circ\\text{{F}}", f"F = {f}"
    )
    draw.right("unicode", f"{f} °F", f"{f}°F", f"{f} ℉", form="plain")
    draw.right("words", f"{f} degrees Fahrenheit", form="text")
    draw.right("no scale", f"{f}", f"{f}.0", form="plain")
    for kind, v in (("no offset", f - 32), ("ten off", f + 10), ("sign", -f), ("wrong factor", c * 5 // 9 + 32)):
        draw.wrong(kind, ("F", v), f"{v}^\\circ\\text{{F}}")
        draw.wrong(kind, ("F", v), f"{v} °F", form="plain")
        draw.wrong(kind, ("F", v), f"{v} degrees Fahrenheit", form="text")
    draw.wrong("other scale", ("C", f), f"{f}^\\circ\\text{{C}}")
    draw.wrong("other scale", ("C", f), f"{f} °C", form="plain")
    draw.wrong("other scale", ("C", f), f"{f} degrees Celsius", form="text")
    draw.wrong("other scale", ("K", f), f"{f} K", form="plain")
    return draw


@family(
    "areas", "areas: exponents, unicode, `sq`, words, both spellings of metre; volume, perimeter, other units are wrong"
)
def areas(rng: random.Random) -> Draw:
    a, b = rng.randint(3, 19), rng.randint(21, 45)
    n, p = a * b, 2 * (a + b)
    draw = Draw(
        f"A rectangle is {a} cm wide and {b} cm long. What is its area, in square centimetres?",
        f"{n} \\text{{ cm}}^2",
        ("cm2", n),
        f"For a rectangle, area is width times length: ${a} \\cdot {b}$.",
        form="latex",
        slots={"unit": "cm²"},
    )
    draw.right(
        "latex",
        f"{n} \\text{{ cm}}^2",
        f"{n}\\,\\mathrm{{cm}}^{{2}}",
        f"{n}~\\mathrm{{cm^2}}",
        f"{n}\\ \\text{{cm}}^{{2}}",
        f"A = {n}\\,\\text{{cm}}^2",
        f"{n}\\text{{ square centimeters}}",
    )
    draw.right("unicode", f"{n} cm²", f"{n} cm^2", f"{n}cm²", form="plain")
    draw.right("words", f"{n} square centimetres", f"{n} square centimeters", f"{n} sq cm", f"{n} sq. cm", form="text")
    draw.right("bare", str(n), f"A = {n}", form="plain")
    for kind, unit, v in (
        ("perimeter", "cm2", p),
        ("metres", "m2", n),
        ("volume", "cm3", n),
        ("off by one", "cm2", n + 1),
        ("triangle", "cm2", Fraction(n, 2)),
        ("millimetres", "mm2", n),
        ("zero", "cm2", 10 * n),
    ):
        u, e = unit[:-1], unit[-1]
        word = {
            "cm2": "square centimetres",
            "m2": "square metres",
            "mm2": "square millimetres",
            "cm3": "cubic centimetres",
        }
        shown = str(float(v)).removesuffix(".0")
        draw.wrong(kind, (unit, v), f"{shown} \\text{{ {u}}}^{e}", f"{shown}\\,\\mathrm{{{u}}}^{{{e}}}")
        draw.wrong(kind, (unit, v), f"{shown} {u}{'²' if e == '2' else '³'}", form="plain")
        draw.wrong(kind, (unit, v), f"{shown} {word[unit]}", form="text")
    return draw


@family("speeds", "speeds: slash, fraction, negative exponent, per, words; m/s for km/h and a moved point are wrong")
def speeds(rng: random.Random) -> Draw:
    v, h = rng.choice((42, 48, 54, 63, 72, 81, 84, 96, 108)), rng.randint(2, 7)
    draw = Draw(
        f"A train covers {v * h} km in {h} hours at constant speed. Find its speed in kilometres per hour.",
        f"{v} \\text{{ km/h}}",
        ("km/h", v),
        f"Speed is distance over time, $\\frac{{{v * h}\\text{{ km}}}}{{{h}\\text{{ h}}}}$.",
        form="latex",
        slots={"unit": "km/h"},
    )
    for kind, unit, x in (
        ("right", "km/h", v),
        ("m/s", "m/s", v),
        ("distance", "km/h", v * h),
        ("inverse", "h/km", v),
        ("off", "km/h", v + 2),
        ("ten times", "km/h", v * 10),
        ("hours added", "km/h", v + h),
    ):
        num, den = unit.split("/")
        word = {"km/h": "kilometres per hour", "m/s": "metres per second", "h/km": "hours per kilometre"}[unit]
        latex = (
            f"{x} \\text{{ {unit}}}",
            f"{x}\\,\\mathrm{{{num}\\,{den}^{{-1}}}}",
            f"{x}\\ \\frac{{\\text{{{num}}}}}{{\\text{{{den}}}}}",
            f"v = {x}\\,\\text{{{unit}}}",
        )
        plain = (f"{x} {unit}", f"{x}{unit}", f"{x} {num}·{den}⁻¹")
        words = (f"{x} {word}", f"a constant speed of {x} {word}")
        draw.spell(kind, (unit, x), plain, latex, words)
    draw.right("bare", str(v), form="plain")
    return draw


@family("ratios", "ratios of two or three numbers, with colons, as words, as an equal ratio; the order matters")
def ratios(rng: random.Random) -> Draw:
    a, b, k = rng.randint(1, 15), rng.randint(1, 15), rng.randint(2, 6)
    divisor = gcd(a, b)
    a, b = a // divisor, b // divisor
    three = rng.random() < 0.3
    if three:
        c = a + b
        question = f"In a mixture there are {a * k} g of salt, {b * k} g of sugar and {c * k} g of flour. "
        question += "What is the ratio of salt to sugar to flour?"
        draw = Draw(question, f"{a}:{b}:{c}", (1, Fraction(b, a), Fraction(c, a)))
        draw.right("colons", f"{a}:{b}:{c}", f"{a} : {b} : {c}", f"{a * k}:{b * k}:{c * k}")
        draw.right("latex", rf"{a} : {b} : {c}", rf"{a}\!:\!{b}\!:\!{c}", form="latex")
        draw.right("words", f"{a} to {b} to {c}")
        for kind, triple in (("order", (b, a, c)), ("order", (c, b, a)), ("off by one", (a + 1, b, c))):
            x, y, z = triple
            draw.wrong(
                kind, (1, Fraction(y, x), Fraction(z, x)), f"{x}:{y}:{z}", f"{x} : {y} : {z}", f"{x} to {y} to {z}"
            )
        draw.wrong("one missing", (1, Fraction(b, a)), f"{a}:{b}")
        return draw
    question = (
        f"A class has {a * k} girls and {b * k} boys. What is the ratio of girls to boys (as a ratio or a fraction)?"
    )
    draw = Draw(question, f"{a}:{b}", Fraction(a, b))
    draw.right("colon", f"{a}:{b}", f"{a} : {b}", f"{a}∶{b}")
    draw.right("latex", rf"{a} : {b}", rf"{a}\colon {b}", form="latex")
    draw.right("words", f"{a} to {b}")
    draw.right("equal ratio", f"{a * k}:{b * k}", f"{a * k} : {b * k}", value=Fraction(a * k, b * k))
    if b > 1:
        draw.right("fraction", f"{a}/{b}", value=Fraction(a, b))
        draw.right("fraction", tex(Fraction(a, b)), form="latex")
    for kind, x, y in (("order", b, a), ("share of all", a, a + b), ("off by one", a + 1, b), ("off by one", a, b + 1)):
        draw.wrong(kind, Fraction(x, y), f"{x}:{y}", f"{x} : {y}", f"{x} to {y}")
        if y > 1 and gcd(x, y) == 1:
            draw.wrong(kind, Fraction(x, y), tex(Fraction(x, y)), form="latex")
    return draw
