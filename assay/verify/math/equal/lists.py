"""When two lists, tuples, vectors or sets of values are the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

from assay.verify.math.equal.numbers import same_scalar
from assay.verify.math.expressions.evaluate import approximate
from assay.verify.math.expressions.nodes import Node, Unreadable, add, mentions, mul, variables
from assay.verify.math.expressions.values import Items, Named, Scalar, Text, Value
from assay.verify.math.question.context import Context
from assay.verify.math.read.written import components

Same = Callable[[Value, Value, Context], bool]
MAX_UNORDERED = 60
_ALIASES = {"[": "(", "⟨": "(", "v": "(", "r": "("}


def same_items(ref: Value, ans: Value, ctx: Context, same: Same) -> bool:
    """Compare lists, tuples and sets; where only one side is several values, they have to be one value in truth."""
    if not isinstance(ref, Items) or not isinstance(ans, Items):
        several, single = (ref, ans) if isinstance(ref, Items) else (ans, ref)
        assert isinstance(several, Items)
        # "0.5 or 1/2" is one answer; "{5}" is 5.
        if several is ref and len(several.items) > 1 and not all(same(several.items[0], v, ctx) for v in several.items):
            vector = _complex_vector(single, len(several.items))
            if vector is not None:
                return same_items(ref, vector, ctx, same)
            return _summed(several, single, ctx)
        if several is ans and isinstance(single, Scalar) and _summed(several, single, ctx):
            return True
        if several.brackets not in ("", "{") and len(several.items) > 1:
            return False
        return bool(several.items) and all(
            (same(v, single, ctx) if several is ref else same(single, v, ctx)) for v in several.items
        )
    if _interval_beside_values(ref, ans, ctx):
        return False
    a, b = ref.items, ans.items
    left, right = _ALIASES.get(ref.brackets, ref.brackets), _ALIASES.get(ans.brackets, ans.brackets)
    if {left, right} == {"(", "{"} and not (left == "{" and ans.brackets == "["):
        return False
    if {ref.brackets, ans.brackets} == {"(", "["} and len(a) == 2 == len(b):
        return False
    named = _assignments(ref), _assignments(ans)
    if named[0] is not None and named[1] is not None:
        return named[0].keys() == named[1].keys() and all(same(named[0][k], named[1][k], ctx) for k in named[0])
    if (named[0] is not None and right == "{") or (named[1] is not None and left == "{"):
        return False  # a set says not which of them is x
    a, b = _in_name_order(ref, named[0]), _in_name_order(ans, named[1])
    if named[0] is not None or named[1] is not None:
        return len(a) == len(b) and all(same(x, y, ctx) for x, y in zip(a, b, strict=True))
    unordered = left in ("", "{") and right in ("", "{") and ("{" in (left, right) or not ctx.ordered)
    if not unordered or (left == "" and all(isinstance(v, Text) for v in a)):
        return len(a) == len(b) and all(same(x, y, ctx) for x, y in zip(a, b, strict=True))
    return _same_set_of(a, b, ctx, left, same)


def _interval_beside_values(ref: Items, ans: Items, ctx: Context) -> bool:
    """Say whether one side is an interval, by its brackets and the question, and the other a few values."""
    one, other = (ref, ans) if ref.brackets == "[" else (ans, ref)
    if one.brackets != "[" or other.brackets not in ("", "{") or len(one.items) != 2:
        return False
    # "[-11, 15]" is no list of solutions, and "-9 or -5" no interval.
    return ctx.interval if one is ref else ctx.equation and _ascending(one.items)


def _ascending(items: tuple[Value, ...]) -> bool:
    nodes = [v.node for v in items if isinstance(v, Scalar)]
    ends = [approximate(node) for node in nodes if not variables(node)]
    return len(ends) == 2 and ends[0] is not None and ends[1] is not None and ends[0].real < ends[1].real


def _same_set_of(a: tuple[Value, ...], b: tuple[Value, ...], ctx: Context, brackets: str, same: Same) -> bool:
    if len(a) > MAX_UNORDERED or len(b) > MAX_UNORDERED:
        return len(a) == len(b) and all(same(x, y, ctx) for x, y in zip(a, b, strict=True))
    if brackets == "{" or len(a) != len(b):
        a, b = _distinct(a, ctx, same), _distinct(b, ctx, same)
    if len(a) != len(b):
        return False
    left = list(b)
    for value in a:
        place = next((k for k, other in enumerate(left) if same(value, other, ctx)), None)
        if place is None:
            return False
        left.pop(place)
    return True


def _distinct(values: tuple[Value, ...], ctx: Context, same: Same) -> tuple[Value, ...]:
    found: list[Value] = []
    for value in values:
        if not any(same(other, value, ctx) for other in found):
            found.append(value)
    return tuple(found)


def _assignments(value: Items) -> dict[str, Value] | None:
    if value.brackets in ("", "{") and all(isinstance(v, Named) and v.name for v in value.items):
        named = {v.name: v.value for v in value.items if isinstance(v, Named)}
        return named if len(named) == len(value.items) > 1 else None
    return None


def _in_name_order(value: Items, named: dict[str, Value] | None) -> tuple[Value, ...]:
    return value.items if named is None else tuple(named[k] for k in sorted(named))


def _summed(several: Items, single: Value, ctx: Context) -> bool:
    """``2 hours and 30 minutes`` is one quantity: known units of one kind, each smaller than the one before."""
    parts = several.items
    if several.brackets or not isinstance(single, Scalar) or not 2 <= len(parts) <= 4:
        return False
    units = [v.unit for v in parts if isinstance(v, Scalar) and v.unit is not None and v.unit.known]
    if len(units) != len(parts) or len({u.dimension for u in units}) != 1:
        return False
    if any(x.factor <= y.factor for x, y in itertools.pairwise(units)):
        return False
    total = add([mul([v.node, u.factor]) for v, u in zip(parts, units, strict=True) if isinstance(v, Scalar)])
    whole = Scalar(mul([total, 1 / units[-1].factor]), units[-1])
    return same_scalar(single, whole, ctx) or same_scalar(Scalar(single.node, single.unit), whole, ctx)


def _complex_vector(value: Value, size: int) -> Items | None:
    """``i + 2j`` beside a vector: the letters are unit vectors there."""
    if not isinstance(value, Scalar) or size not in (2, 3):
        return None
    names = variables(value.node)
    if not names <= {"j", "k"} or not (names or mentions(value.node, ("c", "i"))):
        return None
    renamed = _rename(value.node)
    try:
        found = components(renamed)
    except Unreadable:  # no linear combination of unit vectors
        return None
    if found is None:
        return None
    items = found.items + (Scalar(Fraction(0)),) * (size - len(found.items))
    return Items(items[:size], "v") if len(found.items) <= size else None


def _rename(node: Node) -> Node:
    table = {("c", "i"): ("v", "î"), ("v", "j"): ("v", "ĵ"), ("v", "k"): ("v", "k̂")}
    if isinstance(node, Fraction) or node in table:
        return table.get(node, node)
    if node[0] in "+*":
        return (node[0], tuple(_rename(child) for child in node[1]))
    return node
