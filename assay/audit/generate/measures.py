"""Answers with a unit: temperature, angles, areas, speeds, money."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import tale
from assay.audit.generate.spell import tex


@family("temperature", "Celsius to Fahrenheit: sign, words, LaTeX degrees; the wrong scale, no offset are wrong")
def temperature(rng: random.Random) -> Draw:
    c = 5 * rng.choice([n for n in range(-7, 21) if n not in (0, -8)])
    f = c * 9 // 5 + 32
    t = tale(
        rng,
        f"What is ${c}\\,^\\circ\\text{{C}}$ in degrees Fahrenheit?",
        f"{f}^\\circ\\text{{F}}",
        ("F", f),
        f"The conversion is $F = \\frac{{9}}{{5}} C + 32$, and here $C = {c}$.",
    )
    t.right("latex", f"{f}^\\circ\\text{{F}}", f"{f}^{{\\circ}} \\mathrm{{F}}", f"{f}\\,^\\circ\\text{{F}}", f"F = {f}")
    t.right("unicode", f"{f} °F", f"{f}°F", f"{f} ℉", form="plain")
    t.right("words", f"{f} degrees Fahrenheit", form="text")
    t.right("no scale", f"{f}", f"{f}.0", form="plain")
    for kind, v in (("no offset", f - 32), ("ten off", f + 10), ("sign", -f), ("wrong factor", c * 5 // 9 + 32)):
        t.wrong(kind, ("F", v), f"{v}^\\circ\\text{{F}}")
        t.wrong(kind, ("F", v), f"{v} °F", form="plain")
        t.wrong(kind, ("F", v), f"{v} degrees Fahrenheit", form="text")
    t.wrong("other scale", ("C", f), f"{f}^\\circ\\text{{C}}")
    t.wrong("other scale", ("C", f), f"{f} °C", form="plain")
    t.wrong("other scale", ("C", f), f"{f} degrees Celsius", form="text")
    t.wrong("other scale", ("K", f), f"{f} K", form="plain")
    return t.draw


@family("angles", "an angle where degrees and radians are both fine: sign, words, pi; the unit exchanged is wrong")
def angles(rng: random.Random) -> Draw:
    n = rng.choice((5, 6, 8, 9, 10, 12, 15, 18, 20))
    q = Fraction(n - 2, n)
    d = int(180 * q)
    p, r = q.numerator, q.denominator
    pi = "\\pi" if p == 1 else f"{p}\\pi"
    t = tale(
        rng,
        f"How large is each interior angle of a regular polygon with {n} sides? Degrees (marked as such) and "
        "radians are both accepted.",
        f"{d}^\\circ",
        ("deg", d),
        f"The interior angles of a polygon with ${n}$ sides add up to $({n} - 2) \\cdot 180^\\circ$.",
    )
    t.right("latex degrees", f"{d}^\\circ", f"{d}^{{\\circ}}", f"{d}\\degree", f"\\angle = {d}^\\circ")
    t.right("unicode degrees", f"{d}°", f"{d} °", form="plain")
    t.right("words", f"{d} degrees", f"{d} deg", form="text")
    t.right(
        "radians",
        f"\\frac{{{pi}}}{{{r}}}",
        f"\\frac{{{pi}}}{{{r}}} \\text{{ rad}}",
        f"\\frac{{{pi}}}{{{r}}} \\text{{ radians}}",
        f"\\tfrac{{{p}}}{{{r}}}\\pi",
    )
    t.right("radians in unicode", f"{'' if p == 1 else p}π/{r} rad", f"{'' if p == 1 else p}π/{r}", form="plain")
    t.wrong("unit exchanged", ("rad", d), f"{d} \\text{{ rad}}", f"{d} \\text{{ radians}}")
    t.wrong("unit exchanged", ("deg", q, "pi"), f"\\frac{{{pi}}}{{{r}}}^\\circ")
    for kind, v in (("exterior", 180 - d), ("sum", d * n), ("off by one", d + 1), ("off by one", d - 1)):
        if v != d:
            t.wrong(kind, ("deg", v), f"{v}^\\circ")
            t.wrong(kind, ("deg", v), f"{v} degrees", form="text")
    t.wrong("pi is missing", ("rad", q), f"{tex(q)} \\text{{ rad}}")
    t.wrong("reciprocal", ("rad", 1 / q, "pi"), f"\\frac{{{'' if r == 1 else r}\\pi}}{{{p}}}")
    t.wrong("negative", ("deg", -d), f"-{d}^\\circ")
    return t.draw


@family("dms", "degrees, minutes and seconds: primes of every sort, words; exchanged or changed parts are wrong")
def dms(rng: random.Random) -> Draw:
    d, m, s = rng.randint(5, 88), rng.randint(11, 58), rng.choice((9, 18, 27, 36, 45, 54))
    x = Fraction(d) + Fraction(m, 60) + Fraction(s, 3600)
    if m == s:
        m -= 1
        x = Fraction(d) + Fraction(m, 60) + Fraction(s, 3600)
    milli = x * 10000
    if milli.denominator != 1:
        m = m // 3 * 3
        x = Fraction(d) + Fraction(m, 60) + Fraction(s, 3600)
    t = tale(
        rng,
        f"Write ${tex(x)}^\\circ$ in degrees, minutes and seconds; any spelling with these three units is accepted.",
        f"{d}^\\circ {m}' {s}''",
        ("dms", x),
        "Multiply the fractional part by 60, twice in a row.",
    )

    def spell(d: int, m: int, s: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        return (
            (
                f"{d}^\\circ {m}' {s}''",
                f"{d}^{{\\circ}}\\,{m}'\\,{s}''",
                f"{d}^\\circ {m}^{{\\prime}} {s}^{{\\prime\\prime}}",
            ),
            (f"{d}°{m}'{s}\"", f"{d}° {m}′ {s}″", f"{d}°{m}’{s}”", f"{d}º {m}' {s}''"),
            (f"{d} degrees, {m} minutes, {s} seconds", f"{d} degrees {m} minutes and {s} seconds"),
        )

    for kind, (dd, mm, ss) in (
        ("right", (d, m, s)),
        ("exchanged", (d, s, m)),
        ("minutes", (d, m + 1, s)),
        ("degrees", (d - 1, m, s)),
        ("minutes", (d, m - 1, s)),
        ("seconds", (d, m, s + 5)),
    ):
        latex, uni, words = spell(dd, mm, ss)
        v = Fraction(dd) + Fraction(mm, 60) + Fraction(ss, 3600)
        for form, texts in (("latex", latex), ("plain", uni), ("text", words)):
            if kind == "right":
                t.right(form, *texts, form=form, value=("dms", v))  # type: ignore[arg-type]
            else:
                t.wrong(kind, ("dms", v), *texts, form=form)  # type: ignore[arg-type]
    t.wrong("seconds are missing", ("dms", Fraction(d) + Fraction(m, 60)), f"{d}^\\circ {m}'")
    return t.draw


@family(
    "areas", "areas: exponents, unicode, `sq`, words, both spellings of metre; volume, perimeter, other units are wrong"
)
def areas(rng: random.Random) -> Draw:
    a, b = rng.randint(3, 19), rng.randint(21, 45)
    n, p = a * b, 2 * (a + b)
    t = tale(
        rng,
        f"A rectangle is {a} cm wide and {b} cm long. What is its area, in square centimetres?",
        f"{n} \\text{{ cm}}^2",
        ("cm2", n),
        f"For a rectangle, area is width times length: ${a} \\cdot {b}$.",
    )
    t.right(
        "latex",
        f"{n} \\text{{ cm}}^2",
        f"{n}\\,\\mathrm{{cm}}^{{2}}",
        f"{n}~\\mathrm{{cm^2}}",
        f"{n}\\ \\text{{cm}}^{{2}}",
        f"A = {n}\\,\\text{{cm}}^2",
        f"{n}\\text{{ square centimeters}}",
    )
    t.right("unicode", f"{n} cm²", f"{n} cm^2", f"{n}cm²", form="plain")
    t.right("words", f"{n} square centimetres", f"{n} square centimeters", f"{n} sq cm", f"{n} sq. cm", form="text")
    t.right("bare", str(n), f"A = {n}", form="plain")
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
        t.wrong(kind, (unit, v), f"{shown} \\text{{ {u}}}^{e}", f"{shown}\\,\\mathrm{{{u}}}^{{{e}}}")
        t.wrong(kind, (unit, v), f"{shown} {u}{'²' if e == '2' else '³'}", form="plain")
        t.wrong(kind, (unit, v), f"{shown} {word[unit]}", form="text")
    return t.draw


@family("speeds", "speeds: slash, fraction, negative exponent, per, words; m/s for km/h and a moved point are wrong")
def speeds(rng: random.Random) -> Draw:
    v, h = rng.choice((42, 48, 54, 63, 72, 81, 84, 96, 108)), rng.randint(2, 7)
    t = tale(
        rng,
        f"A train covers {v * h} km in {h} hours at constant speed. Find its speed in kilometres per hour.",
        f"{v} \\text{{ km/h}}",
        ("km/h", v),
        f"Speed is distance over time, $\\frac{{{v * h}\\text{{ km}}}}{{{h}\\text{{ h}}}}$.",
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
        for form, texts in (("latex", latex), ("plain", plain), ("text", words)):
            if kind == "right":
                t.right(form, *texts, form=form)  # type: ignore[arg-type]
            else:
                t.wrong(kind, (unit, x), *texts, form=form)  # type: ignore[arg-type]
    t.right("bare", str(v), form="plain")
    return t.draw


@family("change", "change in euros and cents: codes, signs, words; another currency, cents exchanged are wrong")
def change(rng: random.Random) -> Draw:
    while True:
        cents = rng.randint(205, 2890)
        e, c = divmod(cents, 100)
        if c >= 11 and c % 11 and c % 10:
            break
    paid = 10 * -(-cents // 1000) + rng.choice((0, 10))
    price = 100 * paid - cents
    t = tale(
        rng,
        f"A book costs €{price / 100:.2f}. Ana pays with €{paid}. How much change does she get, in euros?",
        f"€{cents / 100:.2f}",
        ("EUR", cents),
        "The change is the amount paid less the price.",
    )

    def spell(cents: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        e, c = divmod(cents, 100)
        x = f"{cents / 100:.2f}"
        return (
            (f"€{x}", f"{x} €", f"EUR {x}", f"{x} EUR"),
            (f"{x}\\text{{ euros}}", f"\\text{{€}}{x}", f"{x}\\,\\text{{€}}"),
            (f"{x} euros", f"{e} euros and {c} cents", f"{e} euros {c} cents"),
        )

    for kind, value in (
        ("right", cents),
        ("a cent off", cents + 1),
        ("euro off", cents + 100),
        ("euro off", cents - 100),
        ("price", price),
        ("cents exchanged", e * 100 + int(f"{c:02d}"[::-1])),
    ):
        if kind != "right" and value == cents:
            continue
        for form, texts in zip(("plain", "latex", "text"), spell(value), strict=True):
            if kind == "right":
                t.right(form, *texts, form=form)  # type: ignore[arg-type]
            else:
                t.wrong(kind, ("EUR", value), *texts, form=form)  # type: ignore[arg-type]
    x = f"{cents / 100:.2f}"
    t.right("bare", x, form="plain")
    for code, sign, word in (("USD", "$", "dollars"), ("GBP", "£", "pounds"), ("JPY", "¥", "yen")):
        t.wrong("currency", (code, cents), f"{x} {code}", f"{x} {word}", form="text")
        if sign != "$":
            t.wrong("currency", (code, cents), f"{sign}{x}", form="plain")
    t.wrong("moved point", ("EUR", cents * 10), f"€{cents / 10:.2f}", f"{cents / 10:.1f}0 EUR", form="plain")
    return t.draw
