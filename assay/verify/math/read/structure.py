"""The outer structure of an answer: lists, equations, intervals, sets, matrices, quantities with units."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TypeGuard

from assay.verify.math.expressions.evaluate import approximate
from assay.verify.math.expressions.identity import equal
from assay.verify.math.expressions.nodes import Unreadable, add, mul, neg, variables
from assay.verify.math.expressions.realset import (
    REALS,
    as_set,
    complement,
    intersection,
    point,
    solution,
    union,
)
from assay.verify.math.expressions.values import (
    Items,
    Matrix,
    Named,
    Ratio,
    RealSet,
    Relation,
    Scalar,
    Value,
)
from assay.verify.math.read.brackets import MAX_ITEMS, Brackets
from assay.verify.math.read.cutting import CLOSE, OPEN
from assay.verify.math.read.latex import UNIT_VECTORS
from assay.verify.math.read.parse import splits
from assay.verify.math.read.quantity import HEDGES, quantity
from assay.verify.math.read.tokens import Token
from assay.verify.math.read.written import (
    components,
    expression,
    expression_or_infinity,
    is_op,
    literal,
    name_of,
    numeral,
    operation,
)

_RELATIONS = frozenset(("=", "<", ">", "<=", ">=", "!=", "≈", "∈"))
_OF_SETS = frozenset("∪∩∖∅ℝU")
_UNIT_VECTORS = frozenset(UNIT_VECTORS)


class Reader(Brackets):
    """Reads a whole answer from its tokens; everything raises :class:`Unreadable` on what is no mathematics."""

    def readings(self) -> list[Value]:
        arrows = self.split("⇒")
        if len(arrows) > 1:
            return self.sub(arrows[-1]).readings()
        try:
            found = [self.value()]
        except Unreadable:
            found = []
        first = self.tokens[0]
        if found and isinstance(found[0], Named) and isinstance(found[0].value, Scalar) and found[0].value.unit is None:
            # "t = 3 h" may be a time too.
            right = self.split("=")[-1]
            found += [Named(found[0].name, v) for v in quantity(right) if v != found[0].value] if len(right) > 1 else []
        # "5 m" is a length; where that fails, or is not what the reference is, a product.
        if len(self.tokens) > 1 and not (
            found
            and isinstance(found[0], Scalar)
            and found[0].unit is None
            and not any(t.kind in ("id", "word") for t in self.tokens)
        ):
            alternatives = quantity(self.tokens)
            found += [v for v in alternatives if v not in found]
            if not found and is_op(first, "{") and is_op(self.tokens[-1], "}"):
                found = self.sub(self.tokens[1:-1]).readings()
        return found

    def value(self) -> Value:
        if (number := numeral(self.tokens)) is not None:
            return literal(number, self.tokens)
        first, last = self.tokens[0], self.tokens[-1]
        if is_op(first, "<") and is_op(last, ">") and len(self.tokens) > 3:
            parts = self.sub(self.tokens[1:-1]).split(",")
            if len(parts) > 1:
                return Items(tuple(self.sub(p).value() for p in parts), "⟨")
        items = [part for part in self.split(",", ";", "or", "and", "\n", "&") if part]
        if len(items) > 1:
            return self.items(items)
        if len(self.tokens) != sum(map(len, items)) and items:
            return self.sub(items[0]).value()
        return self.single()

    def items(self, parts: list[list[Token]]) -> Value:
        if len(parts) > MAX_ITEMS:
            raise Unreadable("too many values")
        values: list[Value] = []
        for part in parts:
            try:
                value = self.sub(part).value()
            except Unreadable:
                alternatives = quantity(part)
                if not alternatives:
                    raise
                value = alternatives[0]
            values += value.items if isinstance(value, Items) and not value.brackets else [value]
        conjunction = any(t.kind == "word" and t.text == "and" for t in self.tokens)
        if all(isinstance(v, RealSet) and v.name for v in values):
            sets = [v for v in values if isinstance(v, RealSet)]
            return (intersection if conjunction or not any(t.text == "or" for t in self.tokens) else union)(sets)
        # "x = 1, 2" names the first only.
        head = values[0]
        if isinstance(head, Named) and head.name and all(not isinstance(v, Named) for v in values[1:]):
            values[0] = head.value
        elif (
            all(isinstance(v, Named) for v in values)
            and len({_stem(v.name) for v in values if isinstance(v, Named)}) == 1
        ):
            values = [v.value for v in values if isinstance(v, Named)]
        if len(values) > 1 and isinstance(values[0], RealSet) and not all(isinstance(v, RealSet) for v in values):
            raise Unreadable("sets and values")
        return Items(tuple(values))

    def single(self) -> Value:
        tokens, texts = self.tokens, self.texts
        if ("±" in texts or "∓" in texts) and not (self.closes_at_end() and tokens[0].text in "{⦃("):
            return self.plus_minus()
        if not _RELATIONS.isdisjoint(texts):
            sides = self.split(*_RELATIONS)
            if len(sides) > 1:
                return self.relation(sides)
        if not _OF_SETS.isdisjoint(texts):
            found = self.set_expression()
            if found is not None:
                return found
        if self.closes_at_end():
            found = self.bracketed()
            if found is not None:
                return found
        elif tokens[0].kind == "id" and tokens[0].text.isupper() and len(tokens) > 5:
            # A point with its letter, "P(1, 2)".
            rest = self.sub(tokens[1:])
            if tokens[1].text == "(" and rest.closes_at_end() and len(self.sub(tokens[2:-1]).split(",")) > 1:
                return rest.value()
        if (scaled := self.scaled_matrix()) is not None:
            return scaled
        if tokens[0].kind == "op" and tokens[0].text in "([])" and tokens[-1].text in "()[]":
            found = self.interval()
            if found is not None:
                return found
        if ":" in texts:
            parts = self.split(":")
            return Ratio(tuple(expression(part) for part in parts))
        if "to" in texts:
            parts = self.split("to")
            if 2 <= len(parts) <= 4:
                return Ratio(tuple(expression(part) for part in parts))
        return self.scalar()

    def scaled_matrix(self) -> Matrix | None:
        """``1/5 [[1, 2], [3, 4]]``: a factor in front of a matrix."""
        tokens = self.tokens
        if tokens[-1].text not in ("⟫", "]") or is_op(tokens[0], "⟪"):
            return None
        for place in range(1, len(tokens)):
            if is_op(tokens[place], "⟪") or (is_op(tokens[place], "[") and is_op(tokens[place + 1], "[")):
                rest = self.sub(tokens[place:])
                head = tokens[: place - 1] if is_op(tokens[place - 1], "*") else tokens[:place]
                matrix = rest.value() if rest.closes_at_end() and head else None
                if not isinstance(matrix, Matrix):
                    return None
                factor = Fraction(-1) if len(head) == 1 and is_op(head[0], "-") else expression(head)
                return Matrix(tuple(tuple(mul([factor, cell]) for cell in row) for row in matrix.rows))
        return None

    def scalar(self) -> Value:
        if len(self.tokens) == 1 and self.tokens[0].kind == "word" and not self.tokens[0].text.islower():
            raise Unreadable("a word")
        if len(self.tokens) > 1 and is_op(self.tokens[-1], "%"):
            # "200/3 %" is two hundred thirds of a percent.
            return literal(mul([expression(self.tokens[:-1]), Fraction(1, 100)]), self.tokens)
        node = expression(self.tokens)
        if not _UNIT_VECTORS.isdisjoint(self.texts) and (vector := components(node)) is not None:
            return vector
        if node == ("c", "i") and len(self.tokens) == 1:
            return Scalar(node)
        return literal(node, self.tokens)

    def plus_minus(self) -> Value:
        values: list[Value] = []
        for first, second in (("+", "-"), ("-", "+")):
            swap = {"±": first, "∓": second}
            tokens = [t._replace(text=swap[t.text]) if t.kind == "op" and t.text in swap else t for t in self.tokens]
            value = self.sub(tokens).value()
            if isinstance(value, Named):
                value = value.value
            values.append(value)
        return Items(tuple(values))

    def relation(self, sides: list[list[Token]]) -> Value:
        signs = self.relations()
        if len(signs) != len(sides) - 1:
            raise Unreadable("relations")
        if "≈" in signs:
            # What stands before the sign is exact, if it is a value at all.
            place = signs.index("≈")
            try:
                return self.sub(_join(sides[: place + 1], signs[:place])).value()
            except Unreadable:
                value = self.sub(sides[-1]).value()
                return replace(value, inexact=True) if isinstance(value, Scalar) else value
        if signs == ["∈"]:
            value = self.sub(sides[1]).value()
            name = name_of(sides[0])
            if isinstance(value, Items) and value.brackets == "{":
                return value
            value = as_set(value) or value
            if isinstance(value, RealSet):
                return RealSet(value.pieces, name)
            return value
        if all(sign == "=" for sign in signs):
            return self.equation(sides)
        if "∈" in signs:
            raise Unreadable("∈")
        return solution([expression_or_infinity(side) for side in sides], signs)

    def relations(self) -> list[str]:
        """The signs of relation outside all brackets."""
        found, depth = [], 0
        for token in self.tokens:
            if token.kind == "op":
                depth += (token.text in OPEN) - (token.text in CLOSE)
                if depth == 0 and token.text in _RELATIONS:
                    found.append(token.text)
        return found

    def equation(self, sides: list[list[Token]]) -> Value:
        sides = [side for side in sides if side]
        if not sides:
            raise Unreadable("=")
        right = sides[-1]
        if len(sides) == 1:
            return self.sub(right).value()
        # "we obtain x = 5": the words before the left side are none of it.
        words = [k for k, t in enumerate(sides[0]) if t.kind == "word" and not splits(t.text)]
        if words and words[-1] < len(sides[0]) - 1 and not any(sides[0][k].text.casefold() in HEDGES for k in words):
            return self.equation([sides[0][words[-1] + 1 :], *sides[1:]])
        name = name_of(sides[0])
        if not name and not operation(sides[0]):
            try:
                left_node, right_node = expression(sides[0]), expression(right)
                if variables(left_node) and len(sides) == 2:
                    if not name_of(right) and equal(left_node, right_node):
                        # An identity, "x^2 - 1 = (x - 1)(x + 1)": the right side is its result.
                        return Named("", literal(right_node, right))
                    if (swapped := name_of(right)) and swapped not in variables(left_node):
                        return Named(swapped, literal(left_node, sides[0]))
                    return Relation("=", add([left_node, neg(right_node)]), (left_node, right_node))
                if len(sides) == 2 and not variables(left_node) and len(variables(right_node)) > 1:
                    return Relation("=", add([left_node, neg(right_node)]), (left_node, right_node))
                if (swapped := name_of(right)) and len(sides) == 2:
                    return Named(swapped, literal(left_node, sides[0]))
                if len(sides) == 2 and len(sides[0]) == 1 and approximate(left_node) != approximate(right_node):
                    raise Unreadable("a false equation")
            except Unreadable as error:
                if str(error) == "a false equation":
                    raise
        if any(t.kind == "word" and t.text.casefold() in HEDGES for t in sides[0]):
            raise Unreadable("a doubtful equation")
        readings = self.sub(right).readings()
        if not readings:
            raise Unreadable("=")
        value = readings[0]
        if isinstance(value, Named):
            return value
        # y = 2y + 1 is an equation, y = 2x + 1 a value for y.
        if name and isinstance(value, Scalar) and name in variables(value.node):
            left = expression(sides[0])
            return Relation("=", add([left, neg(value.node)]), (left, value.node))
        return Named(name, value)

    def set_expression(self) -> Value | None:
        texts = [t.text for t in self.tokens]
        sign = next((s for s in ("∪", "U", "∩", "∖") if s in texts), None)
        if sign is None:
            if texts in (["ℝ"], ["(", "-", "∞", ",", "∞", ")"]):
                return REALS
            return RealSet(()) if texts == ["∅"] else None
        parts = self.split(sign)
        if len(parts) < 2:
            return None
        values = [self.sub(p).value() for p in parts]
        # "ℝ∖{2}" where the braces only group.
        sets = [point(v.node) if sign == "∖" and isinstance(v, Scalar) else as_set(v) for v in values]
        if not _all_sets(sets):
            return None
        if sign in ("∪", "U"):
            return union(sets)
        return intersection(sets) if sign == "∩" else intersection([sets[0], complement(union(sets[1:]))])


def _stem(name: str) -> str:
    """``x_1`` and ``x_2`` are two values of x."""
    head, _, index = name.partition("_")
    return head if index.isdecimal() else name


def _join(sides: list[list[Token]], signs: list[str]) -> list[Token]:
    joined = list(sides[0])
    for sign, side in zip(signs, sides[1:], strict=True):
        joined += [Token("op", sign), *side]
    return joined


def _all_sets(sets: list[RealSet | None]) -> TypeGuard[list[RealSet]]:
    return all(s is not None for s in sets)
