"""A part of a pool that is about as hard as is wanted for the policy at the start, of each duration as much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.curriculum.base import Stream
from assay.curriculum.pool import Pool
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.tasks.seeded import permutation
from assay.types import Ask, Group, Task

BINS = 20
"""Of the histogram of scores over [0, 1]."""


def log_weights(scores: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    """Return ln(exp(-((x - mean) / deviation)^2 / 2) / c(x)) of each score x, c(x) how many scores share its bin.

    Divided by how frequent they are, scores are drawn as the Gaussian says wherever they lie.

    Args:
        scores: ``(N,)`` in [0, 1].
        mean, deviation: of the Gaussian.
    """
    bins = np.minimum((scores * BINS).astype(int), BINS - 1)
    return -0.5 * ((scores - mean) / deviation) ** 2 - np.log(np.bincount(bins, minlength=BINS)[bins])


@part("curriculum", "matched")
@dataclass(slots=True)
class Matched:
    """All of a pool is tried once, then what lies near a wanted score is learned from, an equal number by length.

    The pool is the first ``pool`` different tasks of the stream. Each is first asked ``tries`` times; these tasks have
    ``meta["probe"]``, so that ``select = "unprobed"`` learns nothing from them, and their mean score is x. Within each
    of ``buckets`` classes by length, ``keep // buckets`` are drawn without replacement (all, where there are no more)
    with weights

        w = exp(-((x - mean) / deviation)^2 / 2) / (number of scores in the same twentieth of [0, 1])

    and are then asked in turn, each time in another order. A length in ((k - 1) width, k width] is of class k; the last
    class has no end. A task without a verdict is not drawn.

    Source: TimeLens (arXiv 2512.14698) and its authors' code, whose defaults these are but for the sizes: it keeps
    2,500, by the duration of videos in seconds.

    Args:
        stream, prompts, group: supplied by the run.
        pool: tasks to begin with.
        keep: tasks that are learned from, at most.
        mean, deviation: see above.
        tries: responses to each task when the pool is tried.
        by: the field of a task's meta that says how long it is; empty for one class of all.
        width: of a class, in the field's unit.
        buckets: classes.
        seed: of the draws.

    Raises:
        UsageError: an option out of range; before a run, a task whose length is not told.
        RunError: the stream has not so many different tasks, none of them was judged, or the rollout left some out.
    """

    stream: Stream
    prompts: int
    group: int
    pool: int = 256
    keep: int = 64
    mean: float = 0.05
    deviation: float = 0.2
    tries: int = 1
    by: str = "duration"
    width: float = 30.0
    buckets: int = 9
    seed: int = 0
    _pool: Pool = field(init=False)
    _scores: dict[str, float | None] = field(default_factory=dict, init=False)
    _asked: int = field(default=0, init=False)
    _chosen: list[str] = field(default_factory=list, init=False)
    _turn: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if min(self.pool, self.tries, self.buckets) < 1 or self.keep < (self.buckets if self.by else 1):
            raise UsageError(
                f"curriculum 'matched': pool {self.pool}, tries {self.tries} and buckets {self.buckets} must be at "
                f"least 1, and keep {self.keep} one for each of the buckets"
            )
        if not min(self.deviation, self.width) > 0:
            raise UsageError(
                f"curriculum 'matched': deviation {self.deviation:g} and width {self.width:g} must be above 0"
            )
        self._pool = Pool(self.stream, self.pool, "curriculum 'matched'")

    def check(self, tasks: Sequence[Task]) -> None:
        for task in tasks if self.by else ():
            if not isinstance(task.meta.get(self.by), int | float):
                raise UsageError(
                    f"curriculum 'matched': meta of task {task.id} has no number {self.by!r}; name another field as "
                    'by, or by = "" to draw from all alike'
                )

    def next(self, step: int) -> list[Ask]:
        ids = list(self._pool.tasks) or self._pool.gather()
        if self._asked < len(ids):
            some = ids[self._asked : self._asked + self.prompts]
            self._asked += len(some)
            return [Ask(self._labelled(task, probe=True), self.tries) for task in some]
        left = self._chosen or ids
        asks = []
        for _ in range(self.prompts):
            lap, place = divmod(self._turn, len(left))
            asks.append(Ask(self._labelled(left[permutation(len(left), self.seed, lap)[place]]), self.group))
            self._turn += 1
        return asks

    def observe(self, groups: Sequence[Group]) -> None:
        """Note the scores of what was tried; once all are known, draw what is learned from."""
        if self._chosen:
            return
        tried = [group for group in groups if group.task.meta.get("probe")]
        for group in tried:
            judged = [v.score for v in group.verdicts if v.passed is not None]
            self._scores[group.task.id] = sum(judged) / len(judged) if judged else None
        if len(self._scores) == len(self._pool.tasks):
            self._chosen, self._turn = self._drawn(), 0
        elif not tried:
            raise RunError(
                f"curriculum 'matched': of {len(self._pool.tasks)} tasks that were tried {len(self._scores)} came back;"
                " take a rollout that answers whatever is asked (not one such as 'dynamic', which leaves groups out)"
            )

    def _drawn(self) -> list[str]:
        classes: dict[int, list[tuple[str, float]]] = {}
        for task, score in self._scores.items():
            if score is not None:
                classes.setdefault(self.bucket(self._pool.tasks[task]), []).append((task, score))
        if not classes:
            raise RunError("curriculum 'matched': no response to any of its tasks could be judged")
        rng = np.random.default_rng([self.seed, 73])
        quota, chosen = self.keep // (self.buckets if self.by else 1), set[str]()
        for k in sorted(classes):
            logs = log_weights(np.array([score for _, score in classes[k]]), self.mean, self.deviation)
            # The largest of ln w + Gumbel noise are a draw without replacement by w, however small w is.
            order = np.argsort(-(logs + rng.gumbel(size=len(logs))))
            chosen |= {classes[k][i][0] for i in order[:quota]}
        return [task for task in self._scores if task in chosen]

    def bucket(self, task: Task) -> int:
        """The class of a task by its length, from 0."""
        return min(max(math.ceil(task.meta[self.by] / self.width) - 1, 0), self.buckets - 1) if self.by else 0

    def _labelled(self, task: str, **more: Any) -> Task:
        found = self._pool.tasks[task]
        return replace(found, meta={**found.meta, **more})

    def state_dict(self) -> dict[str, Any]:
        told = {"scores": dict(self._scores), "chosen": list(self._chosen), "counts": [self._asked, self._turn]}
        return {**self._pool.state_dict(), **told}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._pool.load_state_dict(state)
        self._scores, self._chosen = dict(state["scores"]), list(state["chosen"])
        self._asked, self._turn = state["counts"]
