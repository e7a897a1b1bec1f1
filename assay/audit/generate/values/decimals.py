"""Decimals: exact, repeating, in scientific notation, rounded."""

from __future__ import annotations

import math
import random
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    MINUS,
    decimal,
    fixed,
    nonzero,
    plain,
    swapped_digits,
    table,
    tex,
)


@family("decimals", "decimals that end: zeros at either end, no leading zero, as a fraction; a shifted point is wrong")
def decimals(rng: random.Random) -> Draw:
    places = rng.randint(1, 4)
    gold = Fraction(nonzero(rng, -9999, 9999), 10**places)
    part = Fraction(rng.randint(-999, 999), 10**places)
    rest, text = gold - part, decimal(gold) or ""
    draw = Draw(f"Compute ${decimal(rest)} + ({decimal(part)})$.", text, gold)
    draw.right("digits", text)
    if "." in text:
        draw.right("zeros behind", f"{text}0", f"{text}00", value=Fraction(f"{text}0"))
        if abs(gold) < 1:
            draw.right("no leading zero", text.replace("0.", ".", 1), value=Fraction(text.replace("0.", ".", 1)))
        draw.right("fraction", tex(gold), tex(gold, "dfrac"), form="latex")
        draw.right("fraction", plain(gold))
        bottom = 10 ** len(text.partition(".")[2])
        sign = "-" if gold < 0 else ""
        draw.right("tenths", rf"{sign}\frac{{{abs(int(gold * bottom))}}}{{{bottom}}}", form="latex")
    draw.right("named", f"x = {text}", f"= {text}")
    if gold < 0:
        draw.right("unicode minus", text.replace("-", MINUS))
    last = Fraction(1, 10 ** (len(text.partition(".")[2])))
    for kind, value in (
        ("decimal shift", gold * 10),
        ("decimal shift", gold / 10),
        ("decimal shift", gold * 100),
        ("sign flipped", -gold),
        ("last digit", gold + last),
        ("last digit", gold - last),
        ("a unit off", gold + 1),
        ("a digit cut off", Fraction(text[:-1]) if "." in text and text[-2] != "." else Fraction(int(gold))),
        ("digits swapped", Fraction(swapped_digits(int(gold * 10**places)), 10**places)),
    ):
        draw.wrong(kind, value, decimal(value) or "", f"x = {decimal(value)}")
    return draw


@family("scientific", "scientific notation: times, cdot, e, unicode, other exponents with another mantissa")
def scientific(rng: random.Random) -> Draw:
    digits, exponent = rng.randint(11, 999), nonzero(rng, -9, 12)
    if digits % 10 == 0:
        digits += 1
    mantissa = Fraction(digits, 10 ** (len(str(digits)) - 1))
    gold = mantissa * Fraction(10) ** exponent
    factor = rng.choice((2, 4, 5, 8))
    question = f"Compute ${decimal(mantissa * factor)} \\times 10^{{{exponent}}} \\div {factor}$."
    written = decimal(mantissa) or ""
    draw = Draw(question, rf"{written} \times 10^{{{exponent}}}", gold)

    def texts(m: str, e: int) -> tuple[list[str], list[str]]:
        raised = str(e).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        code = [
            f"{m}e{e}",
            f"{m}E{e}",
            f"{m} x 10^{e}",
            f"{m}*10^{e}",
            f"{m} × 10^{e}",
            f"{m} × 10{raised}",
            f"{m}·10^{e}",
        ]
        latex = [rf"{m} \times 10^{{{e}}}", rf"{m} \cdot 10^{{{e}}}", rf"{m}\times10^{{{e}}}"]
        if 0 <= e < 10:
            latex.append(rf"{m}\times 10^{e}")
            code.append(f"{m}e+0{e}")
        return code, latex

    def wrong(kind: str, m: Fraction, e: int) -> None:
        code, latex = texts(decimal(m) or "", e)
        draw.wrong(kind, m * Fraction(10) ** e, *code)
        draw.wrong(kind, m * Fraction(10) ** e, *latex, form="latex")

    for kind, m, e in (
        ("scientific", mantissa, exponent),
        ("another exponent", mantissa * 10, exponent - 1),
        ("another exponent", mantissa / 10, exponent + 1),
    ):
        code, latex = texts(decimal(m) or "", e)
        draw.right(kind, *code, value=m * Fraction(10) ** e)
        draw.right(f"{kind}, latex", *latex, form="latex")
    if gold.denominator == 1:
        draw.right("in full", str(gold))
    elif (full := decimal(gold)) is not None:
        draw.right("in full", full)
    wrong("exponent off by one", mantissa, exponent + 1)
    wrong("exponent off by one", mantissa, exponent - 1)
    wrong("exponent's sign", mantissa, -exponent)
    wrong("mantissa", mantissa + 1, exponent)
    wrong("mantissa", mantissa * 10, exponent)
    wrong("sign", -mantissa, exponent)
    draw.wrong("mantissa alone", mantissa, written)
    return draw


def period(numerator: int, denominator: int) -> tuple[str, str]:
    """Return what stands before the period and the period of ``0 < numerator / denominator < 1``."""
    seen: dict[int, int] = {}
    digits, rest = "", numerator
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digits += str(10 * rest // denominator)
        rest = 10 * rest % denominator
    return (digits[: seen[rest]], digits[seen[rest] :]) if rest else (digits, "")


def periodic(before: str, digits: str) -> Fraction:
    """Return ``0.before(digits)`` exactly."""
    nines = 10 ** len(digits) - 1
    return Fraction(int(before or 0), 10 ** len(before)) + Fraction(int(digits), nines * 10 ** len(before))


@family("repeating_decimals", "decimals with a period: bar, brackets, dots; cut off or another period is wrong")
def repeating_decimals(rng: random.Random) -> Draw:
    while True:
        bottom = rng.choice((3, 6, 7, 9, 11, 12, 13, 15, 18, 22, 27, 33, 37, 41, 44, 45, 55, 99))
        top = rng.randint(1, bottom - 1)
        gold = Fraction(top, bottom)
        before, digits = period(gold.numerator, gold.denominator)
        if digits and set(digits) != {"9"}:
            break
    question = (
        f"Compute ${tex(gold + 1)} - 1$. A fraction or a repeating decimal is accepted; the answer has to be exact."
    )
    draw = Draw(question, rng.choice((tex(gold), rf"0.{before}\overline{{{digits}}}")), gold)

    def add(kind: str, b: str, d: str) -> None:
        latex = [rf"0.{b}\overline{{{d}}}", rf"0.{b}\bar{{{d}}}"]
        if len(d) < 3:
            latex.append("0." + b + "".join(rf"\dot{{{c}}}" for c in d))
        bar = "0." + b + "".join(f"{c}\N{COMBINING OVERLINE}" for c in d)
        draw.spell(kind, periodic(b, d), (f"0.{b}({d})", bar), latex)

    add("period", before, digits)
    add("period", before, digits * 2)
    if len(digits) == 1:
        draw.right("dots", f"0.{before}{digits * 4}...")
        draw.right("dots", rf"0.{before}{digits * 3}\ldots", rf"0.{before}{digits * 5}\dots", form="latex")
    draw.right("fraction", plain(gold))
    draw.right("fraction", tex(gold), tex(gold, "dfrac"), form="latex")
    for length in (1, 2, 4):
        cut = f"0.{before}{(digits * 4)[:length]}"
        draw.wrong("cut off", Fraction(cut), cut)
    shown = fixed(gold + Fraction(1, 20000), 4)
    draw.wrong("rounded", Fraction(shown), shown)
    changed = str((int(digits[0]) + 1) % 10) + digits[1:]
    if set(changed) not in ({"9"}, {"0"}):
        add("another period", before, changed)
    if before or len(digits) > 1:
        all_digits = before + digits
        if set(all_digits) not in ({"9"}, {"0"}):
            add("period too long", "", all_digits)
    if len(digits) > 1:
        add("period too short", before + digits[:-1], digits[-1])
    draw.wrong("inverted", 1 / gold, plain(1 / gold))
    other = gold + Fraction(1, bottom)
    draw.wrong("another fraction", other, plain(other))
    return draw


@family("significant_figures", "a quotient to so many significant figures, in full or in scientific notation")
def significant_figures(rng: random.Random) -> Draw:
    figures = rng.randint(2, 4)
    top, bottom = rng.randint(100, 99_999), rng.choice((7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43))
    while top % bottom == 0:
        top += 1
    exact = Fraction(top, bottom)
    power = len(str(top // bottom)) - 1 if top >= bottom else -1
    unit = Fraction(10) ** (power - figures + 1)
    steps = int(exact / unit + Fraction(1, 2))
    gold = steps * unit
    text = decimal(gold) or ""
    if unit < 1:
        text = fixed(gold, figures - 1 - power)
    question = f"Compute ${top} \\div {bottom}$ to {figures} significant figures."
    draw = Draw(question, text, gold)
    draw.right("digits", text, f"≈ {text}")
    draw.right("approximately", rf"\approx {text}", form="latex")
    mantissa, tens = gold, 0
    while mantissa >= 10:
        mantissa, tens = mantissa / 10, tens + 1
    if tens:
        short = fixed(mantissa, figures - 1)
        draw.right("scientific", rf"{short} \times 10^{{{tens}}}", form="latex")
        draw.right("scientific", f"{short}e{tens}")
        draw.wrong("exponent", mantissa * 10 ** (tens + 1), rf"{short} \times 10^{{{tens + 1}}}", form="latex")
    for kind, value in (
        ("last figure", gold + unit),
        ("last figure", gold - unit),
        ("decimal shift", gold * 10),
        ("too few figures", int(exact / (10 * unit) + Fraction(1, 2)) * 10 * unit),
        ("digits swapped", Fraction(swapped_digits(steps)) * unit),
    ):
        draw.wrong(kind, value, decimal(value) or "", f"≈ {decimal(value)}")
    return draw


def root(radicand: int) -> Decimal:
    """Return the square root to 40 digits."""
    with localcontext() as context:
        context.prec = 40
        return Decimal(radicand).sqrt()


@family("rounded_decimals", "a square root rounded to n decimals: cut off, rounded up, or with other decimals is wrong")
def rounded_decimals(rng: random.Random) -> Draw:
    radicand = rng.randint(2, 999)
    while math.isqrt(radicand) ** 2 == radicand:
        radicand += 1
    places = rng.randint(1, 4)
    exact, unit = root(radicand), Decimal(1).scaleb(-places)
    gold = exact.quantize(unit, ROUND_HALF_UP)
    question = f"Compute $\\sqrt{{{radicand}}}$, rounded to {places} decimal place{'s' if places > 1 else ''}."
    draw = Draw(question, str(gold), Fraction(gold))
    draw.right("digits", str(gold))
    draw.right("approximately", f"≈ {gold}", f"≈{gold}")
    draw.right("latex", str(gold), rf"\approx {gold}", form="latex")
    draw.right("named", f"√{radicand} ≈ {gold}", f"sqrt({radicand}) = {gold}", form="text")
    for kind, value in (
        ("last digit", gold + unit),
        ("last digit", gold - unit),
        ("rounded the wrong way", gold + unit if gold < exact else gold - unit),
        ("first digit", gold + 1),
        ("decimal shift", gold * 10),
        ("decimal shift", gold / 10),
        ("too few decimals", exact.quantize(unit * 10, ROUND_HALF_UP)),
    ):
        draw.wrong(kind, Fraction(value), str(value), f"≈ {value}")
        draw.wrong(kind, Fraction(value), rf"\approx {value}", form="latex")
    return draw


@family("rounded_chains", "a root and its rounding as a chain; the root alone, or a chain with a wrong end, is wrong")
def rounded_chains(rng: random.Random) -> Draw:
    n = rng.choice([k for k in range(5, 400) if math.isqrt(k) ** 2 != k])
    places = rng.randint(2, 3)
    unit = Fraction(1, 10**places)
    gold = Fraction(math.isqrt(4 * n * 100**places) + 1, 2) // 1 * unit

    def show(value: Fraction) -> str:
        return f"{float(value):.{places}f}"

    ask = f"Round $\\sqrt{{{n}}}$ to {'two' if places == 2 else 'three'} decimal places."
    draw = Draw(ask, show(gold), gold)
    root, longer = rf"\sqrt{{{n}}}", f"{math.sqrt(n):.{places + 3}f}"
    draw.right("number", show(gold))
    draw.right("chain", rf"{root} \approx {show(gold)}", rf"{root} \approx {longer} \approx {show(gold)}", form="latex")
    draw.wrong("root", None, root, rf"x = {root}", form="latex")
    for other in (gold + unit, gold - unit):
        draw.wrong("end of the chain", other, rf"{root} \approx {show(other)}", form="latex")
        draw.wrong("end of the chain", other, rf"{root} \approx {longer} \approx {show(other)}", form="latex")
        draw.wrong("number", other, show(other))
    return draw


@family("decimal_comma", "decimals with a comma, in languages that write them so; a moved or lost comma is wrong")
def decimal_comma(rng: random.Random) -> Draw:
    a, b = rng.randint(11, 989), rng.randint(11, 989)
    if (a + b) % 10 == 0:
        a += 1
    n = a + b  # tenths

    def comma(tenths: int) -> str:
        return f"{tenths // 10},{tenths % 10}"

    ask = rng.choice(list(table("decimal_comma").values()))
    draw = Draw(ask.format(f"{comma(a)} + {comma(b)}"), comma(n), Fraction(n, 10))
    for kind, tenths in (
        ("right", n),
        ("tenth", n + 1 if n % 10 != 9 else n - 1),
        ("one", n + 10),
        ("difference", abs(a - b)),
        ("ten", n + 100),
    ):
        draw.add(kind, Fraction(tenths, 10), comma(tenths))
        draw.add(f"{kind}, latex", Fraction(tenths, 10), comma(tenths).replace(",", "{,}"), form="latex")
    draw.wrong("comma lost", Fraction(n), str(n))
    draw.wrong("comma moved", Fraction(n, 100), f"{n // 100},{n % 100:02d}")
    return draw
