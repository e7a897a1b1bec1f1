"""An evaluation: k judged responses to each of a set of tasks, and what they say of the policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.errors import RunError, UsageError
from assay.evaluate.intervals import Interval, mean_interval, paired_interval
from assay.evaluate.pass_at_k import pass_at_k
from assay.types import Task
from assay.verify.episodes import judge_episodes

if TYPE_CHECKING:
    import pyarrow as pa

    from assay.engines.base import Engine, Sampling
    from assay.verify.base import Verifier

TRUNCATED = ("length", "context")


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged response.

    Attributes:
        task_id, prompt: the task and its question as plain text.
        response: the text.
        score: degree of correctness in [0, 1]; 0 and without meaning where the verifier abstained.
        passed: right, wrong, or ``None`` where the verifier abstained.
        feedback: the verdict's feedback, or the reason of the abstention.
        length: tokens the policy made.
        stop: why the response ended; ``length`` and ``context`` mean truncated.
        reward: what it was worth, where a reward was computed.
    """

    task_id: str
    prompt: str
    response: str
    score: float
    passed: bool | None
    feedback: str
    length: int
    stop: str
    reward: float | None = None


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
        groups: dict[str, list[Sample]] = {}
        for sample in self.samples:
            groups.setdefault(sample.task_id, []).append(sample)
        return groups

    @property
    def k(self) -> int:
        """Most samples any task has, judged or not."""
        return max(map(len, self.by_task().values()), default=0)

    def pass_at(self, k: int) -> dict[str, float]:
        """Unbiased pass@k of each task that has at least ``k`` judged samples."""
        ids, totals, corrects = self._counts()
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
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {f.name: [_storable(getattr(s, f.name)) for s in self.samples] for f in fields(Sample)}
        n = len(self.samples)
        table = pa.table({"label": [self.label] * n, "step": [self.step] * n, **columns}, schema=_schema())
        table = table.replace_schema_metadata({"label": self.label, "step": str(self.step)})
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with partial.open("wb") as file:
                pq.write_table(table, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def from_parquet(cls, path: Path) -> Evaluation:
        """Read what :meth:`to_parquet` wrote; raise RunError if the file is missing, damaged or something else."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.ParquetFile(path).read()
        except (OSError, pa.ArrowException) as error:
            raise RunError(f"cannot read the evaluation {path}: {str(error).splitlines()[0]}") from None
        wanted = [f.name for f in fields(Sample)]
        missing = sorted(set(wanted) - set(table.column_names))
        metadata = table.schema.metadata or {}
        if missing or b"label" not in metadata or b"step" not in metadata:
            raise RunError(f"{path} is not an evaluation: it lacks {', '.join(missing) or 'its label and step'}")
        rows = table.select(wanted).to_pylist()
        return cls(metadata[b"label"].decode(), int(metadata[b"step"]), tuple(Sample(**row) for row in rows))

    def _counts(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
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
    from assay.engines.base import Request

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
    seeds = rng.integers(0, 2**63 - 1, size=len(tasks)).tolist()
    requests = [Request(t.prompt, samples, sampling, seed) for t, seed in zip(tasks, seeds, strict=True)]
    rows: list[Sample] = []
    for start in range(0, len(tasks), chunk):
        part = tasks[start : start + chunk]
        answers = engine.generate(requests[start : start + chunk])
        if [len(a) for a in answers] != [samples] * len(part):
            raise RunError(f"the engine was asked for {samples} responses to each of {len(part)} tasks and gave others")
        pairs = [(task, episode) for task, episodes in zip(part, answers, strict=True) for episode in episodes]
        for (task, episode), verdict in zip(pairs, judge_episodes(verifier, pairs), strict=True):
            rows.append(
                Sample(
                    task_id=task.id,
                    prompt=task.question,
                    response=episode.text,
                    score=float(verdict.score),
                    passed=verdict.passed,
                    feedback=verdict.feedback,
                    length=int(np.count_nonzero(episode.mask)),
                    stop=episode.stop,
                )
            )
        if progress is not None:
            progress(start + len(part), len(tasks))
    return Evaluation(label, step, tuple(rows))


def _storable(value: Any) -> Any:
    """Parquet holds UTF-8: a lone surrogate, which JSON can smuggle into a prompt, becomes a question mark."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, whole, real = pa.string(), pa.int64(), pa.float64()
    return pa.schema(
        {
            "label": text,
            "step": whole,
            "task_id": text,
            "prompt": text,
            "response": text,
            "score": real,
            "passed": pa.bool_(),
            "feedback": text,
            "length": whole,
            "stop": text,
            "reward": real,
        }
    )
