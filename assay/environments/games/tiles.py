"""2048: equal tiles that are pushed together become one of twice the number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.environments.games.game import Chance, grid
from assay.environments.stated import State
from assay.types import Verdict

MOVES = ("up", "down", "left", "right")
WIDTHS = (8, 32, 128, 512)
"""Boards that the search for a plan keeps, in one attempt after the other."""

Board = tuple[int, ...]


def merged(line: Sequence[int]) -> list[int]:
    """Return a line pushed towards its beginning; every tile merges once at most."""
    out: list[int] = []
    last = 0
    for tile in (t for t in line if t):
        if tile == last:
            out[-1], last = 2 * tile, 0
        else:
            out.append(tile)
            last = tile
    return out + [0] * (len(line) - len(out))


def pushed(board: Board, move: str) -> Board:
    """Return the board after a push, before a new tile comes."""
    size = math.isqrt(len(board))
    out = list(board)
    for k in range(size):
        cells = [k * size + i if move in ("left", "right") else i * size + k for i in range(size)]
        if move in ("right", "down"):
            cells.reverse()
        for cell, tile in zip(cells, merged([board[c] for c in cells]), strict=True):
            out[cell] = tile
    return tuple(out)


def grown(board: Board, chance: np.random.Generator) -> Board:
    """Return the board with a new tile: a 2, once in ten times a 4."""
    free = [i for i, tile in enumerate(board) if not tile]
    cell = free[int(chance.integers(len(free)))]
    return (*board[:cell], 4 if chance.random() < 0.1 else 2, *board[cell + 1 :])


class Tiles:
    """Passes once a tile has the target's number; the score is log2(greatest / 2) / log2(target / 2), at most 1.

    There is no oracle: what the best push is depends on tiles that have not come. A state is (target, board).
    """

    def __init__(self, size: int, target: int):
        self.size, self.target = size, target
        self.rules = (
            f"2048: tiles slide to the side you push to, and two equal ones become one of twice the number; then a new "
            f"one comes. Answer with up, down, left or right. Reach {target}."
        )

    def setup(self, rng: np.random.Generator) -> dict[str, Any]:
        empty = (0,) * self.size**2
        return {"target": self.target, "board": list(grown(grown(empty, rng), rng))}

    def start(self, setup: Mapping[str, Any], chance: np.random.Generator) -> State:
        return setup["target"], tuple(setup["board"])

    def show(self, state: State) -> str:
        wide = len(str(max(state[1])))
        return grid([(str(t) if t else ".").rjust(wide) for t in state[1]], math.isqrt(len(state[1])))

    def actions(self, state: State) -> list[str]:
        target, board = state
        return [] if max(board) >= target else [move for move in MOVES if pushed(board, move) != board]

    def play(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        return (state[0], grown(pushed(state[1], action), chance)), ""

    def over(self, state: State) -> bool:
        return not self.actions(state)

    def verdict(self, state: State) -> Verdict:
        target, board = state
        reached = max(board) >= target
        score = math.log2(max(board) / 2) / math.log2(target / 2)
        return Verdict(min(score, 1.0), reached, {}, "" if reached else f"the greatest tile is {max(board)}")

    def plan(self, state: State, chance: Chance) -> Sequence[str]:
        """Search the boards to come, which the seed decides, and keep the best of each length."""
        return next((moves for width in WIDTHS if (moves := self._beam(state, chance, width)) is not None), [])

    def _beam(self, state: State, chance: Chance, width: int) -> list[str] | None:
        kept: dict[Board, list[str]] = {state[1]: []}
        ahead = 0
        while kept:
            for board, moves in kept.items():
                if max(board) >= state[0]:
                    return moves
            following: dict[Board, list[str]] = {}
            for board, moves in kept.items():
                for move in self.actions((state[0], board)):
                    following.setdefault(grown(pushed(board, move), chance(ahead)), [*moves, move])
            best = sorted(following, key=lambda b: (sum(t * t for t in b), b.count(0)), reverse=True)[:width]
            kept = {board: following[board] for board in best}
            ahead += 1
        return None

    def key(self, state: State) -> str:
        return " ".join(map(str, state[1]))
