"""A household as an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assay.environments.household.house import Deed, Home, House, conditions, reached
from assay.environments.household.made import FURNITURE, GOALS, Goal, HouseholdTasks
from assay.environments.household.plan import way
from assay.environments.stated import Interface, State, Stated
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_seed
from assay.types import Task, Verdict


@part("environment", "household")
class Household(Stated):
    """A house in text: what is in other rooms, or in what is closed, has to be looked for; the state is what is judged.

    An episode ends, and passes, as soon as the goal is reached. The goals: ``open`` or ``close`` something; ``take``
    something to a room; ``put`` one thing or ``two`` somewhere; ``store`` something, that is put it in and close that;
    put something somewhere that is ``clean``, hot (``heat``) or cold (``cool``). Of the things of a kind any will do.
    See :class:`~assay.environments.household.house.House` for the actions.

    Args:
        goals: kinds of them, which take turns.
        rooms: of a house, 1 to 8.
        things: in a house, at least 3.
        listed: whether the actions that can be taken are shown every turn.
        moves: turns of an episode, at most.
        interface: ``text`` or ``tool``.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range.
    """

    def __init__(
        self,
        goals: Sequence[Goal] = GOALS,
        rooms: int = 3,
        things: int = 8,
        listed: bool = True,
        moves: int = 40,
        interface: Interface = "text",
        seed: int = 0,
    ):
        check_seed("environment 'household'", seed)
        if not 1 <= rooms <= len(FURNITURE) or things < 3 or moves < 1:
            raise UsageError(
                f"environment 'household': rooms {rooms} must be 1 to {len(FURNITURE)}, things {things} at "
                f"least 3, and moves {moves} at least 1"
            )
        if not goals or len(set(goals)) < len(goals):
            raise UsageError(f"environment 'household': it needs goals, each once, not {list(goals)}")
        super().__init__(interface, moves)
        self.listed = listed
        self._tasks = HouseholdTasks(seed, tuple(goals), rooms, things, interface)
        self._last: tuple[State, Mapping[str, Deed]] | None = None

    def tasks(self) -> HouseholdTasks:
        return self._tasks

    def beginning(self, task: Task) -> State:
        setup = task.meta.get("setup")
        if not isinstance(setup, Mapping) or "rooms" not in setup:
            raise UsageError(f"environment 'household': task {task.id} has no household; take them from it")
        self.house, self.goal, self._last = House.of(setup), conditions(setup), None
        return Home(*setup["home"])

    def show(self, state: State) -> str:
        seen = self.house.show(Home(*state))
        return f"{seen}\nYou can: {'; '.join(self._deeds(state))}." if self.listed else seen

    def actions(self, state: State) -> Sequence[str]:
        return list(self._deeds(state))

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        deed = self._deeds(state)[action]
        return self.house.done(Home(*state), deed), deed.said

    def over(self, state: State) -> bool:
        return reached(self.house, Home(*state), self.goal)

    def judged(self, state: State) -> Verdict:
        """Return right where every condition is met; ``parts`` has each."""
        met = [condition.met(self.house, Home(*state)) for condition in self.goal]
        parts: dict[str, float | None] = {c.what: float(m) for c, m in zip(self.goal, met, strict=True)}
        done = all(met)
        return Verdict(float(done), done, parts, "" if done else f"not done: {self.task.meta['setup']['text']}")

    def plan(self, state: State) -> Sequence[str]:
        return way(self.house, Home(*state), self.goal)

    def _deeds(self, state: State) -> Mapping[str, Deed]:
        """Return what can be done; asked for several times a turn."""
        if self._last is None or self._last[0] is not state:
            self._last = (state, {} if self.over(state) else self.house.deeds(Home(*state)))
        return self._last[1]
