"""Several agents on a grid, who act in turn and each see their own surroundings, have to cover all landmarks
together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from assay.environments.base import Action, Step
from assay.environments.lines import Interface, how
from assay.environments.stated import State, Stated
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task, Verdict

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}
Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SpreadTasks:
    """Endless tasks: agents and landmarks in cells of their own, not all landmarks covered."""

    seed: int
    agents: int
    side: int
    told: str

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        while True:
            agents, marks = (rng.choice(self.side**2, self.agents, replace=False).tolist() for _ in range(2))
            if set(agents) != set(marks):
                break
        return Task(
            id=f"spread/{self.seed}/{index}",
            prompt=self.told,
            reference={"agents": agents, "landmarks": marks},
            kind="none",
        )


@part("environment", "spread")
class Spread(Stated):
    """Cooperative navigation: ``agents`` move a cell at a time, one after the other, to cover as many landmarks.

    A turn is one agent's, the k-th that of agent k mod ``agents``, and what is shown is what that agent sees: where it
    stands, and how far from it landmarks and the other agents are. With rollout ``multi_turn`` and ``context =
    "rounds", keep = 0`` that is all it sees, so that one policy plays all agents and none knows what another has seen.
    The episode passes, and ends, when all landmarks are covered; its score is the share of them that is. Nobody is paid
    before the end. What is noted of a turn (``Step.info``) is its ``agent``, ``near`` the steps from it to the nearest
    landmark afterwards, ``nearer`` how many fewer these are than before, and whether it is ``alone`` where it stands.

    Args:
        agents: 2 to 6, and as many landmarks.
        side: of the grid, at least 2 and so large that agents leave a cell free.
        rounds: turns of each agent, at most; the way across the grid, if left out.
        interface: ``text`` or ``tool``.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range.

    Source: the cooperative navigation of "Multi-Agent Actor-Critic for Mixed Cooperative-Competitive Environments"
    (arXiv 1706.02275), here in cells and by turns.
    """

    def __init__(
        self,
        agents: int = 3,
        side: int = 5,
        rounds: int | None = None,
        interface: Interface = "text",
        seed: int = 0,
    ):
        check_seed("environment 'spread'", seed)
        if not 2 <= agents <= 6 or side < 2 or agents >= side**2 or (rounds is not None and rounds < 1):
            raise UsageError(
                f"environment 'spread': agents {agents} must be from 2 to 6 and fewer than the cells of side {side}, "
                f"and rounds {rounds} at least 1"
            )
        self.agents, self.side = agents, side
        super().__init__(interface, agents * (rounds or 2 * (side - 1)))
        self._tasks = SpreadTasks(
            seed,
            agents,
            side,
            f"{agents} agents have to stand on {agents} landmarks, one on each, in a grid of {side} by {side}. Each "
            f"moves a cell when it is its turn, by {how(interface)}: {', '.join(MOVES)}.",
        )

    def tasks(self) -> SpreadTasks:
        return self._tasks

    def beginning(self, task: Task) -> State:
        agents, marks = (tuple(divmod(i, self.side) for i in task.reference[k]) for k in ("agents", "landmarks"))
        return agents, marks, 0

    def show(self, state: State) -> str:
        agents, marks, now = state

        def seen(cells: Sequence[Cell]) -> str:
            away = sorted((row - agents[now][0], column - agents[now][1]) for row, column in cells)
            return "; ".join(f"{down:+d} {right:+d}" for down, right in away)

        others = [cell for k, cell in enumerate(agents) if k != now]
        row, column = agents[now]
        return (
            f"You are agent {now + 1}, in row {row + 1}, column {column + 1}.\n"
            f"Landmarks, down and right of you: {seen(marks)}\nOther agents: {seen(others)}"
        )

    def actions(self, state: State) -> Sequence[str]:
        return [] if self.over(state) else [move for move in MOVES if self._moved(state, move) is not None]

    def _moved(self, state: State, move: str) -> Cell | None:
        """Return the cell that a move of the agent whose turn it is leads to; ``None`` beyond the walls."""
        row, column = np.add(state[0][state[2]], MOVES[move]).tolist()
        return (row, column) if 0 <= row < self.side and 0 <= column < self.side else None

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        agents, marks, now = state
        cells = tuple(self._moved(state, action) if k == now else cell for k, cell in enumerate(agents))
        return (cells, marks, (now + 1) % self.agents), ""

    def step(self, action: Action) -> Step:
        if not self._under_way:
            return super().step(action)
        now, before = self.state[2], near(self.state)
        made = super().step(action)
        if self.state[2] == now:  # a turn that is lost is the agent's all the same, and the next one sees its own
            self.state = (*self.state[:2], (now + 1) % self.agents)
            shown = Message(role="user", content=self.show(self.state))
            made = replace(made, observation=self._seen((*made.observation.messages, shown)))
        there = self.state[0][now]
        after = near((*self.state[:2], now))
        alone = self.state[0].count(there) == 1
        return replace(made, info={"agent": now, "near": after, "nearer": before - after, "alone": alone})

    def over(self, state: State) -> bool:
        return covered(state) == self.agents

    def judged(self, state: State) -> Verdict:
        found = covered(state)
        return Verdict(found / self.agents, found == self.agents, {}, f"{found} of {self.agents} landmarks are covered")

    def plan(self, state: State) -> Sequence[str]:
        """Return the moves by which the last agent to arrive does so soonest, and of these the fewest."""
        if self.over(state):
            return []
        agents, marks, now = state
        far = [[abs(a[0] - m[0]) + abs(a[1] - m[1]) for m in marks] for a in agents]

        def cost(order: Sequence[int]) -> tuple[int, int]:
            ways = [far[k][m] for k, m in enumerate(order)]
            return max(ways), sum(ways)

        goals = [marks[m] for m in min(permutations(range(self.agents)), key=cost)]
        ways = [_way(cell, goal) for cell, goal in zip(agents, goals, strict=True)]
        moves: list[str] = []
        while any(ways):
            moves.append(ways[now].pop(0) if ways[now] else "stay")
            now = (now + 1) % self.agents
        return moves


def covered(state: State) -> int:
    """Return how many landmarks an agent stands on."""
    return len(set(state[0]) & set(state[1]))


def near(state: State) -> int:
    """Return the steps from the agent whose turn it is to the nearest landmark."""
    row, column = state[0][state[2]]
    return min(abs(row - r) + abs(column - c) for r, c in state[1])


def _way(cell: Cell, goal: Cell) -> list[str]:
    down, right = goal[0] - cell[0], goal[1] - cell[1]
    return ["down" if down > 0 else "up"] * abs(down) + ["right" if right > 0 else "left"] * abs(right)
