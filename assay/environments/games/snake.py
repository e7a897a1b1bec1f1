"""Snake, a move at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from assay.environments.games.game import Chance, grid
from assay.environments.stated import State
from assay.types import Verdict

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
TRIED = 6
"""Ways to a fruit that the search for a plan goes on from."""


class Snake:
    """The snake grows by each fruit it eats, and dies at a wall or at itself (its tail moves out of the way).

    It passes once enough fruits are eaten; the score is the share of them. There is no oracle: which move is best
    depends on fruits that have not come. A state is (height, width, target, body from the head on, fruit, eaten, dead);
    cells are numbered by rows.
    """

    def __init__(self, height: int, width: int, target: int):
        self.height, self.width, self.target = height, width, target
        self.rules = (
            f"Snake: @ is your head, o your body, * the fruit. Answer with up, down, left or right. Eat {target} "
            "fruits; a wall or your own body kills you."
        )

    def setup(self, rng: np.random.Generator) -> dict[str, Any]:
        head, fruit = rng.choice(self.height * self.width, 2, replace=False).tolist()
        return {"height": self.height, "width": self.width, "target": self.target, "head": head, "fruit": fruit}

    def start(self, setup: Mapping[str, Any], chance: np.random.Generator) -> State:
        return setup["height"], setup["width"], setup["target"], (setup["head"],), setup["fruit"], 0, False

    def show(self, state: State) -> str:
        height, width, target, body, fruit, eaten, _ = state
        cells = ["."] * (height * width)
        if fruit >= 0:
            cells[fruit] = "*"
        for i in body[1:]:
            cells[i] = "o"
        cells[body[0]] = "@"
        return f"{grid(cells, width)}\n{eaten} of {target} eaten"

    def actions(self, state: State) -> list[str]:
        """All moves but the one back into the neck."""
        if self.over(state):
            return []
        body = state[3]
        return [move for move in MOVES if len(body) < 2 or self._next(state, move) != body[1]]

    def _next(self, state: State, move: str) -> int:
        """Return the cell that a move leads to, -1 beyond the walls."""
        row, column = divmod(state[3][0], state[1])
        row, column = row + MOVES[move][0], column + MOVES[move][1]
        return row * state[1] + column if 0 <= row < state[0] and 0 <= column < state[1] else -1

    def play(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        height, width, target, body, fruit, eaten, _ = state
        head = self._next(state, action)
        grows = head == fruit
        rest = body if grows else body[:-1]
        if head < 0 or head in rest:
            return (height, width, target, body, fruit, eaten, True), "you died"
        body = (head, *rest)
        if grows:
            eaten += 1
            free = [i for i in range(height * width) if i not in body]
            fruit = free[int(chance.integers(len(free)))] if free and eaten < target else -1
        return (height, width, target, body, fruit, eaten, False), ""

    def over(self, state: State) -> bool:
        return state[6] or state[5] >= state[2]

    def verdict(self, state: State) -> Verdict:
        done = state[5] >= state[2]
        return Verdict(state[5] / state[2], done, {}, "" if done else f"{state[5]} of {state[2]} eaten")

    def plan(self, state: State, chance: Chance) -> Sequence[str]:
        """Search the shortest ways to each fruit, of which the seed decides where it will be."""
        return self._way(state, chance, 0) or []

    def _way(self, state: State, chance: Chance, ahead: int) -> list[str] | None:
        if self.over(state):
            return None if state[6] else []
        for _, (moves, there) in zip(range(TRIED), self._ways(state, chance, ahead), strict=False):
            if (rest := self._way(there, chance, ahead + len(moves))) is not None:
                return moves + rest
        return None

    def _ways(self, state: State, chance: Chance, ahead: int) -> Iterator[tuple[list[str], State]]:
        """Yield ways to the fruit, shortest first, and where they end; each with another body."""
        waiting, seen = deque([(state, list[str]())]), {state[3]}
        while waiting:
            at, moves = waiting.popleft()
            for move in self.actions(at):
                there, _ = self.play(at, move, chance(ahead + len(moves)))
                if there[6] or there[3] in seen:
                    continue
                seen.add(there[3])
                if there[5] > state[5]:
                    yield [*moves, move], there
                else:
                    waiting.append((there, [*moves, move]))

    def key(self, state: State) -> str:
        return self.show(state)
