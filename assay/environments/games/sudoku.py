"""Sudoku digit by digit; the oracle is the one solution."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from assay.environments.games.game import Chance, grid
from assay.environments.stated import State
from assay.types import Verdict


@functools.cache
def units(size: int) -> tuple[tuple[int, int, int], ...]:
    """Return each cell's row, column and box, among the ``3 size`` sets of cells that have no digit twice."""
    side = math.isqrt(size)
    places = (divmod(i, size) for i in range(size * size))
    return tuple((r, size + c, 2 * size + r // side * side + c // side) for r, c in places)


def solutions(board: str, size: int, rng: np.random.Generator | None = None) -> Iterator[str]:
    """Yield the solutions of a board, ``.`` standing for an empty cell; in a random order if there is an ``rng``."""
    of, digits = units(size), list(board)
    left = [(1 << size) - 1] * (3 * size)
    """The digits that each set of cells still lacks, as bits."""
    for i, digit in enumerate(board):
        if digit != ".":
            for unit in of[i]:
                left[unit] &= ~(1 << int(digit) - 1)

    def search(free: list[int]) -> Iterator[str]:
        if not free:
            yield "".join(digits)
            return
        choices = [left[of[i][0]] & left[of[i][1]] & left[of[i][2]] for i in free]
        k = min(range(len(free)), key=lambda k: choices[k].bit_count())
        cell, rest = free[k], free[:k] + free[k + 1 :]
        fitting = [d for d in range(size) if choices[k] >> d & 1]
        for d in fitting if rng is None else rng.permutation(fitting).tolist():
            for unit in of[cell]:
                left[unit] ^= 1 << d
            digits[cell] = str(d + 1)
            yield from search(rest)
            for unit in of[cell]:
                left[unit] ^= 1 << d

    yield from search([i for i, digit in enumerate(board) if digit == "."])


@functools.lru_cache(maxsize=1024)
def solution(puzzle: str) -> str:
    """Return the first solution of a puzzle, which has one."""
    return next(solutions(puzzle, math.isqrt(len(puzzle))))


class Sudoku:
    """Empty cells are filled one by one; a digit that is set stays, so a wrong one cannot be mended.

    It passes once the grid is the solution; the score is the share of the empty cells that are right. A state is
    (puzzle, grid).

    Args:
        size: 4 or 9.
        blanks: empty cells, at most: fewer where no more can be taken out of the drawn grid with one solution left.
    """

    def __init__(self, size: int, blanks: int):
        self.size, self.blanks = size, blanks
        side = math.isqrt(size)
        self.rules = (
            f"Sudoku: every row, column and {side} x {side} box has the digits 1 to {size} once. Answer with row, "
            "column and digit of an empty cell, as in 1 2 3; what is set stays."
        )

    def setup(self, rng: np.random.Generator) -> dict[str, Any]:
        full = next(solutions("." * self.size**2, self.size, rng))
        puzzle = full
        for cell in rng.permutation(len(full)).tolist():
            if puzzle.count(".") == self.blanks:
                break
            fewer = puzzle[:cell] + "." + puzzle[cell + 1 :]
            found = solutions(fewer, self.size)
            next(found)
            if next(found, None) is None:
                puzzle = fewer
        return {"puzzle": puzzle}

    def start(self, setup: Mapping[str, Any], chance: np.random.Generator) -> State:
        return setup["puzzle"], setup["puzzle"]

    def show(self, state: State) -> str:
        return grid(state[1], math.isqrt(len(state[1])))

    def actions(self, state: State) -> list[str]:
        size = math.isqrt(len(state[1]))
        return [
            f"{i // size + 1} {i % size + 1} {digit}"
            for i, cell in enumerate(state[1])
            if cell == "."
            for digit in range(1, size + 1)
        ]

    def play(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        cell, digit = self._place(state, action)
        return (state[0], state[1][:cell] + digit + state[1][cell + 1 :]), ""

    def _place(self, state: State, action: str) -> tuple[int, str]:
        row, column, digit = action.split()
        return (int(row) - 1) * math.isqrt(len(state[1])) + int(column) - 1, digit

    def over(self, state: State) -> bool:
        return "." not in state[1]

    def verdict(self, state: State) -> Verdict:
        wanted = solution(state[0])
        blank = [i for i, cell in enumerate(state[0]) if cell == "."]
        right = sum(state[1][i] == wanted[i] for i in blank)
        solved = state[1] == wanted
        return Verdict(right / len(blank) if blank else 1.0, solved, {}, "" if solved else "it is not solved")

    def plan(self, state: State, chance: Chance) -> Sequence[str]:
        size, wanted = math.isqrt(len(state[1])), solution(state[0])
        return [f"{i // size + 1} {i % size + 1} {wanted[i]}" for i, cell in enumerate(state[1]) if cell == "."]

    def key(self, state: State) -> str:
        return str(state[1])

    def judge(self, state: State, action: str) -> Verdict:
        """A digit is right where the solution has it; that it clashes with nothing yet is not enough."""
        cell, digit = self._place(state, action)
        return Verdict.right() if solution(state[0])[cell] == digit else Verdict.wrong("the solution has another digit")
