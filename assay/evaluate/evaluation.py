"""An evaluation: k judged responses to each of a set of tasks, and what they say of the policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.errors import RunError, UsageError
from assay.evaluate.intervals import Interval, mean_interval, paired_interval
from assay.evaluate.pass_at_k import pass_at_k
from assay.evaluate.sample import FAILED, TRUNCATED, Sample, by_task, read_samples, write_samples
from assay.types import Episode, Task
from assay.verify.episodes import judge_episodes

if TYPE_CHECKING:
    from assay.engines.base import Engine, Request, Sampling
    from assay.evaluate.detail import Detail
    from assay.verify.base import Verifier


@dataclass(frozen=True, slots=True)
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

    def by_task(self) -> dict[str, list[Sample]]:
        """Samples of each task."""
        return by_task(self.samples)

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
    from assay.evaluate.folder import EvaluationFolder, is_folder

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


def evaluate(
    tasks: Sequence[Task],
    engine: Engine,
    verifier: Verifier,
    *,
    samples: int,
    sampling: Sampling,
    rng: np.random.Generator,
    label: str,
    step: int,
    chunk: int = 64,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Ask every task ``samples`` times and judge the responses.

    One seed per task is drawn before anything is generated, so that the result does not depend on ``chunk``.
    A response whose generation failed (``stop == "error"``) is an abstention.

    Args:
        tasks: with distinct ids.
        samples: responses per task.
        rng: source of the seeds; advanced by one draw per task.
        chunk: tasks per call of the engine.
        progress: called as ``progress(tasks done, tasks in all)`` after each chunk.

    Raises:
        UsageError: no tasks, two tasks of the same id, ``samples < 1`` or ``chunk < 1``.
        RunError: the engine gave another number of responses than it was asked for.
    """
    check_tasks(tasks, samples, chunk)
    asked = requests(tasks, samples, sampling, rng)
    rows: list[Sample] = []
    for start in range(0, len(tasks), chunk):
        part = slice(start, start + chunk)
        rows += sample_tasks(tasks[part], asked[part], engine, verifier)
        if progress is not None:
            progress(min(start + chunk, len(tasks)), len(tasks))
    return Evaluation(label, step, tuple(rows))


def check_tasks(tasks: Sequence[Task], samples: int, chunk: int) -> None:
    """Raise UsageError for no tasks, two of the same id, or numbers below 1."""
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise UsageError(f"two tasks to evaluate have the id {task.id!r}; ids must be distinct")
        seen.add(task.id)
    if not tasks or samples < 1 or chunk < 1:
        raise UsageError(
            f"an evaluation needs at least one task, one sample per task and one task per chunk;"
            f" got {len(tasks)}, {samples} and {chunk}"
        )


def requests(tasks: Sequence[Task], samples: int, sampling: Sampling, rng: np.random.Generator) -> list[Request]:
    """Return one request per task, each with a seed of its own."""
    from assay.engines.base import Request

    seeds = rng.integers(0, 2**63 - 1, size=len(tasks)).tolist()
    return [Request(t.prompt, samples, sampling, seed) for t, seed in zip(tasks, seeds, strict=True)]


def sample_tasks(
    tasks: Sequence[Task],
    asked: Sequence[Request],
    engine: Engine,
    verifier: Verifier,
    detail: Detail | None = None,
    rng: np.random.Generator | None = None,
) -> list[Sample]:
    """Answer and judge some tasks; ``detail``, with its ``rng``, adds what it finds out of every response.

    Raises:
        RunError: the engine gave another number of responses than it was asked for.
    """
    answers = engine.generate(asked)
    if [len(a) for a in answers] != [r.n for r in asked]:
        raise RunError(f"the engine was asked for {asked[0].n} responses to each of {len(tasks)} tasks and gave others")
    pairs = [(task, episode) for task, episodes in zip(tasks, answers, strict=True) for episode in episodes]
    rows = [
        Sample(
            task_id=task.id,
            prompt=task.question,
            response=episode.text,
            score=float(verdict.score),
            passed=verdict.passed,
            feedback=_failure(episode) or verdict.feedback,
            length=int(np.count_nonzero(episode.mask)),
            stop=episode.stop,
        )
        for (task, episode), verdict in zip(pairs, judge_episodes(verifier, pairs), strict=True)
    ]
    return rows if detail is None else detail.add(pairs, rows, engine, rng or np.random.default_rng(0))


def _failure(episode: Episode) -> str:
    """Why a response could not be had, where the engine says so; empty for one that could."""
    reason = episode.meta.get("error") if episode.stop == "error" else None
    return f"{FAILED}: {' '.join(str(reason).split())}" if reason else ""
