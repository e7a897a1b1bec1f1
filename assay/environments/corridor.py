"""Rooms in a row: a world small enough to write down all that can happen in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from assay.environments.base import Action, Step
from assay.environments.opinion import Cited, Opinion, admits_failure
from assay.environments.stated import Interface, State, Stated
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.listed import Listed
from assay.types import Task, Verdict

ACTIONS = ("left", "right", "stop")
OPEN = "open"


def stopped(task: Task, message: str, cited: Sequence[Cited]) -> Opinion:
    """Judge evidence: it allows a verdict if it shows where the episode has stopped."""
    seen = " ".join(c.observation for c in cited)
    right = f"Stopped in room {task.meta['goal']}." in seen
    return Opinion("Stopped in room" in seen, right and not admits_failure(message))


@part("environment", "corridor")
class Corridor(Stated):
    """Rooms 1 to n in a row; ``left`` and ``right`` go to the next room, or into a wall, and ``stop`` ends the episode.

    The verdict passes if the policy has stopped in the room that the task names. So it decides itself how long an
    episode is, rooms are reached on several ways, and the last action alone is not what was good or bad: what credit
    has to cope with, in an environment of few episodes, over which expectations are sums (see
    :func:`assay.rollout.turns.enumerated.enumerated`). A turn's ``tag`` is its action.

    With ``doors`` there are closed ones between rooms, which ``open`` opens from either side. Then a turn's note
    ``message`` is what was said of its action, without the room and the moves that are left.

    Args:
        rooms: at least 2; a task for each two of them, to start and to stop in.
        doors: fewer than rooms, as far apart as can be.
        moves: turns of an episode, at most, invalid ones with them; the last one truncates it.
        paid: reward of a turn for each room by which it has come nearer; negative of one that has gone away.
        clock: whether a state's key tells how many moves are left. It does where states are equivalent; keys that are
            made of what is seen mostly do not.
        interface: ``text`` or ``tool``.

    Raises:
        UsageError: an option out of range.
    """

    def __init__(
        self,
        rooms: int = 4,
        moves: int = 6,
        paid: float = 0.0,
        clock: bool = True,
        interface: Interface = "text",
        doors: int = 0,
    ):
        super().__init__(interface, moves)
        if rooms < 2 or moves < 1:
            raise UsageError(f"environment 'corridor': rooms {rooms} must be at least 2, and moves {moves} at least 1")
        if not 0 <= doors < rooms:
            raise UsageError(f"environment 'corridor': doors {doors} must be fewer than rooms {rooms}")
        self.rooms, self.paid, self.clock = rooms, paid, clock
        self.doors = tuple((2 * k + 1) * (rooms - 1) // (2 * doors) + 1 for k in range(doors))
        """The room to the left of each."""

    def tasks(self) -> Listed:
        numbers = range(1, self.rooms + 1)
        return Listed([self.task_of(a, b) for a in numbers for b in numbers if a != b and self._way(a, b) < self.moves])

    def _way(self, start: int, goal: int) -> int:
        """Moves from one room to another, doors opened on the way."""
        low, high = sorted((start, goal))
        return high - low + sum(low <= door < high for door in self.doors)

    def task_of(self, start: int, goal: int) -> Task:
        """Return the task to go from one room to another."""
        prompt = (
            f"You are in a corridor of {self.rooms} rooms, numbered from left to right. Go to room {goal} and stop "
            f"there. Write one action a turn: {'left, right, open or stop' if self.doors else 'left, right or stop'}."
        )
        meta = {"start": start, "goal": goal}
        rooms = f"{self.rooms}+{len(self.doors)}" if self.doors else f"{self.rooms}"
        return Task(f"corridor/{rooms}/{start}-{goal}", prompt, reference=goal, kind="none", meta=meta)

    def beginning(self, task: Task) -> State:
        """The room, whether the episode has stopped there, and the doors that are closed."""
        return int(task.meta["start"]), False, self.doors

    def show(self, state: State) -> str:
        return f"Room {state[0]}, {self.left} moves left." if not state[1] else f"Stopped in room {state[0]}."

    def actions(self, state: State) -> Sequence[str]:
        return () if state[1] else (*ACTIONS, OPEN) if self.doors else ACTIONS

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        room, _, closed = state
        if action == OPEN:
            here = [door for door in closed if room in (door, door + 1)]
            said = " ".join(f"You open door {self.doors.index(door) + 1}." for door in here)
            return (room, False, tuple(d for d in closed if d not in here)), said or "There is no closed door here."
        gone = room + {"left": -1, "right": 1, "stop": 0}[action]
        if min(room, gone) in closed and gone != room:
            return state, "The door is closed."
        return (min(max(gone, 1), self.rooms), action == "stop", closed), ""

    def over(self, state: State) -> bool:
        return bool(state[1])

    def judged(self, state: State) -> Verdict:
        goal = self.task.meta["goal"]
        return Verdict.right() if state[:2] == (goal, True) else Verdict.wrong(f"not stopped in room {goal}")

    def plan(self, state: State) -> Sequence[str]:
        room, goal, closed = state[0], self.task.meta["goal"], set(state[2])
        out, step = [], 1 if goal > room else -1
        while room != goal:
            if min(room, room + step) in closed:
                out.append(OPEN)
                closed -= {room - 1, room}
            out.append("right" if step > 0 else "left")
            room += step
        return [*out, "stop"]

    def key(self, state: State) -> str:
        room, stopped, closed = state
        doors = f", closed {' '.join(map(str, closed)) or 'none'}" if self.doors else ""
        return f"{room}{' stopped' if stopped else ''}{doors}" + (f", {self.left} left" if self.clock else "")

    def step(self, action: Action) -> Step:
        if not self._under_way:
            return super().step(action)  # which refuses
        (line, error), before = self._read(action), self.state[0]
        made = super().step(action)
        goal = self.task.meta["goal"]
        nearer = abs(goal - before) - abs(goal - self.state[0])
        made = replace(made, reward=self.paid * nearer if self.paid else None, tag=None if error else line)
        return replace(made, info={"message": self.said}) if self.doors else made

    def judge(self, action: Action) -> Verdict:
        """An action is right if it is on the shortest way."""
        line, error = self._read(action)
        return Verdict.right() if not error and line == self.plan(self.state)[0] else Verdict.wrong(error)
