"""A set of tasks that is tried again and again, and what it fails repeatedly is asked more often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.curriculum.base import Stream
from assay.curriculum.pass_rates import PassRates
from assay.curriculum.pool import Pool
from assay.errors import UsageError
from assay.registry import part
from assay.types import Ask, Group, Task


@part("curriculum", "mined")
@dataclass(slots=True)
class Mined:
    """In iterations: all of a pool is tried, then ``steps`` steps learn from it, mostly from what is failed repeatedly.

    A task is hard if no response to it was right in at least ``threshold`` of the latest ``looks`` at it, whenever and
    in whatever stage these were. Trying asks every task of the pool once with ``tries`` responses, which are not
    learned from (``meta["probe"]``, select ``unprobed``). Of the tasks of a step a share ``hard`` is drawn from the
    hard ones, evenly, the rest from the others; where one kind is missing the other fills its places.
    ``meta["mined"]`` says which kind a task is.

    Source: the second stage of Fleming-R1 (arXiv 2509.15279), whose thresholds and proportions are not given.

    Args:
        stream, prompts, group: supplied by the run.
        pool: different tasks, the first of the stream.
        steps: of learning in an iteration.
        looks, threshold: see above.
        hard: share of hard tasks in a step, in (0, 1].
        tries: responses to each task when the pool is tried.
        seed: of the draws.
        history: of pass rates, supplied by the run.

    Raises:
        UsageError: an option out of range.
    """

    stream: Stream
    prompts: int
    group: int
    pool: int = 64
    steps: int = 20
    looks: int = 3
    threshold: int = 2
    hard: float = 0.75
    tries: int = 1
    seed: int = 0
    history: PassRates = field(default_factory=PassRates)
    _pool: Pool = field(init=False)
    _rng: np.random.Generator = field(init=False, repr=False)
    _order: list[str] = field(default_factory=list, init=False)
    _tried: int = field(default=0, init=False)
    _learned: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if min(self.pool, self.steps, self.threshold, self.tries) < 1 or self.looks < self.threshold:
            raise UsageError(
                "curriculum 'mined': pool, steps, threshold and tries must be at least 1, and looks at least threshold"
            )
        if self.looks > self.history.kept or not 0 < self.hard <= 1:
            raise UsageError(
                f"curriculum 'mined': looks {self.looks} must be at most {self.history.kept} and hard {self.hard:g} in "
                "(0, 1]"
            )
        self._pool = Pool(self.stream, self.pool, "curriculum 'mined'")
        self._rng = np.random.default_rng([self.seed, 100])

    @property
    def failed(self) -> list[str]:
        """Ids of the tasks that are hard by now."""
        return [task for task in self._order if self.history.failed(task, self.looks) >= self.threshold]

    def next(self, step: int) -> list[Ask]:
        if not self._order:
            self._order = self._pool.gather()
        if self._tried < len(self._order):
            some = self._order[self._tried : self._tried + self.prompts]
            self._tried += len(some)
            return [Ask(self._labelled(task, probe=True), self.tries) for task in some]
        hard = self.failed
        kinds = {"hard": hard, "other": [task for task in self._order if task not in set(hard)]}
        count = round(self.hard * self.prompts)
        if not kinds["hard"] or not kinds["other"]:
            count = self.prompts if kinds["hard"] else 0
        asks = []
        for kind, n in (("hard", count), ("other", self.prompts - count)):
            chosen = self._drawn(kinds[kind], n)
            asks += [Ask(self._labelled(task, mined=kind), self.group) for task in chosen]
        self._learned += 1
        if self._learned >= self.steps:
            self._tried = self._learned = 0
        return asks

    def _drawn(self, tasks: Sequence[str], n: int) -> list[str]:
        """Draw ``n`` tasks, none twice before all were."""
        out: list[str] = []
        while len(out) < n:
            out += [tasks[i] for i in self._rng.permutation(len(tasks))[: n - len(out)]]
        return out

    def observe(self, groups: Sequence[Group]) -> None:
        """The history takes note of them."""

    def _labelled(self, task: str, **more: Any) -> Task:
        found = self._pool.tasks[task]
        return replace(found, meta={**found.meta, **more})

    def state_dict(self) -> dict[str, Any]:
        counts = [self._tried, self._learned]
        rng = self._rng.bit_generator.state
        return {**self._pool.state_dict(), "order": list(self._order), "counts": counts, "rng": rng}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._pool.load_state_dict(state)
        self._order, (self._tried, self._learned) = list(state["order"]), state["counts"]
        self._rng.bit_generator.state = state["rng"]
