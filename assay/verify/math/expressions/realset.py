"""Sets of real numbers as unions of intervals, and the inequalities that describe them."""

from __future__ import annotations

from dataclasses import replace

from assay.verify.math.expressions.evaluate import approximate
from assay.verify.math.expressions.identity import equal
from assay.verify.math.expressions.nodes import Node, Unreadable, add, neg, variables
from assay.verify.math.expressions.values import Items, Piece, RealSet, Relation, Scalar, Value

REALS = RealSet((Piece(None, False, None, False),))
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
INFINITY = float("inf")


def point(node: Node) -> RealSet:
    return RealSet((Piece(node, True, node, True),))


def place(node: Node | None, default: float) -> float:
    """The end of an interval on the real line.

    Raises:
        Unreadable: it is not a real constant.
    """
    if node is None:
        return default
    value = approximate(node)
    if value is None or abs(value.imag) > 1e-9 * (1 + abs(value.real)):
        raise Unreadable("an interval whose ends are not real")
    return value.real


def _ends(piece: Piece) -> tuple[float, float]:
    return place(piece.low, -INFINITY), place(piece.high, INFINITY)


def union(sets: list[RealSet]) -> RealSet:
    """The union, with touching pieces joined, in order."""
    name = next((s.name for s in sets if s.name), "")
    pieces = [p for s in sets for p in s.pieces]
    keyed = sorted(((*_ends(p), p) for p in pieces), key=lambda entry: (entry[0], not entry[2].low_closed, entry[1]))
    merged: list[Piece] = []
    top = -INFINITY
    for low, high, piece in keyed:
        if low > high or (low == high and not (piece.low_closed and piece.high_closed)):
            continue
        if merged and (low < top or (low == top and (piece.low_closed or merged[-1].high_closed))):
            last = merged[-1]
            if high > top:
                merged[-1] = replace(last, high=piece.high, high_closed=piece.high_closed)
            elif high == top and piece.high_closed:
                merged[-1] = replace(last, high_closed=True)
        else:
            merged.append(piece)
        top = max(top, high)
    return RealSet(tuple(merged), name)


def complement(taken: RealSet) -> RealSet:
    pieces: list[Piece] = []
    low: Node | None = None
    closed, open_ended = False, True
    for piece in union([taken]).pieces:
        if piece.low is not None:
            pieces.append(Piece(low, closed, piece.low, not piece.low_closed))
        low, closed, open_ended = piece.high, not piece.high_closed, piece.high is not None
    if open_ended:
        pieces.append(Piece(low, closed and low is not None, None, False))
    return RealSet(
        tuple(p for p in pieces if p.low is None or p.high is None or _ends(p)[0] <= _ends(p)[1]), taken.name
    )


def intersection(sets: list[RealSet]) -> RealSet:
    joined = complement(union([complement(s) for s in sets]))
    return replace(joined, name=next((s.name for s in sets if s.name), ""))


def same_set(reference: RealSet, answer: RealSet) -> bool:
    """Equal as sets; pieces whose ends hold variables are compared one by one."""
    if reference.name and answer.name and reference.name != answer.name:
        return False
    try:
        left, right = union([reference]).pieces, union([answer]).pieces
    except Unreadable:
        left, right = reference.pieces, answer.pieces
    return len(left) == len(right) and all(_same_piece(a, b) for a, b in zip(left, right, strict=True))


def _same_piece(a: Piece, b: Piece) -> bool:
    if a.low_closed != b.low_closed or a.high_closed != b.high_closed:
        return False
    return all((x is None) == (y is None) and (x is None or equal(x, y)) for x, y in ((a.low, b.low), (a.high, b.high)))


def solution(sides: list[Node | str], signs: list[str]) -> Value:
    """Read a chain of inequalities: an interval of the one variable that stands alone, else a relation of two sides."""
    alone = [k for k, side in enumerate(sides) if not isinstance(side, str) and _variable(side)]
    if len(alone) == 1 and len(sides) <= 3:
        k = alone[0]
        name = _variable(sides[k])
        others = [side for j, side in enumerate(sides) if j != k]
        if all(isinstance(o, str) or name not in variables(o) for o in others):
            sets = []
            if k > 0:
                sets.append(_half_line(_FLIPPED[signs[k - 1]], sides[k - 1]))
            if k < len(sides) - 1:
                sets.append(_half_line(signs[k], sides[k + 1]))
            if len(sides) == 3 and k != 1:
                raise Unreadable("a chain of relations")
            if len(sets) == 2 and all(len(s.pieces) == 1 for s in sets):
                first, second = sets[0].pieces[0], sets[1].pieces[0]
                if first.high is None and second.low is None:
                    return RealSet((Piece(first.low, first.low_closed, second.high, second.high_closed),), name)
                if first.low is None and second.high is None:
                    return RealSet((Piece(second.low, second.low_closed, first.high, first.high_closed),), name)
                return replace(intersection(sets), name=name)
            return replace(sets[0], name=name)
    if len(sides) != 2 or any(isinstance(side, str) for side in sides):
        raise Unreadable("a chain of relations")
    left, right = sides
    if not variables(left) and not variables(right):
        raise Unreadable("a relation of constants")
    kind = signs[0]
    if kind in (">", ">="):
        left, right, kind = right, left, _FLIPPED[kind]
    return Relation(kind, add([left, neg(right)]), (left, right))


def half_plane(found: RealSet) -> Relation | None:
    """Write ``y < 3 - x``, read as a half line of y, as a relation of both variables."""
    if len(found.pieces) != 1 or not found.name:
        return None
    piece, variable = found.pieces[0], ("v", found.name)
    if piece.low is None and piece.high is not None:
        left, right, closed = variable, piece.high, piece.high_closed
    elif piece.high is None and piece.low is not None:
        left, right, closed = piece.low, variable, piece.low_closed
    else:
        return None
    return Relation("<=" if closed else "<", add([left, neg(right)]), (left, right))


def _variable(side: Node | str) -> str:
    return side[1] if isinstance(side, tuple) and side[0] == "v" else ""


def _half_line(sign: str, end: Node | str) -> RealSet:
    if isinstance(end, str):
        return REALS
    if sign == "!=":
        return complement(point(end))
    if sign in (">", ">="):
        return RealSet((Piece(end, sign == ">=", None, False),))
    return RealSet((Piece(None, False, end, sign == "<="),))


def as_set(value: Value) -> RealSet | None:
    """Read a value as a set of real numbers: an open interval written as a pair, a set of points."""
    if isinstance(value, RealSet):
        return value
    if isinstance(value, Items) and all(isinstance(v, Scalar) for v in value.items):
        nodes = [v.node for v in value.items if isinstance(v, Scalar)]
        if value.brackets in ("(", "[") and len(nodes) == 2:
            closed = value.brackets == "["
            return RealSet((Piece(nodes[0], closed, nodes[1], closed),))
        if value.brackets == "{":
            return RealSet(tuple(piece for node in nodes for piece in point(node).pieces))
    return None
