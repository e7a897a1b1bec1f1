"""Angles in degrees, radians, minutes and seconds."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    tex,
)


@family("angles", "an angle where degrees and radians are both fine: sign, words, pi; the unit exchanged is wrong")
def angles(rng: random.Random) -> Draw:
    n = rng.choice((5, 6, 8, 9, 10, 12, 15, 18, 20))
    q = Fraction(n - 2, n)
    d = int(180 * q)
    p, r = q.numerator, q.denominator
    pi = "\\pi" if p == 1 else f"{p}\\pi"
    draw = Draw(
        f"How large is each interior angle of a regular polygon with {n} sides? Degrees (marked as such) and "
        "radians are both accepted.",
        f"{d}^\\circ",
        ("deg", d),
        f"The interior angles of a polygon with ${n}$ sides add up to $({n} - 2) \\cdot 180^\\circ$.",
        form="latex",
    )
    draw.right("latex degrees", f"{d}^\\circ", f"{d}^{{\\circ}}", f"{d}\\degree", f"\\angle = {d}^\\circ")
    draw.right("unicode degrees", f"{d}°", f"{d} °", form="plain")
    draw.right("words", f"{d} degrees", f"{d} deg", form="text")
    draw.right(
        "radians",
        f"\\frac{{{pi}}}{{{r}}}",
        f"\\frac{{{pi}}}{{{r}}} \\text{{ rad}}",
        f"\\frac{{{pi}}}{{{r}}} \\text{{ radians}}",
        f"\\tfrac{{{p}}}{{{r}}}\\pi",
    )
    draw.right("radians in unicode", f"{'' if p == 1 else p}π/{r} rad", f"{'' if p == 1 else p}π/{r}", form="plain")
    draw.wrong("unit exchanged", ("rad", d), f"{d} \\text{{ rad}}", f"{d} \\text{{ radians}}")
    draw.wrong("unit exchanged", ("deg", q, "pi"), f"\\frac{{{pi}}}{{{r}}}^\\circ")
    for kind, v in (("exterior", 180 - d), ("sum", d * n), ("off by one", d + 1), ("off by one", d - 1)):
        if v != d:
            draw.wrong(kind, ("deg", v), f"{v}^\\circ")
            draw.wrong(kind, ("deg", v), f"{v} degrees", form="text")
    draw.wrong("pi is missing", ("rad", q), f"{tex(q)} \\text{{ rad}}")
    draw.wrong("reciprocal", ("rad", 1 / q, "pi"), f"\\frac{{{'' if r == 1 else r}\\pi}}{{{p}}}")
    draw.wrong("negative", ("deg", -d), f"-{d}^\\circ")
    return draw


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
    draw = Draw(
        f"Write ${tex(x)}^\\circ$ in degrees, minutes and seconds; any spelling with these three units is accepted.",
        f"{d}^\\circ {m}' {s}''",
        ("dms", x),
        "Multiply the fractional part by 60, twice in a row.",
        form="latex",
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
        draw.spell(kind, ("dms", v), uni, latex, words)
    draw.wrong("seconds are missing", ("dms", Fraction(d) + Fraction(m, 60)), f"{d}^\\circ {m}'")
    return draw


@family(
    "converted_angles", "degrees to radians or back; the given angle, or the other unit behind the number, is wrong"
)
def converted_angles(rng: random.Random) -> Draw:
    degrees = rng.choice([k for k in range(15, 360, 15) if k not in (180,)])
    turn = Fraction(degrees, 180)
    p, q = turn.numerator, turn.denominator
    lead = "" if p == 1 else str(p)
    tex = rf"\frac{{{lead}\pi}}{{{q}}}" if q > 1 else rf"{lead}\pi"
    text = f"{lead}π/{q}" if q > 1 else f"{lead}π"
    if rng.random() < 0.5:
        draw = Draw(f"Convert {degrees}° to radians. Give the exact value.", tex, ("rad", turn))
        draw.right("radians", text, f"{text} rad", f"{text} radians", f"{degrees}° = {text}")
        draw.right("radians", tex, rf"{tex}\text{{ rad}}", form="latex")
        draw.wrong("given", ("deg", degrees), f"{degrees}°", f"{degrees} degrees")
        draw.wrong("given", ("deg", degrees), rf"{degrees}^\circ", form="latex")
        draw.wrong("unit", ("deg", turn), f"{text} degrees", f"{text}°")
        draw.wrong("unit", ("deg", turn), rf"{tex}^\circ", form="latex")
    else:
        draw = Draw(f"Convert ${tex}$ radians to degrees.", str(degrees), ("deg", degrees))
        draw.right("degrees", str(degrees), f"{degrees}°", f"{degrees} degrees")
        draw.right("degrees", rf"{degrees}^\circ", form="latex")
        draw.wrong("given", ("rad", turn), text, f"{text} rad", f"{text} radians")
        draw.wrong("given", ("rad", turn), tex, form="latex")
        draw.wrong("unit", ("rad", degrees), f"{degrees} rad", f"{degrees} radians")
    draw.wrong("another angle", ("other", degrees), f"{degrees + 15}", f"{p + 1}π/{q + 1}")
    return draw
