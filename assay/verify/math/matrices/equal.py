"""Whether two formulas with matrices are equal: their values for matrices drawn at random are (Schwartz, Zippel)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.verify.math.matrices.read import Node, Unreadable, formula
from assay.verify.math.matrices.shapes import Mismatch, Over, Shapes, named

Sides = tuple[Node, ...]

SIZE = 3
"""Rows and columns of what stands for a matrix."""
TERMS = 3
"""Of a sum or a product over an index."""
DRAWS, CLOSE = 2, 1e-7
ORDERS = 10
"""Of sizes that are tried beside the two sorted ones."""
CONSTANTS = {"\\pi": complex(np.pi), "e": complex(np.e), "j": 1j, "i": 1j}
"""What numbers of such a name are, where it is no index that runs."""
WORST = 1e8
"""The condition of a matrix that is inverted, at most."""
MAX_STEPS, MAX_SIZE = 20_000, 81
"""What one formula may ask: parts worked out, and rows of a matrix."""


def same(reference: str, answer: str) -> bool | None:
    """Say whether an answer equals a reference; ``None`` where one of them cannot be read, or the reference makes no
    sense.

    Equal are those that are so for square matrices and for the most general shapes in which the reference makes sense,
    so that an inverse of a matrix that may be tall is not taken for one; where only the former holds, it is ``None``.

    Two equations are the same where both their sides are, perhaps the other way round, or the differences of their
    sides are, up to the sign and the conjugate transpose. An answer whose products have no sense is another.

    Args:
        reference, answer: in LaTeX, see :mod:`assay.verify.math.matrices.read`.
    """
    try:
        return _same(formula(reference), formula(answer))
    except (Unreadable, RecursionError):
        return None


def _same(ref: Sides, ans: Sides) -> bool | None:
    square = _compared(ref, ans, None)
    if square is not True:
        return square
    shapes = Shapes()
    try:
        shape = shapes.sides(ref)
    except Unreadable:
        return True
    except Mismatch:
        return None
    free = shapes.free()
    for sizes in _orders(len(free)):
        told = shapes.copy(dict(zip(free, sizes, strict=True)))
        try:
            told.meet(shape, told.sides(ans))
        except Mismatch:
            return None
        except Unreadable:
            return True
        found = _compared(ref, ans, told)
        if found is not None:
            return found or None
    return None


def _orders(n: int) -> Iterator[list[int]]:
    """Yield sizes for n dimensions in different orders; an inverse may exist in some of them alone."""
    rng = np.random.default_rng(0)
    rising = [*range(2, 2 + n)]
    yield rising
    yield rising[::-1]
    for _ in range(ORDERS):
        yield rng.permutation(rising).tolist()


def _compared(ref: Sides, ans: Sides, shapes: Shapes | None) -> bool | None:
    both = (*ref, *ans)
    waves = frozenset(name for side in both for name in _conjugated(side))
    waves -= {name for side in both for name in _angles(side)}
    for draw in range(DRAWS):
        values = Values(draw, waves, shapes)
        try:
            wanted = [values.of(side) for side in ref]
        except (Mismatch, ArithmeticError, np.linalg.LinAlgError):
            return None
        try:
            given = [values.of(side) for side in ans]
        except Mismatch:
            return False
        except (ArithmeticError, np.linalg.LinAlgError):
            return None
        if not all(np.all(np.isfinite(value)) for value in (*wanted, *given)):
            return None
        if not _agree(wanted, given):
            return False
    return True


def _agree(wanted: list[Any], given: list[Any]) -> bool:
    if len(wanted) != len(given):
        return False
    if len(wanted) == 1:
        return _near(wanted[0], given[0])
    if any(all(_near(a, b) for a, b in zip(wanted, order, strict=True)) for order in (given, given[::-1])):
        return True
    try:
        left, right = plus(wanted[0], times(-1.0, wanted[1])), plus(given[0], times(-1.0, given[1]))
    except Mismatch:
        return False
    return any(_near(left, times(sign, one)) for sign in (1.0, -1.0) for one in (right, turned(right, "H")))


def _near(a: Any, b: Any) -> bool:
    if np.shape(a) != np.shape(b):
        return False
    size = max(1e-9, float(np.linalg.norm(np.atleast_1d(a))), float(np.linalg.norm(np.atleast_1d(b))))
    gap = float(np.linalg.norm(np.atleast_1d(a - b)))
    return gap <= CLOSE * size


def _conjugated(node: Node) -> Iterator[str]:
    """Yield the numbers that stand where it matters that they are complex."""
    inside = (
        node[0] == "abs" or (node[0] == "sup" and node[2] != "T") or (node[0] == "call" and node[1] in ("Re", "Im"))
    )
    for part in node[1:]:
        if isinstance(part, tuple):
            yield from _named(part) if inside else _conjugated(part)


def _angles(node: Node) -> Iterator[str]:
    """Yield the numbers that a phase or an angle is made of, which are real."""
    inside = node[0] == "call" and node[1] in ("exp", "sin", "cos", "tan")
    for part in node[1:]:
        if isinstance(part, tuple):
            yield from _named(part) if inside else _angles(part)


def _named(node: Node) -> Iterator[str]:
    if node[0] == "sym" and node[1] == "scalar":
        yield node[2]
    for part in node[1:]:
        if isinstance(part, tuple):
            yield from _named(part)


def plus(a: Any, b: Any) -> Any:
    if np.shape(a) != np.shape(b):
        raise Mismatch
    return a + b


def times(a: Any, b: Any) -> Any:
    if not np.shape(a) or not np.shape(b):
        return a * b
    if a.shape[1] != b.shape[0]:
        raise Mismatch
    made = a @ b
    return complex(made[0, 0]) if made.shape == (1, 1) else made


class Values:
    """The values of formulas for numbers, vectors and matrices that follow from their names and the draw.

    Numbers are positive, but for those in ``waves``, which are complex.
    """

    def __init__(self, draw: int, waves: frozenset[str], shapes: Shapes | None = None):
        self.draw, self.waves, self.shapes, self.steps = draw, waves, shapes, 0

    def symbol(self, kind: str, name: str, over: Over) -> Any:
        base, terms = named(name, over)
        shape = self.shape(kind, base)
        if kind == "vector" and name.partition("_")[0] == "ones":
            return np.ones(shape, dtype=complex)
        words = f"{kind} {base} {terms}".encode("utf-8", "surrogatepass")
        rng = np.random.default_rng([zlib.crc32(words), self.draw])
        if kind == "scalar" and base in CONSTANTS:
            return CONSTANTS[base]
        if kind == "scalar":
            value = rng.uniform(0.5, 2.0)
            plain = base.partition("@")[0].replace("#", "")
            wave = any(plain == w or plain.partition("_")[0] == w.partition("_")[0] for w in self.waves)
            return complex(value * np.exp(1j * rng.uniform(0.3, 2.8))) if wave else complex(value)
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    def shape(self, kind: str, name: str) -> tuple[int, int]:
        if self.shapes is None or kind == "scalar":
            return SIZE, SIZE if kind == "matrix" else 1
        rows, columns = self.shapes.names[f"{kind} {name}"]
        return self.shapes.size(rows, SIZE), self.shapes.size(columns, SIZE)

    def of(self, node: Node, over: Over | None = None) -> Any:
        """Return the value of a tree: a complex number, or an array of two dimensions.

        Raises:
            Mismatch, Unreadable: it has none.
        """
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unreadable("too long")
        with np.errstate(all="ignore"):
            return self._of(node, over or {})

    def _of(self, node: Node, inner: Over) -> Any:
        kind = node[0]
        if kind == "num":
            return complex(node[1])
        if kind == "eye":
            size = SIZE if self.shapes is None else self.shapes.size(self.shapes.eyes[node], SIZE)
            return np.eye(size, dtype=complex)
        if kind == "zero":
            raise Unreadable("zeros of a shape that is not told")
        if kind == "sym":
            return self.symbol(node[1], node[2], inner)
        if kind == "over":
            return self._over(node, inner)
        if kind == "call":
            return self._called(node, inner)
        parts = [self.of(part, inner) for part in node[1:] if isinstance(part, tuple)]
        if kind == "add":
            total = parts[0]
            for part in parts[1:]:
                total = plus(total, part)
            return total
        if kind == "neg":
            return -parts[0]
        if kind == "mul":
            return times(*parts)
        if kind == "div":
            if np.shape(parts[1]):
                raise Mismatch
            return parts[0] / parts[1]
        if kind == "had":
            if np.shape(parts[0]) != np.shape(parts[1]):
                raise Mismatch
            return parts[0] * parts[1]
        if kind == "kron":
            made = np.kron(np.atleast_2d(parts[0]), np.atleast_2d(parts[1]))
            if max(made.shape) > MAX_SIZE:
                raise Unreadable("too large")
            return made
        if kind == "sup":
            return turned(parts[0], node[2])
        if kind == "pow":
            return power(*parts)
        if kind == "abs":
            return complex(abs(parts[0])) if not np.shape(parts[0]) else _determinant(parts[0])
        return _norm(parts[0], node[2])

    def _over(self, node: Node, over: Over) -> Any:
        _, kind, index, bounds, body = node
        total = None
        for k in range(TERMS):
            part = self.of(body, {**over, index: (bounds, k)})
            total = part if total is None else (plus if kind == "sum" else times)(total, part)
        return total

    def _called(self, node: Node, over: Over) -> Any:
        _, name, argument, base = node
        value = self.of(argument, over)
        if name == "tr":
            if np.shape(value) and value.shape[0] != value.shape[1]:
                raise Mismatch
            return complex(np.trace(value)) if np.shape(value) else value
        if name == "det":
            return _determinant(value)
        if np.shape(value):
            raise Unreadable(f"{name} of a matrix")
        if name in ("Re", "Im"):
            return complex(value.real if name == "Re" else value.imag)
        if name in ("log", "ln", "lg"):
            below = np.log(self.of(base, over)) if base is not None else np.log(10.0) if name == "lg" else 1.0
            return complex(np.log(complex(value)) / below)
        return complex(getattr(np, name)(complex(value)))


def turned(value: Any, how: str) -> Any:
    """Return the transpose (T), the conjugate (*) or both (H)."""
    if not np.shape(value):
        return value if how == "T" else complex(np.conj(value))
    value = value if how == "T" else value.conj()
    return value if how == "*" else value.T


def power(base: Any, exponent: Any) -> Any:
    if np.shape(exponent):
        raise Mismatch
    if not np.shape(base):
        return complex(base) ** complex(exponent)
    if base.shape[0] != base.shape[1]:
        raise Mismatch
    if exponent.imag or not abs(exponent.real) <= 20 or exponent.real != int(exponent.real):
        raise Unreadable("a power of a matrix that is no whole number")
    if exponent.real < 0 and not np.linalg.cond(base) < WORST:
        raise np.linalg.LinAlgError("singular")
    return np.linalg.matrix_power(base, int(exponent.real))


def _determinant(value: Any) -> complex:
    if not np.shape(value):
        return complex(value)
    if value.shape[0] != value.shape[1]:
        raise Mismatch
    return complex(np.linalg.det(value))


def _norm(value: Any, which: str) -> complex:
    if which not in ("", "2", "F"):
        raise Unreadable(f"norm {which}")
    if not np.shape(value):
        return complex(abs(value))
    if value.shape[1] == 1 or which == "F":
        return complex(np.linalg.norm(value))
    return complex(np.linalg.norm(value, 2))
