"""When two scalars are the same number: exactly, as a correct rounding, or in another unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from assay.verify.math.expressions.evaluate import approximate, precise
from assay.verify.math.expressions.identity import equal
from assay.verify.math.expressions.nodes import Node, add, mentions, mul, variables
from assay.verify.math.expressions.units import UNITS, Unit, nouns
from assay.verify.math.expressions.values import Scalar
from assay.verify.math.question.context import Context
from assay.verify.math.question.units_asked import expected, rated

_HUNDRED, _ONE = Fraction(100), Fraction(1)
_DEGREE = (("deg", 1),)
_TEMPERATURE = (("K", 1),)
_CENT, _POUND, _STERLING = UNITS["cent"], UNITS["pound"], UNITS["gbp"]
_WITH_CENTS = ((("€", 1),),)
"""Currencies whose hundredth is a cent too; those called dollars are one unit here."""
_RADIANS_PER_DEGREE = ("*", (("c", "pi"), Fraction(1, 180)))


def same_scalar(ref: Scalar, ans: Scalar, ctx: Context) -> bool:
    """Say whether ``ans`` is the number ``ref``.

    A unit that only one side has is not asked for, unless the question asks for another of the same kind; two units
    have to measure the same. A percent sign that only one side has may also be left out.
    """
    if ref.percent != ans.percent and (ref.percent or ctx.percent) and _numbers(_literal(ref), _literal(ans), ctx):
        return not (ref.unit or ans.unit) or ref.unit == ans.unit
    if ref.unit is None and ans.unit is None:
        return _numbers(ref, ans, ctx)
    if ctx.given is not None and ans.unit is not None and _is_given(ans, ctx.given):
        return False
    if ref.unit is not None and ans.unit is not None:
        return _two_units(ref, ref.unit, ans, ans.unit, ctx)
    if ref.unit is not None:
        if ans.loose or _numbers(ref, ans, ctx):
            return _numbers(ref, ans, ctx)
        return ref.unit.dimension == _DEGREE and mentions(ans.node, ("c", "pi")) and _radians(ref, ans, ctx)
    return _without_unit(ref, ans, ctx)


def _is_given(ans: Scalar, given: tuple[Fraction, Unit]) -> bool:
    """Say whether an answer is the question's own quantity in the question's own unit."""
    assert ans.unit is not None
    return (ans.node, ans.unit.dimension, ans.unit.factor) == (given[0], given[1].dimension, given[1].factor)


def _without_unit(ref: Scalar, ans: Scalar, ctx: Context) -> bool:
    """The reference has no unit, the answer has."""
    unit, asked = ans.unit, ctx.asked
    assert unit is not None
    if asked == _POUND and unit.dimension == _STERLING.dimension:
        asked = _STERLING
    if unit.known and ctx.converted and asked is not None and unit.dimension == asked.dimension:
        return (unit.factor, unit.offset) == (asked.factor, asked.offset) and _numbers(ref, ans, ctx)
    if ans.tight and not variables(ref.node) and asked is None:
        return False
    angle = unit.dimension == _DEGREE and asked is not None and asked.dimension in (_TEMPERATURE, ())
    if unit.known and asked is not None and unit.dimension != asked.dimension and not angle:
        # "How many minutes" answered in kilometres; a price is not what "how many days" asks for.
        if dict(unit.dimension).keys() & dict(asked.dimension).keys():
            return rated(ctx.question) and _numbers(ref, ans, ctx)
        return ans.loose and _numbers(ref, ans, ctx)
    if unit.known and asked is not None and unit.dimension == asked.dimension and unit.factor != asked.factor:
        return _numbers(ref, Scalar(mul([ans.node, unit.factor / asked.factor])), ctx)
    scale = expected(unit, ctx.question) if unit.known and asked is None and ctx.question else _ONE
    if scale is None:
        return False
    if scale != 1:
        return _numbers(ref, replace(ans, node=mul([ans.node, scale]), decimals=None, significant=0), ctx)
    if _numbers(ref, ans, ctx):
        return True
    return unit.dimension == _DEGREE and mentions(ref.node, ("c", "pi")) and _radians(ans, ref, ctx)


def _radians(degrees: Scalar, radians: Scalar, ctx: Context) -> bool:
    return equal(mul([degrees.node, _RADIANS_PER_DEGREE]), radians.node)


def _two_units(ref: Scalar, ru: Unit, ans: Scalar, au: Unit, ctx: Context) -> bool:
    if ru == au:
        return _numbers(ref, ans, ctx)
    if ru.dimension == au.dimension:
        if ru.factor == au.factor and ru.offset == au.offset:
            return _numbers(ref, ans, ctx)
        if equal(_base(ref, ru), _base(ans, au)):
            return True
        scaled = ru.offset == au.offset == 0 and ans.decimals is not None and isinstance(ans.node, Fraction)
        if not scaled:
            return False
        # The answer in the reference's unit, so that roundings are judged by the digits of the answer.
        converted = mul([ref.node, ru.factor / au.factor])
        return isinstance(ref.node, Fraction) and _numbers(Scalar(converted), ans, ctx)
    if {ru.dimension, au.dimension} == {_DEGREE, ()}:
        return _radians(*((ref, ans) if ru.dimension == _DEGREE else (ans, ref)), ctx)
    if au.dimension == _STERLING.dimension and ru == _POUND:
        return _two_units(ref, _STERLING, ans, au, ctx)
    if ru.dimension == _STERLING.dimension and au == _POUND:
        return _two_units(ref, ru, ans, _STERLING, ctx)
    if {ru.dimension, au.dimension} == {_DEGREE, _TEMPERATURE} and (ru if ru.offset else au).dimension == _TEMPERATURE:
        return _numbers(ref, ans, ctx)  # "degrees", of the scale that the other names
    if ru.known and au.known:
        if au != _CENT or ru.dimension not in _WITH_CENTS:
            return False
        return _numbers(Scalar(mul([ref.node, ru.factor * 100])), replace(ans, unit=None), ctx)
    if ru.known != au.known:
        return (ans.loose or ref.loose) and _numbers(ref, ans, ctx)
    if ans.loose and not _clash(ru, au):
        return _numbers(ref, ans, ctx)
    return bool(nouns(ru) & nouns(au)) and _numbers(ref, ans, ctx)


def _clash(ru: Unit, au: Unit) -> bool:
    return not nouns(ru) & nouns(au)


def _base(value: Scalar, unit: Unit) -> Node:
    node = mul([value.node, unit.factor])
    return add([node, unit.offset]) if unit.offset else node


def _literal(value: Scalar) -> Scalar:
    """The number as written, before the percent sign."""
    if not value.percent:
        return value
    return Scalar(mul([value.node, _HUNDRED]), None, value.decimals, value.significant, value.inexact)


def _numbers(ref: Scalar, ans: Scalar, ctx: Context) -> bool:
    return equal(ref.node, ans.node) or rounds(ref, ans, ctx)


FLOAT_DIGITS = 15
LONG_DECIMAL = 8


def rounds(ref: Scalar, ans: Scalar, ctx: Context) -> bool:
    """Say whether one side is a correct rounding of the other that carries enough digits.

    Never where the question asks for an exact value. Otherwise:

    1. The answer is one decimal numeral with at least ``ctx.digits`` significant digits (6; 3 where the question speaks
       of rounding, 4 where ``3.142...`` or "approximately" says that it is rounded) and is the reference rounded
       to as many places, where the reference has no finite decimal expansion (``1/3``, ``sqrt(2)``, ``pi/4``), or is
       itself a decimal of 8 or more significant digits. ``3.14...`` may also be cut off.
    2. The reference is one decimal numeral and is the answer rounded to as many places, where the answer has no finite
       expansion and the reference has 3 significant digits; or the answer has more places and the reference has 4, or
       rounding is asked for.
    3. Either has 15 or more significant digits, as printed floating-point numbers do, and they agree to 1e-12.
    """
    if ctx.exact or variables(ref.node) or variables(ans.node):
        return False
    a, b = _rational(ref.node), _rational(ans.node)
    if a is None or b is None:
        return False
    if max(ref.significant, ans.significant) >= FLOAT_DIGITS and abs(a - b) <= abs(a) / 10**12:
        return True
    ref_decimals, ans_decimals = _places(ref), _places(ans)
    enough = min(ctx.digits, 3) if ctx.approximate else ctx.digits
    if ans_decimals is not None and ans.significant >= (min(enough, 4) if ans.inexact else enough):
        endless = ref.decimals is None and not _finite(ref.node)
        if (endless or ref.inexact or ref.significant >= LONG_DECIMAL) and (
            ref_decimals is None or ref_decimals > ans_decimals
        ):
            return _rounded(a, b, ans_decimals, ans.inexact)
    if ref_decimals is not None and ref.significant >= 2:
        if ans.decimals is None and not _finite(ans.node):
            return (ref.significant >= 3 or ctx.approximate or ref.inexact) and _rounded(
                b, a, ref_decimals, ref.inexact
            )
        if ans_decimals is not None and ans_decimals > ref_decimals:
            enough = ref.significant >= 4 or ctx.approximate or ref.inexact
            return enough and _rounded(b, a, ref_decimals, ref.inexact)
    return False


def _places(value: Scalar) -> int | None:
    """Digits after the point of a decimal numeral, of the number and not of the percentage."""
    if value.decimals is None or not isinstance(value.node, Fraction):
        return None
    return value.decimals + 2 if value.percent else value.decimals


def _finite(node: Node) -> bool:
    """Say whether a constant has a finite decimal expansion."""
    if not isinstance(node, Fraction):
        return False
    d = node.denominator
    if d.bit_length() > 4000:
        return False
    d >>= (d & -d).bit_length() - 1
    while d % 5 == 0:
        d //= 5
    return d == 1


def _rational(node: Node) -> Fraction | None:
    """The value of a real constant to 40 digits."""
    if isinstance(node, Fraction):
        return node
    rough = approximate(node)
    if rough is None or abs(rough.imag) > 1e-9 * (1 + abs(rough.real)) or abs(rough) > 1e30:
        return None
    value = precise(node)
    if value is None:
        return None
    scale = 10**40
    return Fraction(int(value.real * scale), scale)


def _rounded(exact: Fraction, written: Fraction, decimals: int, cut: bool) -> bool:
    unit = Fraction(1, 10**decimals)
    error = abs(exact - written)
    # A half may be rounded either way; 1e-30 is the error of the 40 digits.
    return error <= unit / 2 + Fraction(1, 10**30) or (cut and error < unit and abs(written) <= abs(exact))
