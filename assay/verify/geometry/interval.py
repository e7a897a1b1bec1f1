"""When something happens in a video or a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.geometry.read import finite_tuple
from assay.verify.geometry.times import Interval, interval_iou, read_spans
from assay.verify.lists.matching import best_pairs, f_beta

LEVELS = (0.3, 0.5, 0.7)


@part("verify", "interval")
@dataclass(frozen=True, slots=True)
class IntervalVerifier(Marked):
    """Temporal intersection over union of the intervals that the answer gives with those asked for.

    ``task.reference`` is ``[start, end]`` in seconds, a list of such intervals, text that holds intervals
    (``"1:05 - 1:20"``), or ``{"intervals": ...}``. All intervals of the answer count, as their union; one that ends
    before it starts, or has no length, makes it wrong. Score = IoU; passed iff IoU >= threshold. ``parts``: ``iou``,
    ``iou@0.3``, ``iou@0.5``, ``iou@0.7`` (whether it is at least that), and ``f1`` of the intervals paired one to one
    with IoU >= threshold.

    Args:
        threshold: least IoU that passes, in (0, 1].
        first: only the first interval of the answer counts.
        rules: markers that narrow where to look, see :func:`~assay.verify.answer.extract.extract`.
        max_chars: a longer answer is wrong.
        max_intervals: more intervals than this are wrong.
        unit: seconds, to whole multiples of which times of the answer are rounded; 0 takes them as they are.
    """

    threshold: float = 0.5
    first: bool = False
    rules: tuple[Rule, ...] = ("answer_tag", "boxed")
    fallback: ClassVar[Fallback] = "whole"
    max_chars: int = 200_000
    max_intervals: int = 300
    unit: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise UsageError(f"verifier 'interval': threshold {self.threshold} must be in (0, 1]")
        if not 0 <= self.unit < np.inf:
            raise UsageError(f"verifier 'interval': unit {self.unit} must be 0 or more")

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = read_reference(task.reference)
        if wanted is None:
            return Verdict.abstain(f"task {task.id}: reference is no interval of positive length")
        answer = extract(response, self.rules, self.fallback) or ""
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        given = read_spans(answer)[: 1 if self.first else None]
        if not given or len(given) > self.max_intervals:
            return Verdict.wrong(f"{len(given)} intervals" if given else "no interval found")
        if self.unit:
            given = [(round(a / self.unit) * self.unit, round(b / self.unit) * self.unit) for a, b in given]
        if any(end <= start for start, end in given):
            return Verdict.wrong("an interval ends before it starts")
        iou = interval_iou(given, wanted)
        table = np.array([[float(interval_iou([a], [b]) >= self.threshold) for b in wanted] for a in given])
        hits = len(best_pairs(table))
        parts: dict[str, float | None] = {"iou": iou, "f1": f_beta(hits / len(given), hits / len(wanted))}
        parts |= {f"iou@{level}": float(iou >= level) for level in LEVELS}
        passed = iou >= self.threshold
        return Verdict(iou, passed, parts, "" if passed else f"IoU {iou:.3f} is below {self.threshold:g}")


def read_reference(reference: Any) -> list[Interval] | None:
    """Return the intervals of a reference; ``None`` if there are none, or one without positive length."""
    if isinstance(reference, Mapping):
        reference = reference.get("intervals")
    if isinstance(reference, str):
        read: list[Any] = list(read_spans(reference))
    elif finite_tuple(reference, 2) is not None:
        read = [reference]
    else:
        read = list(reference) if isinstance(reference, list | tuple) else []
    intervals: list[Interval] = []
    for item in read:
        pair = finite_tuple(item, 2)
        if pair is None and isinstance(item, str) and len(spans := read_spans(item)) == 1:
            pair = spans[0]
        if pair is None or pair[1] <= pair[0]:
            return None
        intervals.append((pair[0], pair[1]))
    return intervals or None
