"""Fractions, mixed numbers, percentages and probabilities."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    MINUS,
    VULGAR,
    decimal,
    english,
    fixed,
    plain,
    proper,
    tex,
)


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


@family("mixed_numbers", "mixed numbers: a space, `and`, LaTeX, as improper fraction or decimal; a product is wrong")
def mixed_numbers(rng: random.Random) -> Draw:
    whole, bottom = rng.randint(1, 12), rng.randint(2, 11)
    top = rng.randint(1, bottom - 1)
    share = Fraction(top, bottom)
    top, bottom = share.numerator, share.denominator
    negative = rng.random() < 0.25
    gold = -(whole + share) if negative else whole + share
    sign = "-" if negative else ""
    part = Fraction(rng.randint(1, 9), rng.randint(2, 6))
    reference = rng.choice((tex(gold), rf"{sign}{whole}\frac{{{top}}}{{{bottom}}}"))
    draw = Draw(
        f"Compute ${tex(gold - part)} + {tex(part)}$. A mixed number or a fraction is accepted.", reference, gold
    )
    draw.right("mixed", f"{sign}{whole} {top}/{bottom}")
    for command in ("frac", "dfrac", "tfrac"):
        draw.right("mixed latex", rf"{sign}{whole}\{command}{{{top}}}{{{bottom}}}", form="latex")
    draw.right(
        "mixed latex",
        rf"{sign}{whole} \frac{{{top}}}{{{bottom}}}",
        rf"{sign}{whole}\,\frac{{{top}}}{{{bottom}}}",
        form="latex",
    )
    if not negative:
        draw.right("and", f"{whole} and {top}/{bottom}")
        draw.right("sum", rf"{whole} + \frac{{{top}}}{{{bottom}}}", form="latex")
    draw.right("improper", tex(gold), form="latex")
    draw.right("improper", plain(gold))
    if (text := decimal(gold)) is not None:
        draw.right("decimal", text, value=Fraction(text))

    def mixed(kind: str, value: Fraction, s: str, w: int, t: int, b: int) -> None:
        draw.wrong(kind, value, f"{s}{w} {t}/{b}")
        draw.wrong(kind, value, rf"{s}{w}\frac{{{t}}}{{{b}}}", rf"{s}{w}\dfrac{{{t}}}{{{b}}}", form="latex")

    mixed("whole off by one", gold + (-1 if negative else 1), sign, whole + 1, top, bottom)
    flip = -1 if negative else 1
    mixed("other numerator", flip * (whole + Fraction(top + 1, bottom)), sign, whole, top + 1, bottom)
    mixed("other denominator", flip * (whole + Fraction(top, bottom + 1)), sign, whole, top, bottom + 1)
    if top > 1:
        mixed("inverted", flip * (whole + Fraction(bottom, top)), sign, whole, bottom, top)
    mixed("sign flipped", -gold, "" if negative else "-", whole, top, bottom)
    product = flip * whole * share
    draw.wrong("product", product, plain(product))
    draw.wrong("product", product, rf"{sign}{whole} \cdot \frac{{{top}}}{{{bottom}}}", form="latex")
    joined = Fraction(int(f"{whole}{top}"), bottom) * flip
    draw.wrong("digits joined", joined, f"{sign}{whole}{top}/{bottom}")
    draw.wrong("share alone", share * flip, f"{sign}{top}/{bottom}")
    return draw


@family("rewritten_numbers", "a decimal, fraction or mixed number in another form; in the old form it is wrong")
def rewritten_numbers(rng: random.Random) -> Draw:
    bottom = rng.choice((4, 5, 8, 16, 20, 25, 40))
    top = rng.choice([k for k in range(bottom + 1, 4 * bottom) if math.gcd(k, bottom) == 1])
    value = Fraction(top, bottom)
    whole, rest = divmod(top, bottom)
    fraction, decimal, mixed = f"{top}/{bottom}", f"{float(value):g}", f"{whole} {rest}/{bottom}"
    percent = f"{float(value * 100):g}%"
    tex = rf"\frac{{{top}}}{{{bottom}}}"
    wanted = rng.choice(("decimal", "fraction", "mixed", "percent"))
    if wanted == "decimal":
        draw = Draw(f"Write {fraction} as a decimal.", decimal, ("decimal", value))
        draw.right("decimal", decimal, f"{fraction} = {decimal}", decimal + "0")
        draw.wrong("fraction", ("fraction", value), fraction, f"{2 * top}/{2 * bottom}", mixed)
        draw.wrong("fraction", ("fraction", value), tex, form="latex")
    elif wanted == "fraction":
        draw = Draw(f"Convert {decimal} to a fraction in lowest terms.", fraction, ("fraction", value))
        draw.right("fraction", fraction, f"{decimal} = {fraction}")
        draw.right("fraction", tex, form="latex")
        draw.wrong("decimal", ("decimal", value), decimal, decimal + "0", percent)
        draw.wrong("not reduced", ("reducible", value), f"{3 * top}/{3 * bottom}")
    elif wanted == "mixed":
        draw = Draw(f"Rewrite {fraction} as a mixed number.", mixed, ("mixed", value))
        draw.right("mixed", mixed, f"{fraction} = {mixed}")
        draw.right("mixed", rf"{whole}\frac{{{rest}}}{{{bottom}}}", form="latex")
        draw.wrong("fraction", ("fraction", value), fraction)
        draw.wrong("fraction", ("fraction", value), tex, form="latex")
        draw.wrong("decimal", ("decimal", value), decimal)
    else:
        draw = Draw(f"Express {fraction} as a percentage.", percent, ("percent", value))
        draw.right("percent", percent, percent.replace("%", " %"), percent.replace("%", " percent"))
        draw.wrong("fraction", ("fraction", value), fraction)
        draw.wrong("fraction", ("fraction", value), tex, form="latex")
        draw.wrong("decimal", ("decimal", value), decimal)
    draw.wrong("another value", ("other", value + 1), f"{float(value + 1):g}", f"{top + bottom}/{bottom}")
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


@family("percentage_points", "a difference of two percentages in percentage points; the relative change is wrong")
def percentage_points(rng: random.Random) -> Draw:
    a = rng.choice((4, 8, 12, 16, 20, 25, 40))
    d = rng.choice([k for k in range(2, 16) if Fraction(100 * k, a) != k])
    b = a + d
    draw = Draw(
        f"A share rises from {a}% to {b}%. By how many percentage points does it rise?",
        f"{d}",
        ("pp", d),
        f"We compare ${a}\\%$ with ${b}\\%$ directly, without dividing.",
        form="latex",
    )
    draw.right("words", f"{d} percentage points", f"{english(d)} percentage points", form="text")
    draw.right("short", f"{d} pp", f"{d}", f"+{d} percentage points", form="text")
    draw.right("latex", f"{d} \\text{{ percentage points}}", f"{d}\\text{{ pp}}", f"{d}")
    rel = Fraction(100 * d, a)
    shown = str(float(rel)).removesuffix(".0")
    if (rel * 8).denominator == 1:
        draw.wrong("relative", ("%", rel), f"{shown}\\%", f"{shown} \\text{{ percentage points}}")
        draw.wrong("relative", ("%", rel), f"{shown} percent", form="text")
    draw.wrong("sum", ("pp", a + b), f"{a + b} percentage points", form="text")
    draw.wrong(
        "off by one", ("pp", d + 1), f"{d + 1} percentage points", f"{english(d + 1)} percentage points", form="text"
    )
    draw.wrong("hundredth", ("pp", Fraction(d, 100)), f"{d / 100} percentage points", form="text")
    draw.wrong("falls", ("pp", -d), f"-{d} \\text{{ percentage points}}", f"-{d}")
    draw.wrong("new share", ("pp", b), f"{b} \\text{{ percentage points}}", f"{b}")
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


@family("one_in", "the probability of one draw: `1 in 56`, a fraction, words; odds and one off are wrong")
def one_in(rng: random.Random) -> Draw:
    n, k = rng.choice(((8, 3), (9, 4), (7, 3), (10, 3), (9, 2), (11, 2), (12, 3), (10, 4)))
    c = math.comb(n, k)
    q = Fraction(1, c)
    draw = Draw(
        f"A box holds {n} balls numbered from 1 to {n}. You name {k} of them, then {k} are drawn at random without "
        "replacement. How likely is it that you named exactly those? Give the exact probability.",
        tex(q),
        q,
        f"There are $\\binom{{{n}}}{{{k}}}$ equally likely draws, and one of them wins.",
        form="latex",
    )
    draw.right(
        "latex",
        f"\\frac{{1}}{{{c}}}",
        f"\\dfrac1{{{c}}}",
        f"P = \\frac{{1}}{{{c}}}",
        f"\\frac{{2}}{{{2 * c}}}",
        f"{c}^{{-1}}",
    )
    draw.right("slash", f"1/{c}", f"1 / {c}", form="plain")
    draw.right("words", f"1 in {c}", f"one in {c}", f"a probability of 1/{c}", f"1 out of {c}", form="text")
    for kind, v in (("off by one", c - 1), ("off by one", c + 1), ("ordered", math.perm(n, k)), ("product", n * k)):
        if v != c:
            draw.wrong(kind, Fraction(1, v), f"\\frac{{1}}{{{v}}}")
            draw.wrong(kind, Fraction(1, v), f"1/{v}", f"1 in {v}", form="text")
    draw.wrong("reciprocal", Fraction(c), str(c), f"{c} in 1", form="text")
    draw.wrong("complement", 1 - q, f"\\frac{{{c - 1}}}{{{c}}}")
    draw.wrong("complement", 1 - q, f"{c - 1} in {c}", form="text")
    return draw
