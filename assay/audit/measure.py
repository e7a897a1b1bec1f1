"""How often a verifier is right about responses whose label is known: counts, rates, exact intervals, latency.

A response is *right* or *wrong* by its label, *accepted* or *rejected* by the verifier. A verifier may also leave it
undecided: abstain, crash or run out of time. Undecided rows are never counted as mistakes; each error rate is given
among the rows that were decided, and in the worst case that every undecided one had gone the wrong way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.audit.outcome import UNDECIDED, Outcome, Status
from assay.statistics.rate import Rate, defined, rate_data


@dataclass(frozen=True, slots=True)
class Confusion:
    """Rows by label and outcome: positive is accepted, true is as the label says.

    ``undecided_right`` and ``undecided_wrong`` count the rows of either label without a decision, by reason.
    """

    tp: int = 0
    fn: int = 0
    fp: int = 0
    tn: int = 0
    undecided_right: tuple[tuple[Status, int], ...] = ()
    undecided_wrong: tuple[tuple[Status, int], ...] = ()

    @classmethod
    def count(cls, pairs: Iterable[tuple[bool, Status]]) -> Confusion:
        """Count pairs of (label, outcome)."""
        seen = Counter(pairs)
        left = {label: tuple((s, seen[label, s]) for s in UNDECIDED if seen[label, s]) for label in (True, False)}
        return cls(
            seen[True, "accepted"],
            seen[True, "rejected"],
            seen[False, "accepted"],
            seen[False, "rejected"],
            left[True],
            left[False],
        )

    @property
    def decided(self) -> int:
        return self.tp + self.fn + self.fp + self.tn

    @property
    def right(self) -> int:
        """Rows labelled right, decided or not."""
        return self.tp + self.fn + sum(n for _, n in self.undecided_right)

    @property
    def wrong(self) -> int:
        """Rows labelled wrong, decided or not."""
        return self.fp + self.tn + sum(n for _, n in self.undecided_wrong)

    def undecided(self, *reasons: Status) -> int:
        """Rows left undecided for one of the ``reasons`` (any, if none is named)."""
        return sum(n for s, n in (*self.undecided_right, *self.undecided_wrong) if not reasons or s in reasons)

    @property
    def false_negative_rate(self) -> Rate:
        """Right responses rejected, FN / (FN + TP)."""
        return Rate.of(self.fn, self.fn + self.tp)

    @property
    def false_positive_rate(self) -> Rate:
        """Wrong responses accepted, FP / (FP + TN)."""
        return Rate.of(self.fp, self.fp + self.tn)

    @property
    def worst_false_negative_rate(self) -> Rate:
        """As if every undecided right response had been rejected."""
        return Rate.of(self.right - self.tp, self.right)

    @property
    def worst_false_positive_rate(self) -> Rate:
        """As if every undecided wrong response had been accepted."""
        return Rate.of(self.wrong - self.tn, self.wrong)

    @property
    def precision(self) -> Rate:
        return Rate.of(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> Rate:
        return Rate.of(self.tp, self.tp + self.fn)

    @property
    def accuracy(self) -> Rate:
        return Rate.of(self.tp + self.tn, self.decided)

    @property
    def f1(self) -> float:
        """``2 TP / (2 TP + FP + FN)``."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of recall and specificity; NaN unless both labels were decided."""
        return (_ratio(self.tp, self.tp + self.fn) + _ratio(self.tn, self.tn + self.fp)) / 2

    @property
    def mcc(self) -> float:
        """Matthews' correlation of verdicts with labels; NaN where either does not vary."""
        margins = (self.tp + self.fp) * (self.tp + self.fn) * (self.tn + self.fp) * (self.tn + self.fn)
        return _ratio(self.tp * self.tn - self.fp * self.fn, math.sqrt(margins))

    @property
    def kappa(self) -> float:
        """Cohen's kappa of verdicts with labels, ``(po - pe) / (1 - pe)``; NaN where chance alone explains all."""
        n = self.decided
        agreed = _ratio(self.tp + self.tn, n)
        chance = _ratio((self.tp + self.fp) * (self.tp + self.fn) + (self.tn + self.fp) * (self.tn + self.fn), n * n)
        return _ratio(agreed - chance, 1 - chance)


RATES = (
    "false_negative_rate",
    "false_positive_rate",
    "worst_false_negative_rate",
    "worst_false_positive_rate",
    "precision",
    "recall",
    "accuracy",
)
SCALARS = ("f1", "balanced_accuracy", "mcc", "kappa")


def described(confusion: Confusion) -> dict[str, Any]:
    """The confusion and all that follows from it as plain data; what is undefined is ``None``."""
    c = confusion
    return {
        "rows": c.right + c.wrong,
        "right": c.right,
        "wrong": c.wrong,
        "decided": c.decided,
        "tp": c.tp,
        "fn": c.fn,
        "fp": c.fp,
        "tn": c.tn,
        **{s: c.undecided(s) for s in UNDECIDED},
        "undecided_right": dict(c.undecided_right),
        "undecided_wrong": dict(c.undecided_wrong),
        **{name: rate_data(getattr(c, name)) for name in RATES},
        **{name: defined(getattr(c, name)) for name in SCALARS},
    }


def by_category(categories: Sequence[str], labels: Sequence[bool], outcomes: Sequence[Outcome]) -> dict[str, Confusion]:
    """The confusion of each category, in the order they first appear."""
    groups: dict[str, list[tuple[bool, Status]]] = {}
    for category, label, outcome in zip(categories, labels, outcomes, strict=True):
        groups.setdefault(category, []).append((label, outcome.status))
    return {category: Confusion.count(pairs) for category, pairs in groups.items()}


def latency(outcomes: Sequence[Outcome], wall: float) -> dict[str, float | None]:
    """Seconds per call: median, 95th and 99th percentile, longest, mean; and calls per second.

    ``per_second`` is what one process does while it judges, 1 / mean; ``wall_per_second`` what all of them together
    did in the ``wall`` time that the audit took, with starting them.
    """
    import numpy as np

    # How long a call took is not known where its process was killed.
    seconds = np.array([o.seconds for o in outcomes if math.isfinite(o.seconds)])
    if not seconds.size:
        return dict.fromkeys(("p50", "p95", "p99", "max", "mean", "per_second", "wall", "wall_per_second"))
    p50, p95, p99 = np.percentile(seconds, (50, 95, 99)).tolist()
    mean = float(seconds.mean())
    return {
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "max": float(seconds.max()),
        "mean": mean,
        "per_second": defined(_ratio(1.0, mean)),
        "wall": wall,
        "wall_per_second": defined(_ratio(len(outcomes), wall)),
    }


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan
