"""Everything that judged samples say of a model: in groups, each number with its interval."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from assay.errors import UsageError, nearest
from assay.evaluate.chain_judge import Rule, settle
from assay.records.evaluation import ladder
from assay.records.foreign import SPLITS
from assay.records.sample import TRUNCATED, Sample, by_task
from assay.statistics.at_k import best_of_k, g_pass_at_k, majority_at_k, mean_g_pass_at_k, pass_hat_k
from assay.statistics.intervals import Interval, mean_interval, ratio_interval
from assay.statistics.pass_at_k import pass_at_k, pass_curve

Rows = list[list[Sample]]
"""Samples of each task."""


SHARES = (0.5, 0.75, 1.0)
"""tau of G-Pass@k."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number.

    Attributes:
        name: what it is; ``@k`` counts samples.
        group: what it is about; see :data:`GROUPS`, and ``by FIELD`` for the accuracy of tasks of a kind.
        value: the estimate.
        low, high: ends of its 95 % interval over tasks; ``None`` where there is none.
        tasks: it rests on.
    """

    name: str
    group: str
    value: float
    low: float | None
    high: float | None
    tasks: int


def measures(samples: Sequence[Sample], by: Sequence[str] | None = None) -> list[Measure]:
    """Return all that can be measured, in the order of :data:`GROUPS`.

    Abstentions of the verifier are left out of everything that is about right and wrong. A mean over tasks counts every
    task alike. Its interval is that of :func:`~assay.statistics.intervals.mean_interval`; a mean over samples or tokens
    has that of :func:`~assay.statistics.intervals.ratio_interval`.

    Args:
        samples: of one evaluation.
        by: fields of the tasks' meta; those of :data:`SPLITS` that there are unless given. A field of more than eight
            different numbers is cut into four parts of about as many tasks.

    Raises:
        UsageError: a field that no task has.
    """
    rows = list(by_task(samples).values())
    out = [_floored(m) for make in GROUPS.values() for m in make(rows)]
    for name in _fields(rows, by):
        found = _split(rows, name)
        # A field in which all tasks agree splits nothing.
        out += found if by or len(found) > 1 else []
    return out


def _floored(m: Measure) -> Measure:
    """Lengths, counts and entropies are not negative, whatever a symmetric interval of few tasks says."""
    return replace(m, low=max(m.low, 0.0)) if m.group in ("cost", "turns", "entropy") and m.low is not None else m


def coverage(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Return the mean pass@k for every k up to the most judged samples a task has, ``{"k": [...], "pass": [...]}``.

    A task counts for the k that it has samples for.
    """
    counts: dict[int, list[int]] = {}
    for row in by_task(samples).values():
        judged = _judged(row)
        counts.setdefault(len(judged), []).append(sum(s.passed is True for s in judged))
    most = max(counts, default=0)
    total, tasks = np.zeros(most), np.zeros(most)
    for n, right in counts.items():
        if n:
            total[:n] += pass_curve(np.full(len(right), n), right, range(1, n + 1)).sum(0)
            tasks[:n] += len(right)
    return {"k": [float(k) for k in range(1, most + 1)], "pass": (total / np.maximum(tasks, 1)).tolist()}


def _judged(row: Sequence[Sample]) -> list[Sample]:
    return [s for s in row if s.passed is not None]


def _over_tasks(
    group: str, name: str, values: Sequence[float], bounds: tuple[float, float] | None
) -> Iterator[Measure]:
    """One number per task; nothing where there are no tasks."""
    if len(values):
        yield _measure(group, name, mean_interval(values, bounds=bounds), len(values))


def _over_samples(
    group: str, name: str, rows: Sequence[Sequence[float]], bounds: tuple[float, float] | None = None
) -> Iterator[Measure]:
    """Mean over all samples, each task a cluster; nothing where there are no samples."""
    rows = [row for row in rows if len(row)]
    if rows:
        found = ratio_interval([math.fsum(r) for r in rows], [len(r) for r in rows], bounds=bounds)
        yield _measure(group, name, found, len(rows))


def _measure(group: str, name: str, found: Interval, tasks: int) -> Measure:
    # Values that are all the same say nothing of their spread.
    sure = found.low < found.high
    return Measure(name, group, found.value, found.low if sure else None, found.high if sure else None, tasks)


def _counts(rows: Rows, k: int, keep: Callable[[Sample], bool]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Judged samples, and those to count, of the tasks with at least k judged ones."""
    judged = [j for row in rows if len(j := _judged(row)) >= k]
    return np.array([len(j) for j in judged]), np.array([sum(map(keep, j)) for j in judged])


def _most(rows: Rows) -> int:
    return max((len(_judged(row)) for row in rows), default=0)


def _accuracy(rows: Rows) -> Iterator[Measure]:
    for k in ladder(_most(rows)):
        yield from _over_tasks("accuracy", f"pass@{k}", pass_at_k(*_counts(rows, k, _right), k).tolist(), (0, 1))
    judged = [[float(s.passed is True) for s in _judged(row)] for row in rows]
    yield from _over_samples("accuracy", f"avg@{_most(rows)}", judged, (0, 1))
    scores = [float(np.mean([s.score for s in j])) for row in rows if (j := _judged(row))]
    yield from _over_tasks("accuracy", "score", scores, (0, 1))


def _right(sample: Sample) -> bool:
    return sample.passed is True


def _voting(rows: Rows) -> Iterator[Measure]:
    answered = [j for row in rows if (j := _judged(row))]
    if not any(s.answer is not None for row in answered for s in row):
        return
    for k in ladder(_most(rows)):
        values = [
            majority_at_k([s.answer for s in row], [_right(s) for s in row], k) for row in answered if len(row) >= k
        ]
        yield from _over_tasks("voting", f"maj@{k}", values, (0, 1))


def _selection(rows: Rows) -> Iterator[Measure]:
    scored = [j for row in rows if (j := _judged(row))]
    if not any(s.confidence is not None for row in scored for s in row):
        return
    for k in ladder(_most(rows)):
        values = [best_of_k(_confidences(row), [_right(s) for s in row], k) for row in scored if len(row) >= k]
        yield from _over_tasks("selection", f"best_of@{k}", values, (0, 1))


def _confidences(row: Sequence[Sample]) -> list[float]:
    return [math.nan if s.confidence is None else s.confidence for s in row]


def _stability(rows: Rows) -> Iterator[Measure]:
    for k in ladder(_most(rows)):
        n, c = _counts(rows, k, _right)
        if k > 1:
            yield from _over_tasks("stability", f"pass^{k}", np.clip(pass_hat_k(n, c, k), 0, 1).tolist(), (0, 1))
            for tau in SHARES[:-1]:  # tau = 1 is pass^k
                values = np.clip(g_pass_at_k(n, c, k, tau), 0, 1)
                yield from _over_tasks("stability", f"g_pass@{k}_{tau:g}", values.tolist(), (0, 1))
            values = np.clip(mean_g_pass_at_k(n, c, k), 0, 1)
            yield from _over_tasks("stability", f"mg_pass@{k}", values.tolist(), (0, 1))


def _reasoning(rows: Rows) -> Iterator[Measure]:
    """CoT-pass@k: pass@k of samples right in answer and chain (arXiv 2506.14245); see :func:`_chains`."""
    if not any(s.sound is not None or s.votes for row in rows for s in row):
        return
    yield from _chains("cot_pass", rows)
    voted = [s.votes for row in rows for s in row if s.votes]
    if any(len(v) > 1 for v in voted):
        for rule in get_args(Rule):
            yield from _chains(f"cot_pass_{rule}", [[replace(s, sound=settle(s.votes, rule)) for s in r] for r in rows])
    sound = [[float(s.sound is True) for s in row if _right(s) and s.sound is not None] for row in rows]
    yield from _over_tasks("reasoning", "sound|right", [math.fsum(r) / len(r) for r in sound if r], (0, 1))
    if voted:
        asked = [[s.votes for s in row if s.votes] for row in rows]
        unclear = [[float(settle(v) is None) for v in row] for row in asked]
        yield from _over_samples("reasoning", "chain/abstained", unclear, (0, 1))
        agreed = [[float(len(set(v) - {None}) == 1) for v in row if settle(v) is not None] for row in asked]
        yield from _over_samples("reasoning", "chain/unanimous", agreed, (0, 1))


def _chains(name: str, rows: Rows) -> Iterator[Measure]:
    """Samples without a verdict on their chain are out, save wrong answers where none of those was judged."""
    every = any(s.passed is False and s.sound is not None for row in rows for s in row)
    known = [[s for s in row if s.sound is not None or (s.passed is False and not every)] for row in rows]
    for k in ladder(_most(known)):
        values = pass_at_k(*_counts(known, k, lambda s: _right(s) and s.sound is True), k)
        yield from _over_tasks("reasoning", f"{name}@{k}", values.tolist(), (0, 1))


def _cost(rows: Rows) -> Iterator[Measure]:
    if any(s.length for row in rows for s in row):  # 0 stands for not known
        yield from _lengths(rows)
    yield from _over_samples("cost", "truncated", [[float(s.stop in TRUNCATED) for s in row] for row in rows], (0, 1))
    yield from _over_samples("cost", "abstained", [[float(s.passed is None) for s in row] for row in rows], (0, 1))


def _lengths(rows: Rows) -> Iterator[Measure]:
    yield from _over_samples("cost", "length", [[s.length for s in row] for row in rows])
    for name, kind in (("right", True), ("wrong", False)):
        yield from _over_samples("cost", f"length/{name}", [[s.length for s in r if s.passed is kind] for r in rows])
    yield from _over_tasks("cost", "tokens/task", [float(sum(s.length for s in row)) for row in rows], None)
    right = [sum(map(_right, row)) for row in rows]
    if sum(right):
        spent = [sum(s.length for s in row if s.passed is not None) for row in rows]
        yield _measure("cost", "tokens/right", ratio_interval(spent, right), len(rows))


def _turns(rows: Rows) -> Iterator[Measure]:
    """Of trajectories in environments, each of which counts once, however many turns it has."""
    played = [[s for s in row if s.turns] for row in rows]
    yield from _over_samples("turns", "turns", [[s.turns for s in row] for row in played])
    if any(played):
        for name, kind in (("right", True), ("wrong", False)):
            yield from _over_samples(
                "turns", f"turns/{name}", [[s.turns for s in r if s.passed is kind] for r in played]
            )
    yield from _over_samples("turns", "calls", [[s.calls for s in row] for row in played])
    yield from _over_samples("turns", "invalid", [[s.invalid / s.turns for s in row] for row in played], (0, 1))


def _entropy(rows: Rows) -> Iterator[Measure]:
    """Of the answers given to a task, and of the distributions that tokens were drawn from (arXiv 2507.14843)."""
    from assay.evaluate.answers import answer_entropy

    if any(s.answer is not None for row in rows for s in row):
        given = [[s.answer for s in row] for row in rows]
        coded = [[-1 if a is None else row.index(a) for a in row] for row in given]
        if any(len(row) > 1 for row in given):
            yield from _over_tasks("entropy", "answers", [answer_entropy(row) for row in coded], None)
            yield from _over_tasks("entropy", "distinct answers", [float(len({*row} - {-1})) for row in coded], None)
    nats = [[s.entropy for s in row if s.entropy is not None and s.length] for row in rows]
    yield from _over_samples("entropy", "tokens", nats)


def _calibration(rows: Rows) -> Iterator[Measure]:
    from assay.evaluate.confidence import confidence_measures

    for name, found, tasks in confidence_measures(rows):
        yield _measure("calibration", name, found, tasks)


GROUPS: dict[str, Callable[[Rows], Iterator[Measure]]] = {
    "accuracy": _accuracy,
    "voting": _voting,
    "selection": _selection,
    "stability": _stability,
    "reasoning": _reasoning,
    "cost": _cost,
    "turns": _turns,
    "entropy": _entropy,
    "calibration": _calibration,
}
"""What there is to measure; numbers of samples k double from 1 up to what the most-sampled task has."""


@dataclass
class _Cut:
    """The value of a field of each task's meta, numbers of many values as the range they are in."""

    values: list[Any]
    edges: list[float] = field(default_factory=list)

    @cached_property
    def labels(self) -> list[str | None]:
        given = [v for v in self.values if v is not None]
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in given)
        if not numbers or len(set(given)) <= 8:
            return [None if v is None else str(v) for v in self.values]
        edges = np.unique(np.quantile(given, [0, 0.25, 0.5, 0.75, 1]))
        names = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
        at = np.clip(np.searchsorted(edges, [math.nan if v is None else v for v in self.values]) - 1, 0, len(names) - 1)
        return [None if v is None else names[i] for v, i in zip(self.values, at, strict=True)]


def _fields(rows: Rows, by: Sequence[str] | None) -> list[str]:
    if by is not None and not by:
        return []
    known = {name for row in rows for name in json.loads(row[0].meta)}
    for name in by or ():
        if name not in known:
            raise UsageError(f"no task has a field {name!r} to split by{nearest(name, known)}")
    return [name for name in by or SPLITS if name in known]


def _split(rows: Rows, name: str) -> list[Measure]:
    """Accuracy of the tasks of each value."""
    labels = _Cut([json.loads(row[0].meta).get(name) for row in rows]).labels
    parts: dict[str, Rows] = {}
    for label, row in zip(labels, rows, strict=True):
        if label is not None:
            parts.setdefault(label, []).append(row)
    out: list[Measure] = []
    for label in sorted(parts, key=_natural):
        values = pass_at_k(*_counts(parts[label], 1, _right), 1).tolist()
        out += _over_tasks(f"by {name}", f"{name}={label}/pass@1", values, (0, 1))
    return out


def _natural(text: str) -> tuple[float, str]:
    """Numbers, and ranges by where they begin, in their order; then text."""
    try:
        return float(text.split(" to ")[0]), ""
    except ValueError:
        return math.inf, text
