"""What shapes the matrices and vectors of a formula have to be of for it to make sense."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from assay.verify.math.matrices.read import Node, Unreadable

Over = dict[str, tuple[str, int]]
"""The indices of the sums and products around, with their bounds and the term."""
ONE = 0
"""The dimension that is 1."""


class Mismatch(Exception):
    """Things of different shapes are added, or multiplied the wrong way round."""


def named(name: str, over: Over) -> tuple[str, str]:
    """Return a name without the indices that run, and the terms they are at."""
    terms = ""
    for index, (bounds, term) in over.items():
        if name == index:
            return f"#@{bounds}", f"{terms}.{term}"
        base, found, rest = name.partition("_")
        if found and index in rest:
            name, terms = f"{base}_{rest.replace(index, '#')}@{bounds}", f"{terms}.{term}"
    return name, terms


@dataclass(slots=True)
class Shapes:
    """Dimensions of which some are known to be the same, and some to be numbers.

    Attributes:
        names: the two dimensions of a matrix or vector.
        eyes: the dimension of each identity, by its place.
    """

    names: dict[str, tuple[int, int]] = field(default_factory=dict)
    eyes: dict[Node, int] = field(default_factory=dict)
    over: list[int] = field(default_factory=lambda: [ONE])
    sizes: dict[int, int] = field(default_factory=lambda: {ONE: 1})

    def copy(self, sizes: dict[int, int]) -> Shapes:
        """Return the same with some dimensions told."""
        return Shapes(dict(self.names), dict(self.eyes), [*self.over], {**self.sizes, **sizes})

    def meet(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Hold two shapes to be the same where they can be, so that an identity alone has the size of another."""
        with contextlib.suppress(Mismatch):
            self.join(one[0], other[0])
            self.join(one[1], other[1])

    def sides(self, sides: tuple[Node, ...]) -> tuple[int, int]:
        """Return the shape of an expression, or of both sides of an equation, see :meth:`of`."""
        found = [self.of(side) for side in sides]
        for other in found[1:]:
            self.join(found[0][0], other[0])
            self.join(found[0][1], other[1])
        return found[0]

    def new(self) -> int:
        self.over.append(len(self.over))
        return len(self.over) - 1

    def root(self, dim: int) -> int:
        while self.over[dim] != dim:
            dim = self.over[dim]
        return dim

    def join(self, a: int, b: int) -> None:
        """Hold two dimensions to be the same.

        Raises:
            Mismatch: they are different numbers.
        """
        a, b = self.root(a), self.root(b)
        if a == b:
            return
        if b in self.sizes and self.sizes[b] != self.sizes.setdefault(a, self.sizes[b]):
            raise Mismatch
        self.over[b] = a

    def size(self, dim: int, default: int) -> int:
        return self.sizes.get(self.root(dim), default)

    def free(self) -> list[int]:
        """Return the dimensions of names and identities that are no number as yet, each once."""
        used = [dim for pair in self.names.values() for dim in pair] + [*self.eyes.values()]
        return [dim for dim in dict.fromkeys(map(self.root, used)) if dim not in self.sizes]

    def of(self, node: Node, over: Over | None = None) -> tuple[int, int]:
        """Return the dimensions of a tree's value, and hold to be the same what has to be.

        Raises:
            Mismatch: there are none.
            Unreadable: they are not told.
        """
        inner, kind = over or {}, node[0]
        if kind == "eye":
            dim = self.eyes.setdefault(node, self.new())
            return dim, dim
        if kind == "sym":
            return (ONE, ONE) if node[1] == "scalar" else self._name(node[1], node[2], inner)
        if kind == "over":
            _, which, index, bounds, body = node
            shape = self.of(body, {**inner, index: (bounds, 0)})
            if which == "prod":
                self.join(*shape)
            return shape
        if kind == "call":
            shape = self.of(node[2], inner)
            if node[1] in ("tr", "det"):
                self.join(*shape)
            return ONE, ONE
        if kind in ("kron", "zero"):
            raise Unreadable("a shape that is not told")
        return self._made(kind, node, [self.of(part, inner) for part in node[1:] if isinstance(part, tuple)])

    def _name(self, kind: str, name: str, over: Over) -> tuple[int, int]:
        key = f"{kind} {named(name, over)[0]}"
        if key not in self.names:
            self.names[key] = (self.new(), self.new() if kind == "matrix" else ONE)
        return self.names[key]

    def _made(self, kind: str, node: Node, parts: list[tuple[int, int]]) -> tuple[int, int]:
        if kind == "mul":
            return self._product(*parts)
        if kind in ("add", "had"):
            for part in parts[1:]:
                self.join(parts[0][0], part[0])
                self.join(parts[0][1], part[1])
        if kind in ("pow", "abs"):
            self.join(*parts[0])
        if kind in ("num", "abs", "norm"):
            return ONE, ONE
        return parts[0][::-1] if kind == "sup" and node[2] != "*" else parts[0]

    def _product(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        for one, other in ((left, right), (right, left)):
            if all(self.size(dim, 0) == 1 for dim in one):
                return other
        self.join(left[1], right[0])
        return left[0], right[1]
