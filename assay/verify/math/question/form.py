"""Whether an answer has the form that the question asks for: computed, in lowest terms, factored, expanded."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from assay.verify.math.expressions.nodes import HALF, Node, variables
from assay.verify.math.expressions.values import Named, Ratio, Scalar, Value
from assay.verify.math.question.context import Context
from assay.verify.math.read.latex import plain

_WRITTEN_FRACTION = re.compile(
    r"[+-]?(?:\\frac\{(-?[0-9]{1,300})\}\{([0-9]{1,300})\}|([0-9]{1,300})\s?/\s?([0-9]{1,300}))"
)
# What a question may give as it stands: numbers, fractions, letters, a root, with units or words.
_GIVEN = re.compile(
    r"[-+$€£¥]*(?:[0-9][0-9.,:]*|\\frac\{[0-9]+\}\{[0-9]+\}|[0-9]+/[0-9]+)?(?:\\?sqrt\{?[0-9]+\}?|√[0-9]+)?[^\W\d_]*[%°²³]*(?:/[^\W\d_]+)?"
)
_NUMERAL = re.compile(r"[-+]?(?:[0-9][0-9.,]*|\\frac\{[0-9]+\}\{[0-9]+\}|[0-9]+/[0-9]+)%?")
_RADICAND = re.compile(
    r"(?:\\sqrt|√|sqrt|root)\s?(?:of\s)?[{(]?\s?([0-9]{1,9})(?![0-9./^])|(?<![0-9.])([0-9]{1,9})\s?\^\s?[{(]?(?:1/2|0?\.5)"
)


def in_form(reference: str, ref: Value, answer: str, ans: Value, ctx: Context) -> bool:
    """Say whether an answer of the right value also has the form that the question asks for."""
    ref, ans = _bare(ref), _bare(ans)
    if isinstance(ref, Ratio) and isinstance(ans, Ratio):
        return not ctx.simplest or _reduced(ans.parts) or not _reduced(ref.parts)
    if not isinstance(ref, Scalar) or not isinstance(ans, Scalar):
        return True
    if _copied(reference, answer, ref.decimals is not None, ctx):
        return False
    if ans.computed and not ctx.unevaluated and _NUMERAL.fullmatch(plain(reference)) is not None:
        return False  # arithmetic that is still to be carried out
    if not (ctx.simplest or ctx.factored or ctx.expanded):
        return True
    written, model = plain(answer), plain(reference)
    if ctx.simplest and not _simple(written.rpartition("=")[2].strip() or written, model, ref, ans):
        return False
    if ctx.factored and variables(ref.node) and ref.node[0] in "*^" and not isinstance(ans.node, Fraction):
        return ans.node[0] in "*^" and _factors(ans.node) >= _factors(ref.node)
    if ctx.expanded and variables(ref.node) and ref.node[0] == "+" and not isinstance(ans.node, Fraction):
        return ans.node[0] == "+" and "(" not in written
    return True


def _copied(reference: str, answer: str, decimal: bool, ctx: Context) -> bool:
    """Say whether a formula to be evaluated or transformed is the question's own, and not what the reference is."""
    if not ctx.text or ctx.unevaluated or ctx.options:
        return False
    flat = _flat(answer.rpartition("=")[2])
    if len(flat) < 3 or flat not in ctx.text:
        return False
    # A fraction that is to be written as a decimal is no answer either.
    if _GIVEN.fullmatch(flat.strip("()")) and not (decimal and _WRITTEN_FRACTION.fullmatch(flat)):
        return False
    return flat != _flat(reference)


def _flat(text: str) -> str:
    return plain(text).replace(" ", "").strip(".")


def _bare(value: Value) -> Value:
    return value.value if isinstance(value, Named) else value


def _simple(written: str, model: str, ref: Scalar, ans: Scalar) -> bool:
    """Lowest terms; radicals whose radicands have no square factors, where the model is so."""
    match = _WRITTEN_FRACTION.fullmatch(written)
    if match is not None:
        top, bottom = int(match[1] or match[3]), int(match[2] or match[4])
        if Fraction(top, bottom).denominator != bottom:
            return False
    if isinstance(ref.node, Fraction) or not _radical(ref.node):
        return True
    if ans.decimals is not None:
        return False  # a decimal is no simplest form of a root
    theirs, ours = _radicands(model), _radicands(written)
    return any(map(_has_square, theirs)) or not any(map(_has_square, ours))


def _radicands(text: str) -> list[int]:
    return [int(a or b) for a, b in _RADICAND.findall(text)]


def _radical(node: Node) -> bool:
    if isinstance(node, Fraction) or node[0] in "vc":
        return False
    if node[0] == "^":
        return node[2] == HALF or _radical(node[1])
    return any(map(_radical, node[1] if node[0] in "+*" else node[2]))


def _has_square(n: int) -> bool:
    return any(n % (k * k) == 0 for k in range(2, min(int(n**0.5), 2000) + 1))


def _reduced(parts: tuple[Node, ...]) -> bool:
    whole = [part.numerator for part in parts if isinstance(part, Fraction) and part.denominator == 1]
    if len(whole) < len(parts):
        return not all(isinstance(part, Fraction) for part in parts)
    return math.gcd(*whole) <= 1


def _factors(node: Node) -> int:
    """Factors with a variable, powers counted as often as they say."""
    if isinstance(node, Fraction) or not variables(node):
        return 0
    if node[0] == "*":
        return sum(map(_factors, node[1]))
    if node[0] == "^" and isinstance(node[2], Fraction) and node[2].denominator == 1 and 0 < node[2] < 1000:
        return int(node[2]) * _factors(node[1])
    return 1
