"""An evaluation: k judged responses to each of a set of tasks, and what they say of the policy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assay.errors import UsageError
from assay.records.evaluation_folder import EvaluationFolder, is_folder
from assay.records.sample import TRUNCATED, Sample, by_task, read_samples, write_samples
from assay.statistics.intervals import Interval, mean_interval, paired_interval
from assay.statistics.pass_at_k import pass_at_k


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The samples of an evaluation, grouped by task in the order the tasks were asked.

    Attributes:
        label: ``initial``, ``before``, ``step-000050``, ``after`` or a name of one's own.
        step: training step the weights had reached.
        samples: one row per response.
    """

    label: str
    step: int
    samples: tuple[Sample, ...]

    def __repr__(self) -> str:
        found = self.pass_interval(1)
        return f"Evaluation({self.label!r}, step {self.step}, {len(self.samples)} samples, pass@1 {found})"

    def by_task(self) -> dict[str, list[Sample]]:
        """Samples of each task."""
        return by_task(self.samples)

    def by_source(self) -> dict[str, Evaluation]:
        """The evaluation of each source's tasks by its label, ``meta["source"]``; empty where all are of one."""
        parts: dict[str, list[Sample]] = {}
        for rows in self.by_task().values():
            parts.setdefault(str(json.loads(rows[0].meta).get("source", "")), []).extend(rows)
        if len(parts) < 2:
            return {}
        return {label: Evaluation(self.label, self.step, tuple(rows)) for label, rows in parts.items() if label}

    @property
    def k(self) -> int:
        """Most samples any task has, judged or not."""
        return max(map(len, self.by_task().values()), default=0)

    def pass_at(self, k: int) -> dict[str, float]:
        """Unbiased pass@k of each task that has at least ``k`` judged samples."""
        ids, totals, corrects = self.counts()
        enough = totals >= k
        values = pass_at_k(totals[enough], corrects[enough], k)
        return dict(zip((i for i, kept in zip(ids, enough, strict=True) if kept), values.tolist(), strict=True))

    def pass_interval(self, k: int) -> Interval | None:
        """Mean pass@k over tasks with its 95% interval; ``None`` if no task has ``k`` judged samples."""
        values = list(self.pass_at(k).values())
        return mean_interval(values, bounds=(0, 1)) if values else None

    def metrics(self) -> dict[str, float]:
        """The evaluation in numbers.

        ``pass@k`` for k = 1, 2, 4, ... and the number of samples per task, each with ``/low`` and ``/high`` (95%,
        over tasks) and ``/tasks``, the tasks with k judged samples it rests on; left out where there are none.
        ``score/mean`` is the mean over tasks of the mean score of their judged samples. Over all samples:
        ``length/mean`` in tokens, ``truncated`` and ``abstained`` as shares. ``tasks`` and ``samples`` are counts.
        Where tasks are of several sources, ``LABEL/pass@1`` with its interval is that of one's tasks.
        """
        out: dict[str, float] = {}
        for k in ladder(self.k):
            values = list(self.pass_at(k).values())
            if values:
                found = mean_interval(values, bounds=(0, 1))
                out |= {f"pass@{k}": found.value, f"pass@{k}/low": found.low, f"pass@{k}/high": found.high}
                out[f"pass@{k}/tasks"] = float(len(values))
        groups = self.by_task()
        judged = [[s.score for s in rows if s.passed is not None] for rows in groups.values()]
        scores = [float(np.mean(row)) for row in judged if row]
        if scores:
            out["score/mean"] = float(np.mean(scores))
        if self.samples:
            out["length/mean"] = float(np.mean([s.length for s in self.samples]))
            out["truncated"] = float(np.mean([s.stop in TRUNCATED for s in self.samples]))
            out["abstained"] = float(np.mean([s.passed is None for s in self.samples]))
        out["tasks"] = float(len(groups))
        out["samples"] = float(len(self.samples))
        for label, part in self.by_source().items():
            if (of := part.pass_interval(1)) is not None:
                key = f"{label}/pass@1"
                out |= {key: of.value, f"{key}/low": of.low, f"{key}/high": of.high}
        return out

    def to_parquet(self, path: Path) -> None:
        """Write one row per sample; the file appears whole or not at all."""
        write_samples(path, self.samples, self.label, self.step)

    @classmethod
    def from_parquet(cls, path: Path) -> Evaluation:
        """Read what :meth:`to_parquet` wrote; raise RunError if the file is missing, damaged or something else."""
        samples, label, step = read_samples(path)
        return cls(label, step, tuple(samples))

    def counts(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """Tasks, judged samples and right samples of each."""
        groups = self.by_task()
        totals = [sum(s.passed is not None for s in rows) for rows in groups.values()]
        corrects = [sum(s.passed is True for s in rows) for rows in groups.values()]
        return list(groups), np.array(totals, dtype=np.int64), np.array(corrects, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean pass@k before and after over the ``tasks`` both could estimate, and the ``interval`` of their difference."""

    k: int
    before: float
    after: float
    interval: Interval
    tasks: int


def stored(name: str) -> Evaluation | None:
    """Return the evaluation that ``assay eval`` stored under a name, a folder or a Parquet file; ``None`` for neither.

    Raises:
        UsageError: it is not finished, or cannot be read.
    """
    path = Path(name)
    if path.suffix == ".parquet":
        return Evaluation.from_parquet(path)
    if not is_folder(path):
        return None
    folder = EvaluationFolder.open(path)
    if folder.missing:
        raise UsageError(f"the evaluation in {name} is not finished; go on with: assay eval {name}")
    return Evaluation(name, int(folder.about["step"]), tuple(folder.samples()))


def ladder(k: int) -> list[int]:
    """1, 2, 4, ... up to ``k``, and ``k`` itself."""
    return sorted({1 << i for i in range(k.bit_length())} | {k}) if k else []


def difference(before: Evaluation, after: Evaluation, k: int = 1) -> Difference:
    """Compare two evaluations of the same tasks by mean pass@k, paired by task.

    Tasks with fewer than ``k`` judged samples on either side are left out of both.

    Raises:
        UsageError: the evaluations are of different tasks, or no task has ``k`` judged samples in both.
    """
    here, there = {s.task_id for s in before.samples}, {s.task_id for s in after.samples}
    if here != there:
        raise UsageError(
            f"evaluations {before.label!r} and {after.label!r} are of different tasks ({len(here - there)} only in the"
            f" first, {len(there - here)} only in the second); evaluate both on the same tasks to compare them"
        )
    first, second = before.pass_at(k), after.pass_at(k)
    shared = [task for task in first if task in second]
    if not shared:
        raise UsageError(
            f"no task has {k} judged samples in both {before.label!r} and {after.label!r}; compare at a smaller k"
        )
    x, y = np.array([first[t] for t in shared]), np.array([second[t] for t in shared])
    return Difference(k, float(x.mean()), float(y.mean()), paired_interval(x, y, bounds=(-1, 1)), len(shared))
