"""Sokoban boards, and a shortest solution of each."""

from __future__ import annotations

from collections import deque

import numpy as np

from assay.verify.drawings.puzzles.cells import EMPTY, WALL, beside, where
from assay.verify.drawings.puzzles.sokoban import AGENT, AGENT_ON, BOX, BOX_ON, PLACE, Sokoban
from assay.verify.drawings.puzzles.sokoban import moves as following


def make(rng: np.random.Generator, side: int, moves: int) -> list[np.ndarray]:
    """Return the boards of a puzzle and of each move of a shortest solution.

    From a solved board, a sixth of it walls, with one or two boxes, moves are taken back at random, boxes pulled where
    that can be; such boards are drawn until no box is at home.

    Args:
        rng: draws it.
        side: cells on a side, at least 3.
        moves: of the solution, at most; at least one.
    """
    walls, boxes = side**2 // 6, 1 + (side >= 5)
    while True:
        cells = rng.permutation(side**2)
        board = np.full(side**2, EMPTY)
        count = walls + int(rng.integers(1, boxes + 1))
        board[cells[:walls]], board[cells[walls:count]], board[cells[count]] = WALL, BOX_ON, AGENT
        state = board.reshape(side, side)
        for _ in range(moves):
            state = _taken_back(rng, state)
        if not where(state, BOX_ON):
            found = solve(state, moves)
            if found is not None:
                return found


def solve(first: np.ndarray, most: int) -> list[np.ndarray] | None:
    """Return the boards of a shortest solution, the first one among them; ``None`` if it takes more than ``most``."""
    rules = Sokoban(first)
    queue, known = deque([[first]]), {first.tobytes()}
    while queue:
        path = queue.popleft()
        if rules.solved(path[-1]):
            return path
        for state in following(path[-1]):
            if state.tobytes() not in known:
                known.add(state.tobytes())
                # What is left takes at least so many moves.
                if len(path) + _pushes(state, rules.floor) <= most:
                    queue.append([*path, state])
    return None


def _pushes(state: np.ndarray, floor: np.ndarray) -> int:
    places = np.array(where(floor, PLACE))
    return sum(int(np.abs(places - box).sum(1).min()) for box in where(state, BOX))


def _taken_back(rng: np.random.Generator, state: np.ndarray) -> np.ndarray:
    """Return a board that one move could have led from; the same where none could."""
    [here] = where(state, AGENT, AGENT_ON)
    found: list[list[np.ndarray]] = [[], []]
    for there in beside(here, state.shape):
        if state[there] not in (EMPTY, PLACE):
            continue
        before = state.copy()
        before[there] = AGENT if state[there] == EMPTY else AGENT_ON
        before[here] = PLACE if state[here] == AGENT_ON else EMPTY
        found[0].append(before)
        ahead = 2 * here[0] - there[0], 2 * here[1] - there[1]
        if ahead in beside(here, state.shape) and state[ahead] in (BOX, BOX_ON):
            pulled = before.copy()
            pulled[here] = BOX if before[here] == EMPTY else BOX_ON
            pulled[ahead] = PLACE if state[ahead] == BOX_ON else EMPTY
            found[1].append(pulled)
    ways = found[1] or found[0]
    return ways[rng.integers(len(ways))] if ways else state
