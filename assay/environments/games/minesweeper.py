"""Minesweeper; the oracle is the exact posterior of the mines."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from assay.environments.games.game import Chance, grid
from assay.environments.games.mines import around, posterior
from assay.environments.stated import State
from assay.types import Verdict


class Minesweeper:
    """One cell without a mine is open from the beginning; a cell that touches no mine opens its neighbours.

    It passes once all cells without a mine are open; the score is the share of those that were covered. A flag marks
    a cell, stays until that is opened, and decides nothing. A state is (height, width, mines, open cells, flags,
    cells open at the beginning, blown up); cells are numbered by rows.
    """

    def __init__(self, height: int, width: int, mines: int):
        self.height, self.width, self.mines = height, width, mines
        self.rules = (
            f"Minesweeper: {mines} mines are hidden; a number says how many touch its cell. ? is covered, ! flagged. "
            "Answer with reveal or flag, row and column, as in reveal 1 2. Reveal all cells but the mines."
        )

    def setup(self, rng: np.random.Generator) -> dict[str, Any]:
        while True:
            first, *mines = rng.choice(self.height * self.width, self.mines + 1, replace=False).tolist()
            setup = {"height": self.height, "width": self.width, "mines": sorted(mines), "first": first}
            if not self.over(self.start(setup, rng)):  # the first cell may open all the others
                return setup

    def start(self, setup: Mapping[str, Any], chance: np.random.Generator) -> State:
        height, width, mines = setup["height"], setup["width"], tuple(setup["mines"])
        shown = _opened((), setup["first"], height, width, mines)
        return height, width, mines, shown, (), len(shown), False

    def show(self, state: State) -> str:
        height, width, mines, shown, flags, _, blown = state
        cells = ["!" if i in flags else "?" for i in range(height * width)]
        for i, n in _numbers(height, width, mines, shown).items():
            cells[i] = str(n)
        for i in mines if blown else ():
            cells[i] = "*"
        return grid(cells, width)

    def actions(self, state: State) -> list[str]:
        height, width, _, shown, flags, _, _ = state
        if self.over(state):
            return []
        covered = [i for i in range(height * width) if i not in shown]
        where = {i: f"{i // width + 1} {i % width + 1}" for i in covered}
        return [f"reveal {where[i]}" for i in covered] + [f"flag {where[i]}" for i in covered if i not in flags]

    def play(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        height, width, mines, shown, flags, begun, _ = state
        what, cell = self._read(state, action)
        if what == "flag":
            return (height, width, mines, shown, tuple(sorted({*flags, cell})), begun, False), ""
        if cell in mines:
            return (height, width, mines, shown, flags, begun, True), "a mine"
        shown = _opened(shown, cell, height, width, mines)
        return (height, width, mines, shown, tuple(i for i in flags if i not in shown), begun, False), ""

    def _read(self, state: State, action: str) -> tuple[str, int]:
        what, row, column = action.split()
        return what, (int(row) - 1) * state[1] + int(column) - 1

    def over(self, state: State) -> bool:
        return state[6] or len(state[3]) + len(state[2]) == state[0] * state[1]

    def verdict(self, state: State) -> Verdict:
        height, width, mines, shown, _, begun, blown = state
        left = height * width - len(mines) - begun
        won = not blown and len(shown) - begun == left
        return Verdict((len(shown) - begun) / left if left else float(won), won, {}, "a mine went off" if blown else "")

    def plan(self, state: State, chance: Chance) -> Sequence[str]:
        moves: list[str] = []
        while not self.over(state):
            safe = next(i for i in range(state[0] * state[1]) if i not in state[2] and i not in state[3])
            moves.append(f"reveal {safe // state[1] + 1} {safe % state[1] + 1}")
            state, _ = self.play(state, moves[-1], chance(len(moves) - 1))
        return moves

    def key(self, state: State) -> str:
        return self.show(state)

    def chances(self, state: State) -> dict[int, Fraction]:
        """Return how likely a mine is under each covered cell, see :func:`assay.environments.games.mines.posterior`."""
        height, width, mines, shown = state[:4]
        return _posterior(height, width, tuple(_numbers(height, width, mines, shown).items()), len(mines))

    def judge(self, state: State, action: str) -> Verdict:
        """To reveal is right where no mine can be; where there is no such cell, where one is least likely. To flag is
        right where a mine has to be."""
        what, cell = self._read(state, action)
        chances = self.chances(state)
        right = chances[cell] == (1 if what == "flag" else min(chances.values()))
        return Verdict(float(right), right, {}, f"a mine is there with probability {float(chances[cell]):.3g}")


@functools.lru_cache(maxsize=4096)
def _posterior(height: int, width: int, numbers: tuple[tuple[int, int], ...], mines: int) -> dict[int, Fraction]:
    return posterior(height, width, dict(numbers), mines)


def _numbers(height: int, width: int, mines: Sequence[int], shown: Sequence[int]) -> dict[int, int]:
    return {i: sum(j in mines for j in around(i, height, width)) for i in shown}


def _opened(shown: Sequence[int], cell: int, height: int, width: int, mines: Sequence[int]) -> tuple[int, ...]:
    """Return the open cells once another is opened."""
    found, new = set(shown), [cell]
    while new:
        at = new.pop()
        if at not in found:
            found.add(at)
            near = around(at, height, width)
            if not any(i in mines for i in near):
                new += near
    return tuple(sorted(found))
