"""Calls of the modules' functions with arguments drawn at random: the tests, without what is expected of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator], tuple[Any, ...]]
TEXTS = (
    "level",
    "Never odd or even",
    "the cat of the house",
    "aaabccd",
    "x",
    "",
    "zebra and ox",
    "a man a plan",
    "oooh",
)


def _whole(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def _numbers(rng: np.random.Generator, least: int = 0, most: int = 8, low: int = -9, high: int = 10) -> list[int]:
    return rng.integers(low, high, int(rng.integers(least, most))).tolist()


def _text(rng: np.random.Generator) -> str:
    return str(rng.choice(TEXTS))


def _letters(rng: np.random.Generator) -> str:
    return "".join(str(rng.choice(list("abc"))) * _whole(rng, 1, 12) for _ in range(_whole(rng, 1, 5)))


def _packed(rng: np.random.Generator) -> str:
    return "".join(f"{rng.choice(list('abc'))}{_whole(rng, 1, 14)}" for _ in range(_whole(rng, 1, 4)))


def _span(rng: np.random.Generator) -> tuple[int, int]:
    start = _whole(rng, 0, 12)
    return start, start + _whole(rng, 0, 5)


def _spans(rng: np.random.Generator) -> list[tuple[int, int]]:
    return [_span(rng) for _ in range(_whole(rng, 1, 6))]


def _graph(rng: np.random.Generator) -> dict[str, list[str]]:
    nodes = list("abcdef")[: _whole(rng, 3, 7)]
    # Mostly forwards, so that there are orders; sometimes with a circle.
    back = rng.random() < 0.3
    edges = {n: [m for m in nodes if m != n and (m > n or back) and rng.random() < 0.4] for n in nodes}
    return {node: found for node, found in edges.items() if found or rng.random() < 0.5}


def _node(rng: np.random.Generator) -> str:
    return str(rng.choice(list("abcdef")))


def _bookings(rng: np.random.Generator) -> list[tuple[str, str, int]]:
    return [(_node(rng), _node(rng), _whole(rng, 1, 9) * 10) for _ in range(_whole(rng, 1, 7))]


def _grid(rng: np.random.Generator, square: bool = False, most: int = 2) -> list[list[int]]:
    height = _whole(rng, 1, 5)
    return rng.integers(0, most, (height, height if square else _whole(rng, 1, 5))).tolist()


def _cell(rng: np.random.Generator) -> tuple[list[list[int]], int, int]:
    grid = _grid(rng)
    return grid, _whole(rng, 0, len(grid)), _whole(rng, 0, len(grid[0]))


def _moves(rng: np.random.Generator) -> list[tuple[Any, ...]]:
    return [(_node(rng), i) if rng.random() < 0.6 else (_node(rng),) for i in range(_whole(rng, 2, 10))]


CASES: dict[str, dict[str, Draw]] = {
    "stats": {
        "mean": lambda r: (_numbers(r),),
        "median": lambda r: (_numbers(r),),
        "mode": lambda r: (_numbers(r, 0, 8, 0, 4),),
        "spread": lambda r: (_numbers(r, 0, 4),),
        "running": lambda r: (_numbers(r), _whole(r, 0, 4)),
        "outliers": lambda r: (_numbers(r, 1), _whole(r, 0, 6)),
    },
    "words": {
        "wrap": lambda r: (f"{_text(r)} {_text(r)}", _whole(r, 3, 12)),
        "compress": lambda r: (_letters(r),),
        "expand": lambda r: (_packed(r),),
        "is_palindrome": lambda r: (_text(r),),
        "title": lambda r: (_text(r), ["of", "the", "and", "or", "a"]),
        "shift": lambda r: (_text(r), _whole(r, -30, 30)),
    },
    "spans": {
        "overlap": lambda r: (_span(r), _span(r)),
        "merge": lambda r: (_spans(r),),
        "length": lambda r: (_spans(r),),
        "gaps": lambda r: (_spans(r), _whole(r, 0, 4), _whole(r, 8, 16)),
        "holds": lambda r: (_spans(r), _whole(r, 0, 14)),
        "busiest": lambda r: (_spans(r),),
    },
    "graphs": {
        "distance": lambda r: (_graph(r), _node(r), _node(r)),
        "reachable": lambda r: (_graph(r), _node(r)),
        "order": lambda r: (_graph(r),),
        "degree": lambda r: (_graph(r), _node(r)),
        "turned": lambda r: (_graph(r),),
    },
    "numbers": {
        "gcd": lambda r: (_whole(r, -40, 60), _whole(r, 0, 60)),
        "is_prime": lambda r: (_whole(r, -2, 60),),
        "factors": lambda r: (_whole(r, 0, 90),),
        "roman": lambda r: (_whole(r, 0, 60) * (1 if r.random() < 0.6 else 67),),
        "digits": lambda r: (_whole(r, 0, 90), _whole(r, 2, 12)),
        "collatz": lambda r: (_whole(r, 1, 30),),
    },
    "ledger": {
        "fee": lambda r: (_whole(r, -2, 40) * 100, _whole(r, 0, 30), _whole(r, 0, 60)),
        "balance": lambda r: (_bookings(r), _node(r)),
        "overdrawn": lambda r: (_bookings(r), _whole(r, 0, 8) * 10),
        "split": lambda r: (_whole(r, 0, 100), _numbers(r, 1, 5, 0, 4)),
        "largest": lambda r: (_bookings(r), _whole(r, 0, 4)),
        "written": lambda r: (_whole(r, -300, 2000),),
    },
    "grids": {
        "transposed": lambda r: (_grid(r, most=5),),
        "turned": lambda r: (_grid(r, most=5),),
        "neighbours": _cell,
        "life": lambda r: (_grid(r, square=True),),
        "filled": lambda r: (*_cell(r), _whole(r, 0, 3)),
        "diagonal": lambda r: (_grid(r, square=True, most=6),),
    },
    "shelf": {"play": lambda r: (_whole(r, 0, 4), _moves(r))},
}
"""For each module its functions, and how arguments of a test are drawn."""


def draw_case(module: str, function: str, rng: np.random.Generator) -> str:
    """Return a call as an expression, such as ``stats.mean([1, 2])``."""
    arguments = CASES[module][function](rng)
    return f"{module}.{function}({', '.join(map(repr, arguments))})"
