"""Polynomials in one variable, inequalities, complex numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Complex, Interval, Polynomial, polynomial
from assay.audit.generate.spell import MINUS, nonzero, plain, proper, tex


def univariate(coefficients: Sequence[int], letter: str = "x") -> Polynomial:
    """Return the polynomial with these coefficients, the constant one first."""
    return polynomial(letter, {(i,): c for i, c in enumerate(coefficients)})


def written(coefficients: Sequence[int], letter: str, power: str = "^{}", sign: str = "", up: bool = False) -> str:
    """Write a polynomial; ``power`` with ``{}`` for the exponent, ``sign`` between coefficient and letter."""
    order = range(len(coefficients)) if up else range(len(coefficients) - 1, -1, -1)
    text = ""
    for i in order:
        c = coefficients[i]
        if not c:
            continue
        monomial = "" if i == 0 else letter if i == 1 else letter + power.format(i)
        factor = str(abs(c)) if abs(c) != 1 or i == 0 else ""
        joint = (" - " if c < 0 else " + ") if text else ("-" if c < 0 else "")
        text += joint + factor + (sign if factor and monomial else "") + monomial
    return text or "0"


SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@family("polynomials", "polynomials in one variable: order, notation of powers and products, factored, nested")
def polynomials(rng: random.Random) -> Draw:
    letter = rng.choice("xxtn")
    p, q, k = nonzero(rng, -9, 9), nonzero(rng, -9, 9), rng.choice((1, 1, 2, 3, -1, 4))
    gold = [k * p * q, -k * (p + q), k]
    cubic = rng.random() < 0.3
    if cubic:
        gold = [0, *gold]
    f = [rng.randint(-9, 9) for _ in gold]
    g = [a - b for a, b in zip(gold, f, strict=True)]
    question = f"Let $f({letter}) = {written(f, letter)}$ and $g({letter}) = {written(g, letter)}$. "
    draw = Draw(
        question + f"Find $f({letter}) + g({letter})$ in any form.", written(gold, letter), univariate(gold, letter)
    )
    draw.right("latex", written(gold, letter, "^{{{}}}"), written(gold, letter, "^{}", r" \cdot "), form="latex")
    draw.right("ascending", written(gold, letter, up=True))
    draw.right("code", written(gold, letter, "**{}", "*"), written(gold, letter, "^{}", "*"))
    draw.right("no spaces", written(gold, letter).replace(" ", ""))
    unicode_text = written(gold, letter, "^{}")
    for i in (2, 3):
        unicode_text = unicode_text.replace(f"^{i}", str(i).translate(SUPERSCRIPT))
    draw.right("unicode", unicode_text, unicode_text.replace("-", MINUS))
    front = {1: "", -1: "-"}.get(k, str(k)) + (letter if cubic else "")
    pair = f"({letter} {'-' if p > 0 else '+'} {abs(p)})({letter} {'-' if q > 0 else '+'} {abs(q)})"
    shift = univariate([-p, 1], letter) * univariate([-q, 1], letter) * univariate([k], letter)
    factored = shift * univariate([0, 1], letter) if cubic else shift
    draw.right("factored", front + pair, value=factored)
    if p == q:
        square = f"({letter} {'-' if p > 0 else '+'} {abs(p)})"
        draw.right("factored", f"{front}{square}^2", value=factored)
    draw.right(
        "named", f"f({letter}) + g({letter}) = {written(gold, letter)}", f"f({letter})+g({letter}) = {front}{pair}"
    )
    constant, middle = gold[-3], gold[-2]
    nested = f"{letter}({written([middle, k], letter)}) {'-' if constant < 0 else '+'} {abs(constant)}"
    draw.right("nested", f"{letter}({nested})" if cubic else nested)
    at = rng.randrange(len(gold) - 1)
    for kind, value in (
        ("a coefficient off by one", [c + (i == at) for i, c in enumerate(gold)]),
        ("a sign flipped", [-c if i == at else c for i, c in enumerate(gold)]),
        ("negated", [-c for c in gold]),
        ("a term missing", [0 if i == at else c for i, c in enumerate(gold)]),
        ("a power shifted", [0, *gold]),
        ("one summand", f),
        ("difference", [a - b for a, b in zip(f, g, strict=True)]),
    ):
        exact = univariate(value, letter)
        draw.wrong(kind, exact, written(value, letter), written(value, letter, "**{}", "*"))
        draw.wrong(kind, exact, written(value, letter, "^{{{}}}"), form="latex")
    for s, t in ((-p, -q), (p, -q), (p + 1, q)):
        other = f"({letter} {'-' if s >= 0 else '+'} {abs(s)})({letter} {'-' if t >= 0 else '+'} {abs(t)})"
        product = univariate([-s, 1], letter) * univariate([-t, 1], letter) * univariate([k], letter)
        draw.wrong("another factor", product * univariate([0, 1], letter) if cubic else product, front + other)
    return draw


def one_sided(letter: str, bound: str, low: bool, closed: bool, style: str) -> list[str]:
    """Return ``x > 3`` and ``3 < x`` in ``style``: code, unicode or latex."""
    sign = {"code": ("<=", ">="), "unicode": ("≤", "≥"), "latex": (r"\leq", r"\geq"), "short": (r"\le", r"\ge")}[style]
    less, more = sign if closed else ("<", ">")
    return (
        [f"{letter} {more} {bound}", f"{bound} {less} {letter}"]
        if low
        else [f"{letter} {less} {bound}", f"{bound} {more} {letter}"]
    )


@family("inequalities", "solution of a linear inequality, one or two sided, written from either side")
def inequalities(rng: random.Random) -> Draw:
    letter, closed = rng.choice("xyt"), rng.random() < 0.5
    bound = proper(rng) if rng.random() < 0.3 else Fraction(nonzero(rng, -15, 15))
    if rng.random() < 0.3:
        return chained(rng, letter)
    low, factor, shift = rng.random() < 0.5, rng.randint(2, 6), rng.randint(1, 9)
    gold = Interval(bound, None, closed, False) if low else Interval(None, bound, False, closed)
    sign = (r"\geq" if closed else ">") if low else (r"\leq" if closed else "<")
    side = tex(factor * bound + shift)
    reference = one_sided(letter, tex(bound), low, closed, "latex")[0]
    draw = Draw(f"Solve the inequality ${factor}{letter} + {shift} {sign} {side}$.", reference, gold)

    def add(kind: str, value: Interval, b: Fraction, lower: bool, c: bool) -> None:
        for style in ("code", "unicode", "latex", "short"):
            latex = style in ("latex", "short")
            texts = one_sided(letter, tex(b) if latex else plain(b), lower, c, style)
            texts = texts if c or style in ("code", "latex") else []
            if value == gold:
                draw.right(style, *texts, form="latex" if latex else "plain")
            else:
                draw.wrong(kind, value, *texts, form="latex" if latex else "plain")

    add("", gold, bound, low, closed)
    draw.right("no spaces", one_sided(letter, plain(bound), low, closed, "code")[0].replace(" ", ""))

    def half(b: Fraction, lower: bool, c: bool) -> Interval:
        return Interval(b, None, c, False) if lower else Interval(None, b, False, c)

    add("direction flipped", half(bound, not low, closed), bound, not low, closed)
    add("end point open or closed", half(bound, low, not closed), bound, low, not closed)
    add("sign flipped", half(-bound, low, closed), -bound, low, closed)
    add("off by one", half(bound + 1, low, closed), bound + 1, low, closed)
    draw.wrong("equation", bound, f"{letter} = {plain(bound)}", plain(bound))
    return draw


def chained(rng: random.Random, letter: str) -> Draw:
    low = Fraction(rng.randint(-12, 8))
    high = low + rng.randint(2, 9)
    left, right, k = rng.random() < 0.5, rng.random() < 0.5, rng.randint(2, 5)

    def text(a: Fraction, b: Fraction, c: bool, d: bool, signs: tuple[str, str]) -> str:
        return f"{a} {signs[c]} {letter} {signs[d]} {b}"

    code, symbols, latex = ("<", "<="), ("<", "≤"), ("<", r"\leq")
    question = f"Solve ${k * low} {latex[left]} {k}{letter} {latex[right]} {k * high}$ for ${letter}$."
    draw = Draw(question, text(low, high, left, right, latex), Interval(low, high, left, right))
    draw.right("code", text(low, high, left, right, code), text(low, high, left, right, code).replace(" ", ""))
    draw.right("unicode", text(low, high, left, right, symbols))
    draw.right("latex", text(low, high, left, right, latex), text(low, high, left, right, ("<", r"\le")), form="latex")
    backwards = (">", ">=")
    draw.right("from the right", f"{high} {backwards[right]} {letter} {backwards[left]} {low}")
    lower = f"{letter} {backwards[left]} {low}"
    upper = f"{letter} {code[right]} {high}"
    draw.right("two parts", f"{lower} and {upper}")
    for kind, a, b, c, d in (
        ("end point open or closed", low, high, not left, right),
        ("end point open or closed", low, high, left, not right),
        ("off by one", low + 1, high, left, right),
        ("off by one", low, high - 1, left, right),
        ("ends negated", -high, -low, left, right),
    ):
        value = Interval(a, b, c, d)
        draw.wrong(kind, value, text(a, b, c, d, code), text(a, b, c, d, symbols))
        draw.wrong(kind, value, text(a, b, c, d, latex), form="latex")
    draw.wrong("one side only", Interval(low, None, left, False), lower)
    draw.wrong("outside", ("outside", low, high), f"{letter} < {low} or {letter} > {high}")
    return draw


def complex_text(re: Fraction, im: Fraction, unit: str = "i", latex: bool = False, first: str = "re") -> str:
    """Return ``3 + 4i``, with the parts in either order."""
    write = tex if latex else plain
    size = "" if abs(im) == 1 else (write(abs(im)) if abs(im).denominator == 1 or latex else f"({abs(im)})")
    imaginary = f"{size}{unit}"
    if not re:
        return ("-" if im < 0 else "") + imaginary
    if first == "im":
        return ("-" if im < 0 else "") + imaginary + (" - " if re < 0 else " + ") + write(abs(re))
    return write(re) + (" - " if im < 0 else " + ") + imaginary


@family("complex_numbers", "complex numbers: order of the parts, one fraction or two, roman i; the conjugate is wrong")
def complex_numbers(rng: random.Random) -> Draw:
    s = rng.choice((1, 1, 1, 2, 3, 5))
    a, b = rng.randint(-12, 12), nonzero(rng, -12, 12)
    re, im = Fraction(a, s), Fraction(b, s)
    c, d = rng.randint(1, 6), nonzero(rng, -6, 6)
    product = Complex(re * c - im * d, re * d + im * c)
    question = f"Find the complex number $z$ with $({complex_text(Fraction(c), Fraction(d))}) \\cdot z = "
    gold = Complex(re, im)
    if product.im:
        question += f"{complex_text(product.re, product.im, latex=True)}$."
    else:
        question += f"{tex(product.re)}$."
    reference = complex_text(re, im, latex=True)
    draw = Draw(question, reference, gold)
    draw.right("latex", reference, complex_text(re, im, r"\mathrm{i}", True), f"z = {reference}", form="latex")
    draw.right("latex", complex_text(re, im, r"\cdot i", True) if abs(im) != 1 else reference, form="latex")
    draw.right("code", complex_text(re, im), f"z = {complex_text(re, im)}", complex_text(re, im).replace(" ", ""))
    if abs(im) != 1:
        draw.right("times sign", complex_text(re, im, "*i"))
    if re:
        draw.right("imaginary first", complex_text(re, im, first="im"))
        draw.right("imaginary first", complex_text(re, im, latex=True, first="im"), form="latex")
        if re.denominator == im.denominator > 1:
            top = complex_text(re * re.denominator, im * im.denominator)
            draw.right("one fraction", rf"\frac{{{top}}}{{{re.denominator}}}", form="latex")
            draw.right("one fraction", f"({top})/{re.denominator}")
    else:
        draw.right("zero part", f"0 + {complex_text(re, im)}" if im > 0 else f"0 - {complex_text(re, -im)}")
    for kind, x, y in (
        ("conjugate", re, -im),
        ("parts swapped", im, re),
        ("negated", -re, -im),
        ("real part off by one", re + 1, im),
        ("imaginary part off by one", re, im + 1),
        ("real part's sign", -re, im),
    ):
        if y:
            draw.wrong(kind, Complex(x, y), complex_text(x, y), complex_text(x, y).replace(" ", ""))
            draw.wrong(kind, Complex(x, y), complex_text(x, y, latex=True), form="latex")
    draw.wrong("i left out", Complex(re + im, Fraction(0)), plain(re + im))
    return draw
