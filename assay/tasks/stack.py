"""Small programs for a stack machine, written from a piecewise function and judged by hidden tests."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

INPUTS = 10
"""Inputs x and y are 0 ... 9."""
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "m": min,
    "M": max,
}
_WORDS = (
    "Write a program for a stack machine that computes, for inputs x and y, the function {function}, where cases are "
    "separated by ; and the first whose condition holds counts, m is the smaller and M the larger of two numbers. Each "
    "character is an instruction: a digit, x or y is pushed; + - * m M < replace the two topmost numbers a b by the "
    "result (a<b gives 1 or 0); ? replaces c a b by a if c is not 0, else by b; d doubles the top, s swaps the two "
    "topmost. The result is what is left on the stack. Put the program between <answer> and </answer>."
)


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression: as people write it, as a program, and what it is worth for every x and y, ``(10, 10)``."""

    text: str
    program: str
    value: np.ndarray


@part("tasks", "stack")
@dataclass(frozen=True, slots=True)
class Stack:
    """Endless problems such as ``x<3:xMy;x<7:(y-2)*x;x+y>``, each with a right program: ``x3<xyMx7<y2-x*xy+??``.

    The function has ``cases`` pieces; verifier ``stack`` judges the program on ``tests`` inputs, which the prompt does
    not show: one in each piece, the others drawn evenly, so that a piece that covers more inputs has more tests.

    Args:
        seed: >= 0.
        cases: pieces of the function, 1 to 9.
        depth: operations in a piece's formula are nested at most so deep, 1 to 4.
        tests: inputs each program is judged by, ``cases`` to 100.
        style: ``compact``, or ``words`` for pretrained models: explains the language, asks for ``<answer>`` tags.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    cases: int = 3
    depth: int = 1
    tests: int = 10
    style: Literal["compact", "words"] = "compact"

    def __post_init__(self) -> None:
        check_seed("tasks 'stack'", self.seed)
        for name, low, high in (("cases", 1, 9), ("depth", 1, 4), ("tests", self.cases, INPUTS * INPUTS)):
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"tasks 'stack': {name} {getattr(self, name)} must be in [{low}, {high}]")

    @property
    def size(self) -> None:
        return None

    @property
    def alphabet(self) -> str:
        """Every character of compact prompts and solutions."""
        return "0123456789xy+-*mM<?:;()>"

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        bounds = sorted((1 + rng.permutation(INPUTS - 1)[: self.cases - 1]).tolist())
        pieces = [_formula(rng, self.depth) for _ in range(self.cases)]
        function = ";".join([f"x<{b}:{p.text}" for b, p in zip(bounds, pieces, strict=False)] + [pieces[-1].text])
        program = "".join(f"x{b}<{p.program}" for b, p in zip(bounds, pieces, strict=False))
        program += pieces[-1].program + "?" * len(bounds)
        tests = []
        for x, y in self._inputs(rng, bounds):
            piece = pieces[sum(b <= x for b in bounds)]
            tests.append([{"x": x, "y": y}, int(piece.value[x, y])])
        words = self.style == "words"
        return Task(
            id=f"stack/{self.seed}/{index}",
            prompt=_WORDS.format(function=function) if words else f"{function}>",
            reference={"tests": tests},
            kind="stack",
            solution=f"<answer>{program}</answer>" if words else program,
            meta={"source": "stack", "difficulty": self.cases},
        )

    def _inputs(self, rng: np.random.Generator, bounds: list[int]) -> list[tuple[int, int]]:
        """One input in every piece, then others, all different."""
        edges = [0, *bounds, INPUTS]
        chosen = {(int(rng.integers(low, high)), int(rng.integers(INPUTS))) for low, high in pairwise(edges)}
        for number in rng.permutation(INPUTS * INPUTS).tolist():
            if len(chosen) == self.tests:
                break
            chosen.add(divmod(number, INPUTS))
        return sorted(chosen)


def _formula(rng: np.random.Generator, depth: int, nested: bool = False) -> Formula:
    """Draw a formula; one that is no operand has an operation."""
    if depth == 0 or (nested and rng.random() < 0.5):
        letter = "xy0123456789"[int(rng.integers(12)) if rng.random() < 0.3 else int(rng.integers(2))]
        x, y = np.indices((INPUTS, INPUTS))
        value = {"x": x, "y": y}.get(letter)
        return Formula(letter, letter, np.full((INPUTS, INPUTS), int(letter)) if value is None else value)
    left, right = (_formula(rng, depth - 1, True) for _ in range(2))
    name = "+-*mM"[int(rng.integers(5))]
    value = np.vectorize(_OPERATIONS[name])(left.value, right.value)
    texts = [f"({f.text})" if len(f.text) > 1 else f.text for f in (left, right)]
    return Formula(name.join(texts), f"{left.program}{right.program}{name}", value)
