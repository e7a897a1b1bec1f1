"""Whether an answer has the form that the question asks for: lowest terms, factored, expanded."""

from __future__ import annotations

import re
from fractions import Fraction

from assay.verify.math.context import Context
from assay.verify.math.latex import plain
from assay.verify.math.nodes import variables
from assay.verify.math.values import Scalar, Value

_WRITTEN_FRACTION = re.compile(
    r"[+-]?(?:\\frac\{(-?[0-9]{1,300})\}\{([0-9]{1,300})\}|([0-9]{1,300})\s?/\s?([0-9]{1,300}))"
)
_RADICAND = re.compile(r"\\sqrt\s?\{?([0-9]{1,9})\}?")


def in_form(reference: str, ref: Value, answer: str, ans: Value, ctx: Context) -> bool:
    """Say whether an answer of the right value also has the form that the question asks for."""
    if not (ctx.simplest or ctx.factored or ctx.expanded) or not isinstance(ref, Scalar) or not isinstance(ans, Scalar):
        return True
    written, model = plain(answer), plain(reference)
    if ctx.simplest:
        match = _WRITTEN_FRACTION.fullmatch(written.partition("=")[2].strip() or written)
        if match is not None:
            top, bottom = int(match[1] or match[3]), int(match[2] or match[4])
            if Fraction(top, bottom).denominator != bottom:
                return False
        if any(_has_square(int(r)) for r in _RADICAND.findall(written)) and not any(
            _has_square(int(r)) for r in _RADICAND.findall(model)
        ):
            return False
    if ctx.factored and variables(ref.node) and ref.node[0] in "*^" and not isinstance(ans.node, Fraction):
        return ans.node[0] in "*^"
    if ctx.expanded and variables(ref.node) and ref.node[0] == "+" and not isinstance(ans.node, Fraction):
        return ans.node[0] == "+" and "(" not in written
    return True


def _has_square(n: int) -> bool:
    return any(n % (k * k) == 0 for k in range(2, min(int(n**0.5), 2000) + 1))
