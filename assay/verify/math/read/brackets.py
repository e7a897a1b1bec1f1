"""What stands in brackets: tuples, sets, intervals, matrices."""

from __future__ import annotations

from assay.verify.math.expressions.nodes import Unreadable
from assay.verify.math.expressions.values import Items, Matrix, Piece, RealSet, Scalar, Value
from assay.verify.math.read.cutting import CLOSE, OPEN, Cutter
from assay.verify.math.read.tokens import Token
from assay.verify.math.read.written import expression, expression_or_infinity, is_op

PAIR = dict(zip(OPEN, CLOSE, strict=True))
MAX_ITEMS = 200


class Brackets(Cutter):
    """Reads tokens that one pair of brackets encloses."""

    def bracketed(self) -> Value | None:
        opening, closing = self.tokens[0].text, self.tokens[-1].text
        inner = self.tokens[1:-1]
        if not inner:
            return Items((), opening) if opening in "⦃[(" else None
        reader = self.sub(inner)
        if opening == "⟪":
            return _matrix(reader)
        if opening in "⦃{":
            condition = self.builder(inner)
            if condition is not None:
                return condition
        parts = reader.split(",", ";")
        if len(parts) == 1:
            return self.one_in_brackets(opening, closing, reader)
        if len(parts) > MAX_ITEMS or not all(parts):
            return None
        if opening in "[(" and len(parts) == 2 and (PAIR[opening] != closing or infinite(parts)):
            found = self.interval()
            if found is not None:
                return found
        values = tuple(_item(self.sub(p)) for p in parts)
        if opening == "(" and any(is_op(t, "±", "∓") for t in inner):
            raise Unreadable("alternatives in a tuple")
        if opening in "[(" and all(isinstance(v, Items) and v.brackets == opening for v in values):
            rows = [v.items for v in values if isinstance(v, Items)]
            if (
                opening == "["
                and len({len(row) for row in rows}) == 1
                and all(isinstance(v, Scalar) for r in rows for v in r)
            ):
                return Matrix(tuple(tuple(v.node for v in row if isinstance(v, Scalar)) for row in rows))
        if opening in "⦃{":
            flat = [w for v in values for w in (v.items if isinstance(v, Items) and not v.brackets else (v,))]
            return Items(tuple(flat), "{")
        return Items(values, opening)

    def one_in_brackets(self, opening: str, closing: str, reader: Cutter) -> Value | None:
        if opening in "⌊⌈" or PAIR[opening] != closing:
            return None
        if opening in "⦃[(":
            value = reader.value()
            if isinstance(value, Matrix) or (isinstance(value, Items) and value.brackets in ("v", "r")):
                return value
            if opening == "(":
                return value
            if opening == "⦃":
                whole = isinstance(value, Items) or (isinstance(value, RealSet) and not _empty(value))
                return value if whole else Items((value,), "{")
            return value if isinstance(value, Items) and value.brackets == "[" else Items((value,), opening)
        if opening in "({":
            return reader.value()
        return None

    def builder(self, inner: list[Token]) -> Value | None:
        """``{x | 1 < x < 2}``, ``{x ∈ ℝ : x > 0}``."""
        for place, token in enumerate(inner):
            if is_op(token, "|", ":") and 0 < place < len(inner) - 1:
                head = inner[:place]
                if head[0].kind == "id" and (len(head) == 1 or is_op(head[1], "∈")):
                    return self.sub(inner[place + 1 :]).value()
                return None
        return None

    def interval(self) -> Value | None:
        """``[1, 2)``, ``]1, 2]``, ``(-∞, 3]``."""
        opening, closing = self.tokens[0].text, self.tokens[-1].text
        if opening not in "([]" or closing not in ")][":
            return None
        parts = self.sub(self.tokens[1:-1]).split(",", ";")
        if len(parts) != 2 or not all(parts):
            return None
        low, high = (expression_or_infinity(part) for part in parts)
        low_end = None if low == "-∞" else low
        high_end = None if high == "∞" else high
        if isinstance(low_end, str) or isinstance(high_end, str):
            return None
        return RealSet(
            (Piece(low_end, opening == "[" and low_end is not None, high_end, closing == "]" and high_end is not None),)
        )


def _empty(value: RealSet) -> bool:
    return not value.pieces and not value.name


def _item(reader: Cutter) -> Value:
    try:
        return reader.value()
    except Unreadable:
        readings = reader.readings()
        if not readings:
            raise
        return readings[0]


def infinite(parts: list[list[Token]]) -> bool:
    return any(t.text == "∞" for part in parts for t in part)


def _matrix(reader: Cutter) -> Value:
    rows = [row for row in reader.split("\n") if row]
    cells = [[expression(cell) for cell in reader.sub(row).split("&", ",")] for row in rows]
    if not cells or len({len(row) for row in cells}) != 1 or len(cells) * len(cells[0]) > MAX_ITEMS:
        raise Unreadable("a matrix")
    if len(cells[0]) == 1 or len(cells) == 1:
        return Items(tuple(Scalar(c) for row in cells for c in row), "v" if len(cells[0]) == 1 else "r")
    return Matrix(tuple(map(tuple, cells)))
