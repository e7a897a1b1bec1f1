"""TicTacToe against a scripted opponent; the oracle is minimax."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from assay.environments.games.game import Chance, grid
from assay.environments.stated import State
from assay.types import Verdict

Opponent = Literal["minimax", "random"]

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def winner(board: str) -> str:
    """Return who has three in a line, empty where nobody has. A board is nine of ``X``, ``O`` and ``.``, by rows."""
    return next((board[a] for a, b, c in LINES if board[a] != "." and board[a] == board[b] == board[c]), "")


@functools.cache
def value(board: str, mover: str) -> int:
    """Return what both sides' best play comes to for ``mover``, whose turn it is: 1 a win, 0 a draw, -1 a loss."""
    if won := winner(board):
        return 1 if won == mover else -1
    return max(values(board, mover).values(), default=0)


def values(board: str, mover: str) -> dict[int, int]:
    """Return the value, for ``mover``, of every move that it has."""
    other = "O" if mover == "X" else "X"
    free = [i for i, cell in enumerate(board) if cell == "."]
    return {i: -value(board[:i] + mover + board[i + 1 :], other) for i in free}


def best(board: str, mover: str) -> list[int]:
    """Return the moves of the best value."""
    found = values(board, mover)
    return [i for i, v in found.items() if v == max(found.values())]


class TicTacToe:
    """The policy has one mark, ``X`` (who begins) or ``O``, as the task says; the opponent answers each move.

    Against minimax nobody wins, so what passes is not to lose: the score is 1 for a win, 1/2 for a draw. A state is
    (board, own mark, opponent).
    """

    rules = (
        "TicTacToe: three in a row, a column or a diagonal win. The cells are numbered 1 to 9, row by row; answer with "
        "the number of a free one."
    )

    def __init__(self, opponent: Opponent = "minimax"):
        self.opponent = opponent

    def setup(self, rng: np.random.Generator) -> dict[str, Any]:
        return {"own": "XO"[int(rng.integers(2))], "opponent": self.opponent}

    def start(self, setup: Mapping[str, Any], chance: np.random.Generator) -> State:
        board = "." * 9
        if setup["own"] == "O":
            board = self._answer(board, "X", setup["opponent"], chance)
        return board, setup["own"], setup["opponent"]

    def _answer(self, board: str, mover: str, opponent: Opponent, chance: np.random.Generator) -> str:
        moves = best(board, mover) if opponent == "minimax" else list(values(board, mover))
        i = moves[int(chance.integers(len(moves)))]
        return board[:i] + mover + board[i + 1 :]

    def show(self, state: State) -> str:
        cells = [cell if cell != "." else str(i + 1) for i, cell in enumerate(state[0])]
        return f"{grid(cells, 3)}\nYou are {state[1]}."

    def actions(self, state: State) -> list[str]:
        return [] if self.over(state) else [str(i + 1) for i, cell in enumerate(state[0]) if cell == "."]

    def play(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        board, own, opponent = state
        i = int(action) - 1
        board = board[:i] + own + board[i + 1 :]
        if not winner(board) and "." in board:
            board = self._answer(board, "O" if own == "X" else "X", opponent, chance)
        return (board, own, opponent), ""

    def over(self, state: State) -> bool:
        return bool(winner(state[0])) or "." not in state[0]

    def verdict(self, state: State) -> Verdict:
        if not self.over(state):
            return Verdict.wrong("the game is not over")
        won = winner(state[0])
        if won and won != state[1]:
            return Verdict.wrong("lost")
        return Verdict.right("won") if won else Verdict(0.5, True, {}, "a draw")

    def plan(self, state: State, chance: Chance) -> Sequence[str]:
        moves: list[str] = []
        while not self.over(state):
            moves.append(str(best(state[0], state[1])[0] + 1))
            state, _ = self.play(state, moves[-1], chance(len(moves) - 1))
        return moves

    def key(self, state: State) -> str:
        return f"{state[0]} {state[1]}"

    def judge(self, state: State, action: str) -> Verdict:
        """A move is right where no other has a better value."""
        return (
            Verdict.right() if int(action) - 1 in best(state[0], state[1]) else Verdict.wrong("there is a better one")
        )
