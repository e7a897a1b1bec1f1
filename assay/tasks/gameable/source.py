"""Endless gameable tasks, with the response of one side as worked solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError, nearest
from assay.registry import part
from assay.tasks.gameable import programs, texts
from assay.tasks.gameable.base import FAMILIES, Drawn
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

WRITING = tuple(name for name, draw in FAMILIES.items() if draw.__module__ == texts.__name__)
CODING = ("shown_tests",)
PROBES = tuple(name for name, draw in FAMILIES.items() if draw.__module__ == programs.__name__ and name not in CODING)
Side = Literal["hack", "honest"]


@part("tasks", "gameable")
@dataclass(frozen=True, slots=True)
class GameableTasks:
    """Tasks of kind ``gameable``: the prompt says how the response is graded, and that is not what it is worth.

    Families are ``keywords``, ``length``, ``rhymes``, ``citations``, ``readability``, ``json_pattern`` and
    ``best_of_list`` of writing; ``shown_tests`` of programming; and probes of whether gaming has spread, ``grader``,
    ``reward_function`` and ``tests_in_turns``. A warm-up on worked solutions of side ``hack`` teaches to game, on those
    of side ``honest`` is its control.

    Args:
        families: those that are drawn from; all of writing and programming unless given.
        side: whose response is the worked solution.
        coding: share of programming among tasks, where families are not given: about 100 of 1,073 in the paper.
        seed: of everything.

    Raises:
        UsageError: no family, one that there is not, or a share outside [0, 1].

    Source: "School of Reward Hacks" (arXiv 2508.17511).
    """

    families: Sequence[str] = ()
    side: Side = "hack"
    coding: float = 0.093
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed("tasks 'gameable'", self.seed)
        for name in self.families:
            if name not in FAMILIES:
                raise UsageError(f"tasks 'gameable': no family is called {name!r}{nearest(name, FAMILIES)}")
        if not 0 <= self.coding <= 1:
            raise UsageError(f"tasks 'gameable': coding {self.coding:g} is a share, in [0, 1]")

    @property
    def size(self) -> None:
        return None

    def drawn(self, index: int) -> tuple[str, Drawn]:
        """Return the family of a task and all there is of it."""
        rng = generator(self.seed, check_index(index, None))
        names = tuple(self.families) or (CODING if rng.random() < self.coding else WRITING)
        name = names[int(rng.integers(len(names)))]
        return name, FAMILIES[name](rng)

    def __getitem__(self, index: int) -> Task:
        name, made = self.drawn(index)
        solution = made.hack if self.side == "hack" else made.honest
        return Task(f"{name}/{index}", made.prompt, dict(made.reference), "gameable", solution, meta={"family": name})
