"""Whole numbers, fractions and percentages."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    MINUS,
    VULGAR,
    decimal,
    fixed,
    grouped,
    nonzero,
    plain,
    proper,
    swapped_digits,
    tex,
)


@family("integers", "whole numbers, with signs, as `x = 5`, `5.0` or a sum still to be written out")
def integers(rng: random.Random) -> Draw:
    gold = nonzero(rng, -60, 60) if rng.random() < 0.6 else nonzero(rng, -900, 900)
    part, letter = rng.randint(-40, 90), rng.choice("xynk")
    add = f"- {part}" if part >= 0 else f"+ {-part}"
    draw = Draw(f"Solve for ${letter}$: ${letter} {add} = {gold - part}$.", str(gold), gold)
    draw.right("digits", str(gold))
    draw.right("named", f"{letter} = {gold}", f"{letter}={gold}")
    draw.right("decimal zeros", f"{gold}.0", f"{gold}.00", f"{letter} = {gold}.0")
    draw.right("latex space", rf"{letter} =\ {gold}", rf"{letter} \,=\, {gold}", form="latex")
    draw.right("over one", rf"\frac{{{gold}}}{{1}}" if gold > 0 else rf"-\frac{{{-gold}}}{{1}}", form="latex")
    if gold < 0:
        draw.right("unicode minus", f"{MINUS}{-gold}", f"{letter} = {MINUS}{-gold}")
    else:
        draw.right("plus sign", f"+{gold}")
    draw.wrong("sign flipped", -gold, str(-gold), f"{letter} = {-gold}")
    for step in (-1, 1):
        draw.wrong("off by one", gold + step, str(gold + step), f"{letter} = {gold + step}", f"{gold + step}.0")
    draw.wrong("digits swapped", swapped_digits(gold), str(swapped_digits(gold)))
    draw.wrong("decimal shift", gold * 10, str(gold * 10), f"{gold * 10}.0")
    draw.wrong("decimal shift", Fraction(gold, 10), decimal(Fraction(gold, 10)) or "")
    draw.wrong("digit lost", gold // 10 if gold > 9 else 0, str(gold // 10 if gold > 9 else 0))
    draw.wrong("nearly", gold + Fraction(1, 100), decimal(gold + Fraction(1, 100)) or "")
    draw.wrong("reciprocal", Fraction(1, gold), plain(Fraction(1, gold)))
    return draw


def fraction_texts(draw: Draw, gold: Fraction, name: str) -> None:
    """Add the usual ways to write a fraction."""
    top, bottom, sign = abs(gold.numerator), gold.denominator, "-" if gold < 0 else ""
    draw.right("slash", plain(gold), f"{sign}{top} / {bottom}")
    draw.right("latex", tex(gold), tex(gold, "dfrac"), tex(gold, "tfrac"), form="latex")
    if top < 10 and bottom < 10:
        draw.right("latex without braces", rf"{sign}\frac{top}{bottom}", rf"{sign}\frac {top}{bottom}", form="latex")
    draw.right("named", f"{name} = {plain(gold)}")
    draw.right("named latex", rf"{name} = {tex(gold)}", rf"{name}={tex(gold, 'dfrac')}", form="latex")
    for k in (2, 3, 10):
        draw.right("not reduced", f"{sign}{k * top}/{k * bottom}", value=Fraction(gold.numerator * k, bottom * k))
        draw.right("not reduced", rf"{sign}\frac{{{k * top}}}{{{k * bottom}}}", form="latex")
    if gold < 0:
        draw.right("sign inside", f"(-{top})/{bottom}", f"{top}/(-{bottom})")
        draw.right("sign inside", rf"\frac{{-{top}}}{{{bottom}}}", rf"\frac{{{top}}}{{-{bottom}}}", form="latex")
        draw.right("unicode minus", f"{MINUS}{top}/{bottom}")
    if (vulgar := VULGAR.get(abs(gold))) is not None:
        draw.right("vulgar fraction", f"{sign}{vulgar}", f"{name} = {sign}{vulgar}")
    if (digits := decimal(gold)) is not None:
        draw.right("decimal", digits, f"{digits}0", f"{name} = {digits}", value=Fraction(digits))


@family("fractions", "fractions: LaTeX commands, slashes, not reduced, sign in any place, vulgar characters, decimals")
def fractions(rng: random.Random) -> Draw:
    gold, part = proper(rng), proper(rng)
    draw = Draw(f"Compute ${tex(gold - part)} + \\left({tex(part)}\\right)$. Give an exact value.", tex(gold), gold)
    fraction_texts(draw, gold, "x")
    top, bottom = gold.numerator, gold.denominator
    for kind, value in (
        ("inverted", 1 / gold),
        ("sign flipped", -gold),
        ("numerator off by one", Fraction(top + 1, bottom)),
        ("numerator off by one", Fraction(top - 1, bottom)),
        ("denominator off by one", Fraction(top, bottom + 1)),
        ("numerator only", Fraction(top)),
        ("denominators added", Fraction(top, 2 * bottom)),
    ):
        draw.wrong(kind, value, plain(value))
        draw.wrong(kind, value, tex(value), tex(value, "dfrac"), form="latex")
    cut = fixed(gold, 2)
    draw.wrong("cut off", Fraction(cut), cut, f"x = {cut}")
    if abs(top) > 9 or bottom > 9:
        draw.wrong("digits joined", Fraction(f"{top}{bottom}"), f"{top}{bottom}")
    return draw


@family("lowest_terms", "fractions asked for in lowest terms: an equal fraction that is not reduced is wrong")
def lowest_terms(rng: random.Random) -> Draw:
    gold, k = abs(proper(rng)), rng.randint(2, 6)
    top, bottom = gold.numerator, gold.denominator
    question = (
        f"Simplify $\\frac{{{top * k * 2}}}{{{bottom * k * 2}}}$ to lowest terms. "
        "Only a fully reduced fraction is accepted."
    )
    draw = Draw(question, tex(gold), (top, bottom))
    draw.right("reduced", plain(gold), f"{top} / {bottom}")
    draw.right("reduced", tex(gold), tex(gold, "dfrac"), rf"{{{top} \over {bottom}}}", form="latex")
    for m in (2, k, 2 * k):
        pair = (top * m, bottom * m)
        draw.wrong("not reduced", pair, f"{pair[0]}/{pair[1]}")
        draw.wrong("not reduced", pair, rf"\frac{{{pair[0]}}}{{{pair[1]}}}", form="latex")
    other = Fraction(top + 1, bottom)
    draw.wrong("another value", (other.numerator, other.denominator), plain(other))
    draw.wrong("inverted", (bottom, top), f"{bottom}/{top}" if top > 1 else str(bottom))
    return draw


@family("percent", "percentages where a percentage is asked for: the sign may be left out, the scale may not change")
def percent(rng: random.Random) -> Draw:
    whole, gold = rng.choice((20, 25, 40, 50, 80, 200, 400)), Fraction(0)
    part = rng.randint(1, whole - 1)
    gold = Fraction(100 * part, whole)
    digits = decimal(gold) or ""
    draw = Draw(f"What percentage of {whole} is {part}?", rf"{digits}\%", gold)
    draw.right("sign", f"{digits}%", f"{digits} %")
    draw.right("latex sign", rf"{digits}\%", rf"{digits}\,\%", rf"{digits}\text{{ percent}}", form="latex")
    draw.right("word", f"{digits} percent", f"{digits} per cent")
    draw.right("no sign", digits)
    for kind, value in (
        ("decimal shift", gold / 100),
        ("decimal shift", gold / 10),
        ("decimal shift", gold * 10),
        ("complement", 100 - gold),
        ("off by one", gold + 1),
        ("inverted", Fraction(100 * whole, part)),
    ):
        if (text := decimal(value)) is not None:
            draw.wrong(kind, value, f"{text}%", f"{text} percent")
            draw.wrong(kind, value, rf"{text}\%", form="latex")
    return draw


@family("probability", "a probability: fraction, decimal and percentage are equal, 25 and 0.25% are not")
def probability(rng: random.Random) -> Draw:
    total = rng.choice((4, 5, 8, 10, 16, 20, 25, 40))
    red = rng.randint(1, total - 1)
    gold = Fraction(red, total)
    question = f"A bag holds {red} red and {total - red} blue balls. What is the probability that a ball drawn is red?"
    draw = Draw(question, tex(gold), gold)
    fraction_texts(draw, gold, "P")
    share = decimal(gold * 100) or ""
    draw.right("percentage", f"{share}%", f"{share} %", f"{share} percent")
    draw.right("percentage", rf"{share}\%", form="latex")
    draw.wrong("percentage without sign", gold * 100, share)
    draw.wrong("decimal with sign", gold / 100, f"{decimal(gold)}%", f"{decimal(gold)} percent")
    draw.wrong("complement", 1 - gold, plain(1 - gold), f"{decimal(100 - 100 * gold)}%")
    draw.wrong("odds for probability", Fraction(red, total - red), f"{red}/{total - red}")
    draw.wrong("inverted", 1 / gold, plain(1 / gold))
    draw.wrong("above one", 1 + gold, plain(1 + gold))
    return draw


@family("thousands", "large whole numbers with the separators of many countries")
def thousands(rng: random.Random) -> Draw:
    a, b = rng.randint(1_000_000, 400_000_000), rng.randint(1000, 999_999)
    gold = a + b
    draw = Draw(f"What is {a} + {b}?", str(gold), gold)
    digits = str(gold)
    draw.right("none", digits)
    draw.right("comma", grouped(digits, ","))
    draw.right("latex comma", grouped(digits, "{,}"), grouped(digits, r",\!"), form="latex")
    draw.right("latex space", grouped(digits, r"\,"), grouped(digits, r"\ "), form="latex")
    draw.right("space", grouped(digits, " "))
    for code in ("\N{NO-BREAK SPACE}", "\N{THIN SPACE}", "\N{NARROW NO-BREAK SPACE}"):
        draw.right("narrow space", grouped(digits, code))
    draw.right("point", grouped(digits, "."))
    draw.right("apostrophe", grouped(digits, "'"), grouped(digits, "\N{RIGHT SINGLE QUOTATION MARK}"))
    draw.right("underscore", grouped(digits, "_"))
    draw.right("indian", f"{grouped(digits[:-3], ',', 2)},{digits[-3:]}")
    draw.right("decimal zeros", f"{grouped(digits, ',')}.00")
    for kind, value in (
        ("digits swapped", swapped_digits(gold)),
        ("group lost", int(digits[:-3])),
        ("group changed", gold + rng.choice((1000, -1000))),
        ("off by one", gold + 1),
        ("zeros added", gold * 1000),
    ):
        text = str(value)
        draw.wrong(kind, value, text, grouped(text, ","), grouped(text, " "))
        draw.wrong(kind, value, grouped(text, "{,}"), form="latex")
    pointed = f"{digits[:-3]}.{digits[-3:]}"
    draw.wrong("decimal point", Fraction(pointed), f"{grouped(digits[:-3], ',')}.{digits[-3:]}")
    return draw
