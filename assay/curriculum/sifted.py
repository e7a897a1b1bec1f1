"""All of the data is tried before training, and again within it; what filters leave of it is learned from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.curriculum.base import Stream
from assay.curriculum.pool import Pool
from assay.errors import RunError, UsageError
from assay.registry import build, find, names, part
from assay.tasks.seeded import permutation
from assay.types import Ask, Group

if TYPE_CHECKING:
    from assay.batch import Batch

WHO = "curriculum 'sifted'"


@part("curriculum", "sifted")
@dataclass(slots=True)
class Sifted:
    """Asks in turn, each lap in another order, the tasks of the data that filters leave.

    Before the first step every task is asked ``tries`` times of the policy, and nothing is learned from that. The
    filters follow each other: each has a number for every task, and says of those that the ones before it left which
    stay. With ``every`` above 0 that is done again after so many steps, on all of the data, by the policy of then; a
    share ``carry`` of what was learned from before, drawn at random, stays whatever the filters say.

    Args:
        stream, prompts, group: supplied by the run.
        filters: select parts that have a number for a prompt (names, tables or parts already made).
        tries: responses to each task when the data is tried.
        every: steps after which it is tried again; 0 for never.
        carry: see above, in [0, 1].
        pool: tasks that the data consists of, the first different ones of the stream; all of a sized source if left
            out.
        seed: of the draws.

    Raises:
        UsageError: an option out of range, a selection that has no number for a prompt; before a run, an endless source
            without ``pool``.
        RunError: nothing came back, or the filters leave no task.
    """

    stream: Stream
    prompts: int
    group: int
    filters: Sequence[Any] = ()
    tries: int = 16
    every: int = 0
    carry: float = 0.1
    pool: int | None = None
    seed: int = 0
    _pool: Pool = field(init=False)
    _kept: list[str] = field(default_factory=list, init=False)
    _looked: int | None = field(default=None, init=False)
    _turn: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.tries < 1 or self.every < 0 or not 0 <= self.carry <= 1 or (self.pool is not None and self.pool < 1):
            raise UsageError(
                f"{WHO}: tries {self.tries} and pool {self.pool} must be at least 1, every {self.every} at least 0 and "
                f"carry {self.carry:g} in [0, 1]"
            )
        self.filters = [build("select", spec) for spec in self.filters]
        for one in self.filters:
            if not hasattr(one, "of_prompts"):
                able = [n for n in names("select") if hasattr(find("select", n), "of_prompts")]
                raise UsageError(
                    f"{WHO}: select {type(one).__name__} has no number for a prompt to filter by; these have: "
                    f"{', '.join(able)}"
                )
        self._pool = Pool(self.stream, self.pool, WHO)

    @property
    def needs(self) -> frozenset[Any]:
        """Signals that the filters read."""
        return frozenset(need for one in self.filters for need in getattr(one, "needs", ()))

    def check(self, tasks: Sequence[Any]) -> None:
        self._pool.check()

    def survey(self, step: int) -> list[Ask]:
        if self._looked is not None and (not self.every or step < self._looked + self.every):
            return []
        self._pool.gather()
        return [Ask(task, self.tries) for task in self._pool.tasks.values()]

    def look(self, groups: Sequence[Group], batch: Batch) -> list[dict[str, Any]]:
        if not len(batch):
            return []
        columns = [one.of_prompts(batch) for one in self.filters]
        prompts = batch.prompt_group.unique().tolist()
        return [
            {"task": groups[prompt].task.id, "values": [column[i] for column in columns]}
            for i, prompt in enumerate(prompts)
        ]

    def settle(self, step: int, rows: Sequence[dict[str, Any]]) -> str:
        if not rows:
            raise RunError(
                f"{WHO}: of {len(self._pool.tasks)} tasks that were tried none came back; take a rollout that answers "
                "whatever is asked"
            )
        found = {row["task"]: [math.nan if v is None else float(v) for v in row["values"]] for row in rows}
        left = [task for task in self._pool.tasks if task in found]
        for i, one in enumerate(self.filters):
            stay = one.kept([found[task][i] for task in left])
            left = [task for task, stays in zip(left, stay, strict=True) if stays]
        carried = self._carried(step)
        chosen = {*left, *carried}
        if not chosen:
            raise RunError(f"{WHO}: its filters leave none of {len(rows)} tasks; have them drop less")
        again = self._looked is not None
        self._kept = [task for task in self._pool.tasks if task in chosen]
        self._looked, self._turn = step, 0
        more = f", {len(set(carried) - set(left))} of them carried over" if again else ""
        return f"{WHO}: {len(self._kept)} of {len(self._pool.tasks)} tasks are asked from step {step + 1} on{more}"

    def _carried(self, step: int) -> list[str]:
        """Draw the share of the tasks so far that stays anyway."""
        rng = np.random.default_rng([self.seed, 104, step])
        count = round(self.carry * len(self._kept))
        return [self._kept[i] for i in rng.permutation(len(self._kept))[:count]]

    def next(self, step: int) -> list[Ask]:
        if self._looked is None:
            raise RunError(f"{WHO} is asked for tasks before it has tried its data; take another rollout")
        asks = []
        for _ in range(self.prompts):
            lap, place = divmod(self._turn, len(self._kept))
            task = self._kept[permutation(len(self._kept), self.seed, lap)[place]]
            asks.append(Ask(self._pool.tasks[task], self.group))
            self._turn += 1
        return asks

    def observe(self, groups: Sequence[Group]) -> None:
        """What is asked is settled when the data is tried."""

    def state_dict(self) -> dict[str, Any]:
        return {**self._pool.state_dict(), "kept": list(self._kept), "looked": self._looked, "turn": self._turn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._pool.load_state_dict(state)
        self._looked, self._turn = state["looked"], state["turn"]
        self._kept = list(state["kept"])
        if self.pool is None and self._kept:
            # The tasks may have been changed, with leave, since.
            here = self._pool.gather()
            self._kept = [task for task in self._kept if task in set(here)] or here
