"""Percentage points, dates, engineering notation, rounding, one in so many, ratios."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import tale
from assay.audit.generate.spell import tex
from assay.audit.generate.words import english


@family("percentage_points", "a difference of two percentages in percentage points; the relative change is wrong")
def percentage_points(rng: random.Random) -> Draw:
    a = rng.choice((4, 8, 12, 16, 20, 25, 40))
    d = rng.choice([k for k in range(2, 16) if Fraction(100 * k, a) != k])
    b = a + d
    t = tale(
        rng,
        f"A share rises from {a}% to {b}%. By how many percentage points does it rise?",
        f"{d}",
        ("pp", d),
        f"We compare ${a}\\%$ with ${b}\\%$ directly, without dividing.",
    )
    t.right("words", f"{d} percentage points", f"{english(d)} percentage points", form="text")
    t.right("short", f"{d} pp", f"{d}", f"+{d} percentage points", form="text")
    t.right("latex", f"{d} \\text{{ percentage points}}", f"{d}\\text{{ pp}}", f"{d}")
    rel = Fraction(100 * d, a)
    shown = str(float(rel)).removesuffix(".0")
    if (rel * 8).denominator == 1:
        t.wrong("relative", ("%", rel), f"{shown}\\%", f"{shown} \\text{{ percentage points}}")
        t.wrong("relative", ("%", rel), f"{shown} percent", form="text")
    t.wrong("sum", ("pp", a + b), f"{a + b} percentage points", form="text")
    t.wrong(
        "off by one", ("pp", d + 1), f"{d + 1} percentage points", f"{english(d + 1)} percentage points", form="text"
    )
    t.wrong("hundredth", ("pp", Fraction(d, 100)), f"{d / 100} percentage points", form="text")
    t.wrong("falls", ("pp", -d), f"-{d} \\text{{ percentage points}}", f"-{d}")
    t.wrong("new share", ("pp", b), f"{b} \\text{{ percentage points}}", f"{b}")
    return t.draw


@family("date_after", "a date so many days later: ISO, words, ordinals, the right weekday; a day or month off is wrong")
def date_after(rng: random.Random) -> Draw:
    start = datetime.date(rng.choice((2019, 2020, 2023, 2024, 2027)), rng.choice((1, 2, 11, 12)), rng.randint(10, 28))
    n = rng.randint(20, 90)
    day = start + datetime.timedelta(days=n)
    if day.day == day.month:
        day, n = day + datetime.timedelta(days=1), n + 1
    t = tale(
        rng,
        f"Which date is {n} days after {start.isoformat()} (year-month-day)? Give the year as well.",
        day.isoformat(),
        day,
        f"We count month by month from {start.isoformat()}, minding leap years.",
    )

    def spell(d: datetime.date) -> tuple[str, ...]:
        suffix = "th" if 10 < d.day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(d.day % 10, "th")
        return (
            d.isoformat(),
            f"{d:%B} {d.day}, {d.year}",
            f"{d.day} {d:%B} {d.year}",
            f"{d:%B} {d.day}{suffix}, {d.year}",
            f"the {d.day}{suffix} of {d:%B} {d.year}",
            f"{d:%A}, {d:%B} {d.day}, {d.year}",
            f"{d:%b} {d.day}, {d.year}",
        )

    for i, text in enumerate(spell(day)):
        t.right(("iso", "us", "uk", "ordinal", "ordinal", "weekday", "short")[i], text, form="text")
    other = {
        "a day late": day + datetime.timedelta(days=1),
        "a day early": day - datetime.timedelta(days=1),
        "a year off": day.replace(year=day.year + 1) if (day.month, day.day) != (2, 29) else None,
        "a month off": day + datetime.timedelta(days=31),
        "day zero": start,
    }
    for kind, d in other.items():
        if d is not None:
            t.wrong(kind, d, *spell(d), form="text")
    return t.draw


SUPER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@family("engineering", "powers of ten with any mantissa, e-notation, unicode; a power off, a sign lost are wrong")
def engineering(rng: random.Random) -> Draw:
    m, e = rng.choice((12, 16, 24, 36, 45, 72)), rng.choice((-9, -8, -7, 6, 7, 8))
    a = rng.choice([k for k in (2, 3, 4, 6) if m % k == 0])
    b, i = m // a, rng.randint(-3, 3)
    gold = Fraction(m) * Fraction(10) ** e
    t = tale(
        rng,
        f"Compute $({a} \\times 10^{{{i}}}) \\cdot ({b} \\times 10^{{{e - i}}})$. Any exact notation is accepted.",
        f"{m / 10} \\times 10^{{{e + 1}}}",
        gold,
        "Multiply the leading factors and add the exponents.",
    )

    def spell(m: Fraction, e: int) -> tuple[str, str, str, str, str]:
        x = str(float(m)).removesuffix(".0")
        return (
            f"{x} \\times 10^{{{e}}}",
            f"{x} \\cdot 10^{{{e}}}",
            f"{x}e{e}",
            f"{x}E{e:+03d}",
            f"{x} × 10{str(e).translate(SUPER)}",
        )

    def add(kind: str, m: Fraction, e: int) -> None:
        value = m * Fraction(10) ** e
        texts = spell(m, e)
        for part, form in ((texts[:2], "latex"), (texts[2:], "plain")):
            if kind.startswith("right"):
                t.right(kind, *part, form=form, value=value)  # type: ignore[arg-type]
            else:
                t.wrong(kind, value, *part, form=form)  # type: ignore[arg-type]

    add("right scientific", Fraction(m, 10), e + 1)
    third = e % 3
    add("right engineering", Fraction(m * 10**third), e - third)
    add("right whole mantissa", Fraction(m), e)
    add("right small mantissa", Fraction(m, 100), e + 2)
    add("power", Fraction(m, 10), e)
    add("power", Fraction(m, 10), e + 2)
    add("sign of the exponent", Fraction(m, 10), -e - 1)
    add("minus", Fraction(-m, 10), e + 1)
    add("mantissa", Fraction(m, 10) + 1, e + 1)
    add("engineering off", Fraction(m * 10**third), e - third + 3)
    if e > 0:
        t.right("in full", str(int(gold)), f"{int(gold):,}", form="plain")
        t.wrong("in full, a zero off", gold * 10, str(int(gold) * 10), form="plain")
    else:
        digits = f"{float(gold):.12f}".rstrip("0")
        t.right("in full", digits, form="plain", value=Fraction(digits))
        wrong = digits.replace("0.", "0.0", 1)
        t.wrong("in full, a zero off", Fraction(wrong), wrong, form="plain")
    return t.draw


@family("round_to", "rounded to tens, hundreds or thousands, with and without separators; not rounded or down is wrong")
def round_to(rng: random.Random) -> Draw:
    unit = rng.choice((10, 100, 1000))
    whole = rng.randint(21, 980)
    off = rng.choice([k for k in range(1, 10) if k != 5]) * unit // 10 + (
        rng.randint(1, 9) * unit // 100 if unit > 10 else 0
    )
    n = whole * unit + off
    up = 2 * off > unit
    gold = (whole + up) * unit
    name = {10: "ten", 100: "hundred", 1000: "thousand"}[unit]
    t = tale(
        rng, f"Round {n} to the nearest {name}.", str(gold), gold, f"Look at the digit to the right of the {name}s."
    )
    t.right("digits", str(gold), f"{gold}.0", form="plain")
    t.right("separators", f"{gold:,}", form="plain")
    t.right("latex", f"{gold:,}".replace(",", "{,}"), f"{gold:,}".replace(",", "\\,"))
    for kind, v in (
        ("other way", (whole + 1 - up) * unit),
        ("not rounded", n),
        ("next", gold + unit),
        ("too coarse", (n + unit * 5) // (unit * 10) * unit * 10),
    ):
        t.wrong(kind, v, str(v), f"{v:,}", form="plain")
        t.wrong(kind, v, f"{v:,}".replace(",", "{,}"))
    t.wrong("cut", whole + up, str(whole + up), form="plain")
    return t.draw


@family("one_in", "the probability of one draw: `1 in 56`, a fraction, words; odds and one off are wrong")
def one_in(rng: random.Random) -> Draw:
    import math

    n, k = rng.choice(((8, 3), (9, 4), (7, 3), (10, 3), (9, 2), (11, 2), (12, 3), (10, 4)))
    c = math.comb(n, k)
    q = Fraction(1, c)
    t = tale(
        rng,
        f"A box holds {n} balls numbered from 1 to {n}. You name {k} of them, then {k} are drawn at random without "
        "replacement. How likely is it that you named exactly those? Give the exact probability.",
        tex(q),
        q,
        f"There are $\\binom{{{n}}}{{{k}}}$ equally likely draws, and one of them wins.",
    )
    t.right(
        "latex",
        f"\\frac{{1}}{{{c}}}",
        f"\\dfrac1{{{c}}}",
        f"P = \\frac{{1}}{{{c}}}",
        f"\\frac{{2}}{{{2 * c}}}",
        f"{c}^{{-1}}",
    )
    t.right("slash", f"1/{c}", f"1 / {c}", form="plain")
    t.right("words", f"1 in {c}", f"one in {c}", f"a probability of 1/{c}", f"1 out of {c}", form="text")
    for kind, v in (("off by one", c - 1), ("off by one", c + 1), ("ordered", math.perm(n, k)), ("product", n * k)):
        if v != c:
            t.wrong(kind, Fraction(1, v), f"\\frac{{1}}{{{v}}}")
            t.wrong(kind, Fraction(1, v), f"1/{v}", f"1 in {v}", form="text")
    t.wrong("reciprocal", Fraction(c), str(c), f"{c} in 1", form="text")
    t.wrong("complement", 1 - q, f"\\frac{{{c - 1}}}{{{c}}}")
    t.wrong("complement", 1 - q, f"{c - 1} in {c}", form="text")
    return t.draw


@family("ratio_words", "a ratio in simplest form: colon, `to`, words; the other order or not reduced is wrong")
def ratio_words(rng: random.Random) -> Draw:
    import math

    while True:
        a, b, k = rng.randint(2, 13), rng.randint(2, 13), rng.randint(2, 9)
        if a != b and math.gcd(a, b) == 1:
            break
    t = tale(
        rng,
        f"A class has {a * k} girls and {b * k} boys. Give the ratio of girls to boys in simplest form (lowest whole "
        "numbers; a ratio that can still be reduced is not accepted).",
        f"{a}:{b}",
        (a, b),
        f"Divide both numbers by ${k}$.",
    )
    t.right("colon", f"{a}:{b}", f"{a} : {b}", f"{a}∶{b}", form="plain")
    t.right("latex", f"{a}:{b}", f"{a} \\colon {b}", f"{a} : {b}", f"{a}\\text{{ to }}{b}")
    t.right("to", f"{a} to {b}", f"{english(a)} to {english(b)}", form="text")
    for kind, (p, q) in (
        ("order", (b, a)),
        ("not reduced", (a * k, b * k)),
        ("part of all", (a, a + b)),
        ("off", (a + 1, b)),
    ):
        if math.gcd(p, q) > 1 and kind == "off":
            continue
        t.wrong(kind, (p, q), f"{p}:{q}", f"{p} \\colon {q}")
        t.wrong(kind, (p, q), f"{p} to {q}", form="text")
    t.wrong("difference", ("number", a - b), str(a * k - b * k), form="plain")
    return t.draw
