"""Whether two formulas with matrices are equal: their values for matrices drawn at random are (Schwartz, Zippel)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.verify.math.matrices.read import Node, Unreadable, formula

SIZE = 3
"""Rows and columns of what stands for a matrix."""
TERMS = 3
"""Of a sum or a product over an index."""
DRAWS, CLOSE = 2, 1e-7
MAX_STEPS, MAX_SIZE = 20_000, 81
"""What one formula may ask: parts worked out, and rows of a matrix."""


class Mismatch(Exception):
    """Things of different shapes are added, or multiplied the wrong way round."""


def same(reference: str, answer: str) -> bool | None:
    """Say whether an answer equals a reference; ``None`` where one of them cannot be read, or the reference makes no
    sense.

    Two equations are the same where both their sides are, perhaps the other way round, or the differences of their
    sides are, up to the sign. An answer whose products have no sense is another.

    Args:
        reference, answer: in LaTeX, see :mod:`assay.verify.math.matrices.read`.
    """
    try:
        return _same(formula(reference), formula(answer))
    except (Unreadable, RecursionError):
        return None


def _same(ref: tuple[Node, Node | None], ans: tuple[Node, Node | None]) -> bool | None:
    waves = frozenset(name for side in (*ref, *ans) if side is not None for name in _conjugated(side))
    for draw in range(DRAWS):
        values = Values(draw, waves)
        try:
            wanted = [values.of(side) for side in ref if side is not None]
        except (Mismatch, ArithmeticError, np.linalg.LinAlgError):
            return None
        try:
            given = [values.of(side) for side in ans if side is not None]
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
    return _near(left, right) or _near(left, times(-1.0, right))


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

    def __init__(self, draw: int, waves: frozenset[str]):
        self.draw, self.waves, self.steps = draw, waves, 0

    def symbol(self, kind: str, name: str, over: dict[str, str]) -> Any:
        for index, tag in over.items():
            base, found, rest = name.partition("_")
            if found and index in rest:
                name = f"{base}_{rest.replace(index, '#')}@{tag}"
        if kind == "vector" and name.partition("_")[0] == "ones":
            return np.ones((SIZE, 1), dtype=complex)
        rng = np.random.default_rng([zlib.crc32(f"{kind} {name}".encode("utf-8", "surrogatepass")), self.draw])
        if kind == "scalar":
            value = rng.uniform(0.5, 2.0)
            plain = name.partition("@")[0].replace("#", "")
            wave = any(plain == w or plain.partition("_")[0] == w.partition("_")[0] for w in self.waves)
            return complex(value * np.exp(1j * rng.uniform(0.3, 2.8))) if wave else complex(value)
        shape = (SIZE, SIZE) if kind == "matrix" else (SIZE, 1)
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    def of(self, node: Node, over: dict[str, str] | None = None) -> Any:
        """Return the value of a tree: a complex number, or an array of two dimensions.

        Raises:
            Mismatch, Unreadable: it has none.
        """
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unreadable("too long")
        with np.errstate(all="ignore"):
            return self._of(node, over or {})

    def _of(self, node: Node, inner: dict[str, str]) -> Any:
        kind = node[0]
        if kind == "num":
            return complex(node[1])
        if kind == "eye":
            return np.eye(SIZE, dtype=complex)
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

    def _over(self, node: Node, over: dict[str, str]) -> Any:
        _, kind, index, bounds, body = node
        total = None
        for k in range(TERMS):
            part = self.of(body, {**over, index: f"{bounds}{k}"})
            total = part if total is None else (plus if kind == "sum" else times)(total, part)
        return total

    def _called(self, node: Node, over: dict[str, str]) -> Any:
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
