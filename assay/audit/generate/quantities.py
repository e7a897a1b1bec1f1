"""Quantities with units, dates, ratios."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction
from math import gcd

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Quantity
from assay.audit.generate.spell import decimal, tex

UNITS: dict[str, tuple[tuple[str, str, Fraction], ...]] = {
    "length": (
        ("km", "kilometers", Fraction(1000)),
        ("m", "meters", Fraction(1)),
        ("cm", "centimeters", Fraction(1, 100)),
        ("mm", "millimeters", Fraction(1, 1000)),
    ),
    "mass": (
        ("kg", "kilograms", Fraction(1)),
        ("g", "grams", Fraction(1, 1000)),
        ("mg", "milligrams", Fraction(1, 10**6)),
    ),
    "time": (("h", "hours", Fraction(3600)), ("min", "minutes", Fraction(60)), ("s", "seconds", Fraction(1))),
    "volume": (("L", "liters", Fraction(1)), ("mL", "milliliters", Fraction(1, 1000))),
    "speed": (("km/h", "kilometers per hour", Fraction(5, 18)), ("m/s", "meters per second", Fraction(1))),
}
THINGS = {
    "length": "{n} planks, each {v} {u} long, are laid end to end. How {ask} is the line?",
    "mass": "{n} identical stones have a mass of {v} {u} each. What is their total mass{ask}?",
    "time": "A machine needs {v} {u} for each of {n} parts. How long does it need in total{ask}?",
    "volume": "{n} identical bottles hold {v} {u} each. How much do they hold in total{ask}?",
    "speed": "A drone moves at {v} {u} and then becomes {n} times as fast. What is its new speed{ask}?",
}
BRITISH = {"meters": "metres", "liters": "litres"}


def british(word: str) -> str:
    for american, spelling in BRITISH.items():
        word = word.replace(american, spelling)
    return word


def unit_question(rng: random.Random, named: bool) -> tuple[str, str, str, Fraction, int, str]:
    """Return (question, symbol, word, size of the unit, amount, dimension)."""
    dimension = rng.choice(sorted(UNITS))
    symbol, word, size = rng.choice(UNITS[dimension])
    n, each = rng.randint(2, 12), rng.randint(2, 60)
    in_unit, free = (f"many {word} long", "long") if dimension == "length" else (f", in {word}", "")
    ask = in_unit if named else free
    tail = " Give the number only or with its unit." if named else " Give the answer with its unit."
    question = THINGS[dimension].format(n=n, v=each, u=symbol, ask=ask) + tail
    return question, symbol, word, size, n * each, dimension


def with_unit(draw: Draw, symbol: str, word: str, amount: int) -> None:
    draw.right("symbol", f"{amount} {symbol}", f"{amount}{symbol}", f"{amount}.0 {symbol}")
    draw.right("word", f"{amount} {word}", f"{amount} {british(word)}")
    draw.right("latex", rf"{amount}\text{{ {symbol}}}", rf"{amount}\,\text{{{symbol}}}", form="latex")
    draw.right("latex", rf"{amount}\,\mathrm{{{symbol}}}", rf"{amount}~\mathrm{{{symbol}}}", form="latex")
    draw.right("latex word", rf"{amount} \text{{ {word}}}", rf"{amount}\ \text{{{word}}}", form="latex")


def wrong_units(draw: Draw, symbol: str, word: str, size: Fraction, amount: int, dimension: str) -> None:
    for other, other_word, other_size in UNITS[dimension]:
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
    question, symbol, word, size, amount, dimension = unit_question(rng, named=True)
    reference = rng.choice((str(amount), f"{amount} {symbol}", rf"{amount}\text{{ {symbol}}}"))
    draw = Draw(question, reference, Quantity(amount * size, dimension))
    with_unit(draw, symbol, word, amount)
    draw.right("omitted", str(amount), f"{amount}.0")
    wrong_units(draw, symbol, word, size, amount, dimension)
    draw.wrong("digits only, off by one", Quantity((amount + 1) * size, dimension), str(amount + 1))
    return draw


@family("units_converted", "quantities in a unit of one's choice: 5 km is 5000 m")
def units_converted(rng: random.Random) -> Draw:
    question, symbol, word, size, amount, dimension = unit_question(rng, named=False)
    draw = Draw(
        question, rng.choice((f"{amount} {symbol}", rf"{amount}\text{{ {symbol}}}")), Quantity(amount * size, dimension)
    )
    with_unit(draw, symbol, word, amount)
    for other, other_word, other_size in UNITS[dimension]:
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
    wrong_units(draw, symbol, word, size, amount, dimension)
    return draw


MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def date_texts(day: datetime.date) -> list[str]:
    month = MONTHS[day.month - 1]
    return [f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}", day.isoformat()]


@family("dates", "calendar dates in words and digits; orders that could be misread are left out")
def dates(rng: random.Random) -> Draw:
    start = datetime.date(rng.randint(1901, 2099), rng.randint(1, 12), rng.randint(1, 28))
    step = rng.randint(2, 400)
    gold = start + datetime.timedelta(days=step)
    question = f"Which date is {step} days after {MONTHS[start.month - 1]} {start.day}, {start.year}?"
    draw = Draw(question, date_texts(gold)[0], gold.isoformat())
    month, ending = MONTHS[gold.month - 1], {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
    ordinal = f"{gold.day}{ending.get(gold.day, 'th')}"
    draw.right("words", *date_texts(gold)[:2], f"{month[:3]} {gold.day}, {gold.year}", form="text")
    draw.right("boxed words", rf"\text{{{date_texts(gold)[0]}}}", form="latex")
    draw.right("ordinal", f"{month} {ordinal}, {gold.year}", f"{ordinal} of {month} {gold.year}", form="text")
    draw.right("iso", gold.isoformat(), gold.isoformat().replace("-", "/"), form="text")
    draw.right("weekday", f"{gold.strftime('%A')}, {date_texts(gold)[0]}", form="text")
    if gold.day > 12:
        draw.right(
            "digits", f"{gold.day}/{gold.month}/{gold.year}", f"{gold.day:02}.{gold.month:02}.{gold.year}", form="text"
        )
    for kind, value in (
        ("a day late", gold + datetime.timedelta(days=1)),
        ("a day early", gold - datetime.timedelta(days=1)),
        ("another month", (gold.replace(day=1) + datetime.timedelta(days=32)).replace(day=min(gold.day, 28))),
        ("another year", gold.replace(day=min(gold.day, 28), year=gold.year + 1)),
        ("the start", start),
    ):
        draw.wrong(kind, value.isoformat(), *date_texts(value), form="text")
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
