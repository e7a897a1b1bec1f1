"""What explorers found, as tasks: a database, what a user says, and the state it should end in."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from assay.environments.shop.explore import Found, detail, explore, speech
from assay.environments.shop.themes import THEMES
from assay.tasks.seeded import check_index, generator
from assay.types import Task

HOW = (
    "Help the user with the tools. Do what is asked as far as the rules let you, and nothing else; then say that it is "
    "done."
)


@dataclass(frozen=True, slots=True)
class Made:
    """Endless tasks; the reference has the states at the start and at the goal.

    Attributes:
        seed: of the tasks.
        themes, rules, wishes: see :func:`~assay.environments.shop.explore.explore`.
        open: whether the user keeps a detail back until he is asked.
    """

    seed: int
    themes: tuple[str, ...]
    rules: int
    wishes: int
    open: bool

    @property
    def size(self) -> None:
        return None

    def found(self, index: int) -> Found:
        """Return what there is to task ``index``."""
        return _found(self.seed, index, self.themes, self.rules, self.wishes)

    def withheld(self, index: int) -> tuple[int, ...]:
        """Return which wishes the user keeps details of back, one at least that has any."""
        if not self.open:
            return ()
        some = [i for i, w in enumerate(self.found(index).wishes) if w.quantity]
        rng = generator(self.seed, index, 1)
        return tuple(i for i in some if rng.random() < 0.5) or (some[int(rng.integers(len(some)))],)

    def __getitem__(self, index: int) -> Task:
        found = self.found(check_index(index, None))
        withheld = self.withheld(index)
        return Task(
            id=f"shop/{self.seed}/{index}",
            prompt=f"{HOW}\n\n{speech(found, withheld)}",
            reference={
                "start": found.start,
                "goal": found.goal,
                "keys": found.domain.keys,
                "volatile": found.domain.volatile,
            },
            kind="state",
            meta={
                "index": index,
                "theme": found.theme.name,
                "clauses": found.clauses,
                "wishes": speech(found),
                "details": tuple(detail(found, i) for i in withheld),
            },
        )


@functools.lru_cache(maxsize=1024)
def _found(seed: int, index: int, themes: tuple[str, ...], rules: int, wishes: int) -> Found:
    return explore(seed, index, themes or tuple(THEMES), rules, wishes)
