"""Worlds to be modelled, drawn from a seed, as tasks of the verifier ``behaviour``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.environments.base import EnvironmentFailure
from assay.environments.world_models.described import Described
from assay.environments.world_models.domains import make_domain
from assay.environments.world_models.grids import make_grid
from assay.environments.world_models.homes import make_home
from assay.environments.world_models.ledgers import make_ledger
from assay.environments.world_models.mutants import mutants
from assay.tasks.seeded import check_index, generator
from assay.types import Task
from assay.verify.behaviour.truth import truth_of
from assay.verify.behaviour.verifier import hidden_share
from assay.verify.code.results import Abstain

Kind = Literal["grid", "home", "ledger", "domain"]
MAKERS: dict[Kind, Callable[[np.random.Generator], Described]] = {
    "grid": make_grid,
    "home": make_home,
    "ledger": make_ledger,
    "domain": make_domain,
}
OTHERS = 6
"""Rules of other worlds of a kind among which those that are not told have to be found."""


@dataclass(frozen=True, slots=True)
class WorldTasks:
    """Endless tasks; kinds of worlds take turns.

    Attributes:
        seed: of the tasks.
        kinds: of worlds.
        hidden: tests, at most.
        gaps: rules that the description leaves out, which ``meta["facts"]`` holds among others.
        draft: whether ``meta["draft"]`` is a model with a fault to begin from.
    """

    seed: int
    kinds: tuple[Kind, ...]
    hidden: int
    gaps: int
    draft: bool

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        kind = self.kinds[check_index(index, None) % len(self.kinds)]
        world, rng = _world(kind, self.seed, index), generator(self.seed, index, 7)
        gone = sorted(rng.choice(len(world.rules), min(self.gaps, len(world.rules) - 1), replace=False).tolist())
        told = [rule for i, rule in enumerate(world.rules) if i not in gone]
        return Task(
            id=f"world_models/{self.seed}/{kind}/{index}",
            prompt=world.text(told),
            reference=world.reference(self.hidden, number(self.seed, index)),
            kind="behaviour",
            solution=f"```{world.language}\n{world.source}```",
            meta={
                "kind": kind,
                "facts": self._facts(kind, index, [world.rules[i] for i in gone], rng),
                "draft": _faulty(kind, self.seed, index, self.hidden) if self.draft else "",
            },
        )

    def _facts(self, kind: Kind, index: int, gone: list[str], rng: np.random.Generator) -> tuple[str, ...]:
        """Return the rules that were left out among those of other worlds, which are not those of this one."""
        if not gone:
            return ()
        own = _world(kind, self.seed, index).rules
        others = [r for k in self.kinds if k != kind for r in _world(k, self.seed, index + 1).rules if r not in own]
        some = [*gone, *others[:OTHERS]]
        return tuple(some[i] for i in rng.permutation(len(some)).tolist())


@functools.lru_cache(maxsize=1024)
def _world(kind: Kind, seed: int, index: int) -> Described:
    return MAKERS[kind](generator(seed, index))


@functools.lru_cache(maxsize=1024)
def _faulty(kind: Kind, seed: int, index: int, hidden: int) -> str:
    """Return a model with a fault that static validation does not find, and hidden tests do.

    Raises:
        EnvironmentFailure: the sandbox failed, or nothing was of use.
    """
    world, rng = _world(kind, seed, index), generator(seed, index, 8)
    every = mutants(world.source, world.language)
    try:
        truth = truth_of(world.reference(hidden, number(seed, index)))
        for i in rng.permutation(len(every)).tolist():
            if 0 < hidden_share(truth, every[i][1]) < 1:
                return every[i][1]
    except Abstain as error:
        raise EnvironmentFailure(error.reason) from error
    raise EnvironmentFailure(f"no fault of world {index} of seed {seed} was of use")


def number(seed: int, index: int) -> int:
    """Return the seed of what is drawn in a world."""
    return seed * 100_003 + index
