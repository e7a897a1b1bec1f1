"""When two readings are the same answer."""

from __future__ import annotations

import re
from fractions import Fraction

from assay.verify.math.equal.lists import same_items
from assay.verify.math.equal.numbers import same_scalar
from assay.verify.math.expressions.congruence import progression
from assay.verify.math.expressions.identity import equal, ratio
from assay.verify.math.expressions.nodes import Node, add, mul, neg, variables
from assay.verify.math.expressions.realset import as_set, half_plane, same_set
from assay.verify.math.expressions.values import (
    Based,
    Choice,
    Clock,
    Date,
    Items,
    Matrix,
    Named,
    Ratio,
    RealSet,
    Relation,
    Residue,
    Scalar,
    Sign,
    Text,
    Truth,
    Value,
)
from assay.verify.math.question.context import Context
from assay.verify.math.read.forms import in_base, words_of
from assay.verify.math.read.reading import read
from assay.verify.math.words.dates import weekday


def same(ref: Value, ans: Value, ctx: Context) -> bool:
    """Say whether two readings are the same answer."""
    if isinstance(ref, Text) or isinstance(ans, Text):
        if not isinstance(ref, Text) or not isinstance(ans, Text):
            return False
        return ref.words == ans.words or ((day := weekday(ref.words)) is not None and day == weekday(ans.words))
    if isinstance(ref, Truth) or isinstance(ans, Truth):
        return ref == ans
    if isinstance(ref, Choice) or isinstance(ans, Choice):
        return isinstance(ref, Choice) and isinstance(ans, Choice) and _same_choice(ref, ans, ctx)
    if isinstance(ref, Residue) or isinstance(ans, Residue):
        return _same_residue(ref, ans)
    if isinstance(ref, Named) or isinstance(ans, Named):
        return _named(ref, ans, ctx)
    if isinstance(ref, Scalar) and isinstance(ans, Scalar):
        return same_scalar(ref, ans, ctx)
    if isinstance(ref, Clock) and isinstance(ans, Clock):
        return ref.seconds == ans.seconds and not (ref.half and ans.half and ref.half != ans.half)
    if isinstance(ref, Clock) and isinstance(ans, Scalar):
        return ans.decimals == 2 and ans.unit is None and _dotted(ans.node) == ref.seconds
    if isinstance(ref, Scalar) and isinstance(ans, Clock):
        # "2:30" beside a duration is hours and minutes.
        timed = ref.unit is not None and ref.unit.dimension == (("s", 1),) and not ans.half
        return timed and ref.unit is not None and equal(mul([ref.node, ref.unit.factor]), Fraction(ans.seconds))
    if isinstance(ref, Date) and isinstance(ans, Date):
        return (ref.month, ref.day) == (ans.month, ans.day) and (ref.year == ans.year or 0 in (ref.year, ans.year))
    if isinstance(ref, Sign) or isinstance(ans, Sign):
        return ref == ans
    if isinstance(ref, Based) or isinstance(ans, Based):
        return _same_based(ref, ans, ctx)
    if isinstance(ref, Ratio) or isinstance(ans, Ratio):
        return _same_ratio(ref, ans, ctx)
    if isinstance(ref, RealSet) and isinstance(ans, Relation) and len(variables(ans.difference)) < 2:
        return False  # "x - 2 >= 0" is still to be solved
    if isinstance(ref, Relation) and isinstance(ans, RealSet):
        ans = half_plane(ans) or ans
    elif isinstance(ans, Relation) and isinstance(ref, RealSet):
        ref = half_plane(ref) or ref
    if isinstance(ref, RealSet) or isinstance(ans, RealSet):
        left, right = _set_beside(ref, ans), _set_beside(ans, ref)
        return left is not None and right is not None and same_set(left, right)
    if isinstance(ref, Relation) or isinstance(ans, Relation):
        return isinstance(ref, Relation) and isinstance(ans, Relation) and _same_relation(ref, ans)
    if isinstance(ref, Matrix) or isinstance(ans, Matrix):
        return _same_matrix(ref, ans)
    if isinstance(ref, Items) or isinstance(ans, Items):
        return same_items(ref, ans, ctx, same)
    return False


def _dotted(node: Node) -> int:
    """The seconds since midnight of ``15.45``, -1 if it is no time."""
    if not isinstance(node, Fraction) or not 0 <= node < 24:
        return -1
    minutes = (node - int(node)) * 100
    return int(node) * 3600 + int(minutes) * 60 if minutes.denominator == 1 and minutes < 60 else -1


def _same_residue(ref: Value, ans: Value) -> bool:
    """Compare residue classes; ``x = 7k + 3`` is one beside another."""
    left, right = _as_residue(ref), _as_residue(ans)
    if left is None or right is None:
        return False
    if left.name and right.name and left.name != right.name:
        return False
    return (left.values, left.modulus) == (right.values, right.modulus)


def _as_residue(value: Value) -> Residue | None:
    if isinstance(value, Residue):
        return value
    if isinstance(value, Named) and isinstance(value.value, Scalar):
        found = progression(value.value.node)
        return None if found is None else Residue(value.name, found.values, found.modulus)
    return progression(value.node) if isinstance(value, Scalar) else None


def _named(ref: Value, ans: Value, ctx: Context) -> bool:
    if isinstance(ref, Named) and isinstance(ans, Named):
        if ref.name and ans.name and not _same_name(ref.name, ans.name):
            left, right = _as_relation(ref), _as_relation(ans)
            return (
                left is not None
                and right is not None
                and bool(variables(_scalar_node(ref.value)))
                and _same_relation(left, right)
            )
        return same(ref.value, ans.value, ctx)
    if isinstance(ans, Named):
        if isinstance(ref, Relation):
            relation = _as_relation(ans)
            return relation is not None and _same_relation(ref, relation)
        return same(ref, ans.value, ctx)
    assert isinstance(ref, Named)
    if isinstance(ans, Relation):
        if not variables(_scalar_node(ref.value)):
            return False  # "2x = 6" is still to be solved
        relation = _as_relation(ref)
        return relation is not None and _same_relation(relation, ans)
    return same(ref.value, ans, ctx)


_CALLED = re.compile(r"([A-Za-z][^()]{0,8})\(([a-z])\)")
_INDEXED = re.compile(r"([A-Za-z])_([a-z])")


def _same_name(ref: str, ans: str) -> bool:
    """``y`` is the value of any function of x, and ``a(n)`` is ``a_n``."""
    left, right = (_INDEXED.sub(r"\1(\2)", name) for name in (ref, ans))
    if left.casefold() == right.casefold():
        return True
    if left[1:] == right[1:] == "(n)":
        return True  # the letter of a sequence is free
    return "y" in (left, right) and all(
        name == "y" or (_CALLED.fullmatch(name) or [""] * 3)[2] == "x" for name in (left, right)
    )


def _scalar_node(value: Value) -> Node:
    return value.node if isinstance(value, Scalar) else Fraction(0)


def _as_relation(named: Named) -> Relation | None:
    if len(named.name) != 1 or not isinstance(named.value, Scalar):
        return None
    left, right = ("v", named.name), named.value.node
    return Relation("=", add([left, neg(right)]), (left, right))


def _same_relation(ref: Relation, ans: Relation) -> bool:
    if ref.kind != ans.kind:
        return False
    if variables(ref.difference) != variables(ans.difference):
        return False
    if equal(ref.difference, ans.difference):
        return True
    scale = ratio(ref.difference, ans.difference)
    return scale is not None and (scale > 0 or ref.kind in ("=", "!="))


def _same_choice(ref: Choice, ans: Choice, ctx: Context) -> bool:
    if ref.letters != ans.letters:
        return False
    if len(ref.letters) > 1 or not ans.content:
        return True
    expected = ref.content or ctx.options.get(min(ref.letters), "")
    if not expected:
        return not _unsure(ans.content)
    return any(same(a, b, ctx) for a in read(expected) for b in read(ans.content)) or words_of(
        ans.content
    ).words.startswith(words_of(expected).words + " ")


_UNSURE = re.compile(r"\b(?:or|not|maybe|perhaps|either|\(?[A-J]\))(?:\b|\s)")


def _unsure(content: str) -> bool:
    return _UNSURE.search(content) is not None


def _same_based(ref: Value, ans: Value, ctx: Context) -> bool:
    if isinstance(ref, Based) and isinstance(ans, Based):
        # The same number in the base that it is to be converted from is no answer.
        return ref.value == ans.value and ref.base == ans.base
    if isinstance(ref, Based) and isinstance(ans, Scalar) and isinstance(ans.node, Fraction):
        # A bare numeral is one in the reference's base.
        bare = in_base(str(ans.node), ref.base) if ans.node.denominator == 1 and abs(ans.node) < 10**200 else None
        return bare is not None and bare.value == ref.value
    if isinstance(ans, Based) and isinstance(ref, Scalar):
        # A bare reference is a numeral of the base that the question asks for.
        return (
            (str(ref.node), ctx.base) == (ans.digits, ans.base)
            if ctx.base and ans.base != 10
            else ref.node == ans.value
        )
    return False


def _same_ratio(ref: Value, ans: Value, ctx: Context) -> bool:
    if isinstance(ref, Ratio) and isinstance(ans, Ratio):
        a, b = ref.parts, ans.parts
        return (
            len(a) == len(b)
            and all(equal(mul([a[0], y]), mul([x, b[0]])) for x, y in zip(a[1:], b[1:], strict=True))
            and (len(a) < 2 or _nonzero(b))
        )
    if isinstance(ans, Ratio) and ctx.chance:
        return False  # "3 to 10" are odds
    ratios, other = (ref, ans) if isinstance(ref, Ratio) else (ans, ref)
    if isinstance(ratios, Ratio) and isinstance(other, Scalar) and len(ratios.parts) == 2 and other.unit is None:
        return _nonzero(ratios.parts) and equal(mul([other.node, ratios.parts[1]]), ratios.parts[0])
    return False


def _nonzero(parts: tuple[Node, ...]) -> bool:
    return all(part != 0 for part in parts)


def _set_beside(value: Value, other: Value) -> RealSet | None:
    """Read ``(1, 2)`` as an interval beside an interval; a single point only as a set."""
    if isinstance(value, Items) and isinstance(other, RealSet):
        found = as_set(value)
        # (-2, -3) is a point rather than an interval of no numbers.
        return None if found is None or (value.items and same_set(found, RealSet(()))) else found
    return value if isinstance(value, RealSet) else None


def _same_matrix(ref: Value, ans: Value) -> bool:
    if isinstance(ref, Items) and isinstance(ans, Matrix) and len(ans.rows) == 1:
        return False
    if isinstance(ref, Matrix) and isinstance(ans, Matrix):
        return len(ref.rows) == len(ans.rows) and all(
            len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(ref.rows, ans.rows, strict=True)
        )
    return False
