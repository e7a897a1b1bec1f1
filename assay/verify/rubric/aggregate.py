"""What the marks of a rubric come to: one number, or none where a mark that it takes could not be read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Protocol

from assay.errors import UsageError, nearest
from assay.registry import call
from assay.verify.rubric.criteria import Rubric, unmet

Marks = Sequence[float | None]


class Aggregate(Protocol):
    """Makes one number of marks in [0, 1], one a criterion, in order; ``None`` where unread marks leave it open."""

    def __call__(self, rubric: Rubric, marks: Marks) -> float | None: ...


def mean(rubric: Rubric, marks: Marks) -> float | None:
    """Return sum_k w_k s_k / sum_k w_k, in [0, 1].

    Raises:
        UsageError: a weight below 0, or all are 0.
    """
    known = _known(marks)
    weights = _weights(rubric)
    return None if known is None else _dot(weights, known) / math.fsum(weights)


def signed(rubric: Rubric, marks: Marks) -> float | None:
    """Return sum_k w_k s_k, with weights of either sign; not normalised."""
    known = _known(marks)
    return None if known is None else _dot([c.weight for c in rubric.criteria], known)


def clipped(rubric: Rubric, marks: Marks) -> float | None:
    """Return clip(sum_k w_k s_k / sum of the weights above 0, 0, 1), as HealthBench does.

    Raises:
        UsageError: no weight is above 0.
    """
    positive = math.fsum(c.weight for c in rubric.criteria if c.weight > 0)
    if not positive:
        raise UsageError("a rubric whose marks are clipped needs a criterion with a weight above 0")
    total = signed(rubric, marks)
    return None if total is None else min(max(total / positive, 0.0), 1.0)


def every(rubric: Rubric, marks: Marks) -> float | None:
    """Return 1 if all is as it should be, a criterion of negative weight not met; 0 if anything is known not to be."""
    if any(starmap(unmet, zip(rubric.criteria, marks, strict=True))):
        return 0.0
    return None if None in marks else 1.0


@dataclass(frozen=True, slots=True)
class Rubicon:
    """Veto, saturation, interactions and a stretch of the high end, in [0, 1]:

        sat(s) = (1 - exp(-kappa s)) / (1 - exp(-kappa))
        x      = clip(sum_k w_k sat(s_k) / sum_k w_k + sum over pairs (i, j) of c_ij s_i s_j, 0, 1)
        R      = 0 if a criterion with a veto has s = 0, else shape(x)
        shape(x) = (x if x < q else q + b (x - q)) / (q + b (1 - q))

    kappa = 0 is no saturation (its limit), b = 1 no stretch; with neither, no pairs and no veto it is the weighted
    mean. A veto holds whatever could not be read beside it.

    Args:
        kappa: of saturation, at least 0.
        pairs: triples of two ids and c_ij; of rubrics that lack one of the two nothing is added.
        q, b: see above; q in [0, 1], b above 0.

    Raises:
        UsageError: an option out of range; when called, a weight below 0, or all are 0.
    """

    kappa: float = 3.0
    pairs: Sequence[Sequence[Any]] = ()
    q: float = 0.7
    b: float = 2.0

    def __post_init__(self) -> None:
        if not (0 <= self.kappa < math.inf and 0 <= self.q <= 1 and 0 < self.b < math.inf):
            raise UsageError(
                f"aggregate 'rubicon': needs kappa {self.kappa:g} >= 0, q {self.q:g} in [0, 1], b {self.b:g} > 0"
            )
        if any(len(pair) != 3 or isinstance(pair[2], str) for pair in self.pairs):
            raise UsageError("aggregate 'rubicon': pairs are triples of two ids and a number")

    def __call__(self, rubric: Rubric, marks: Marks) -> float | None:
        weights = _weights(rubric)
        if any(c.veto and mark == 0 for c, mark in zip(rubric.criteria, marks, strict=True)):
            return 0.0
        known = _known(marks)
        if known is None:
            return None
        mark = dict(zip((c.id for c in rubric.criteria), known, strict=True))
        x = _dot(weights, [self.saturated(s) for s in known]) / math.fsum(weights)
        x += math.fsum(float(c) * mark[str(i)] * mark[str(j)] for i, j, c in self.pairs if {str(i), str(j)} <= {*mark})
        return self.shaped(min(max(x, 0.0), 1.0))

    def saturated(self, s: float) -> float:
        """Return sat(s): later gains in a criterion count less."""
        return math.expm1(-self.kappa * s) / math.expm1(-self.kappa) if self.kappa else s

    def shaped(self, x: float) -> float:
        """Return shape(x): of slope b times larger from q on, with 0 and 1 in their places."""
        return (x if x < self.q else self.q + self.b * (x - self.q)) / (self.q + self.b * (1 - self.q))


AGGREGATES: dict[str, Any] = {"mean": mean, "sum": signed, "clip": clipped, "all": every, "rubicon": Rubicon}
"""By name; a class takes options."""


def aggregate_of(spec: Any) -> Aggregate:
    """Return the aggregate: a name, a table with ``name`` and options, or a function of rubric and marks.

    Raises:
        UsageError: it is none of these.
    """
    if callable(spec) and not isinstance(spec, type):
        made: Aggregate = spec
        return made
    table = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
    name = table.pop("name", None)
    found = AGGREGATES.get(name) if isinstance(name, str) else None
    if found is None:
        raise UsageError(f"no aggregate of marks is called {name!r}{nearest(str(name), AGGREGATES)}")
    if isinstance(found, type):
        return call(found, table, f"aggregate {name!r}")
    if table:
        raise UsageError(f"aggregate {name!r} has no option {next(iter(table))!r}")
    return found


def _known(marks: Marks) -> list[float] | None:
    known = [mark for mark in marks if mark is not None]
    return known if len(known) == len(marks) else None


def _weights(rubric: Rubric) -> list[float]:
    weights = [c.weight for c in rubric.criteria]
    if min(weights) < 0 or not any(weights):
        raise UsageError("a mean of marks needs weights of at least 0, one above; take aggregate 'clip' or 'sum'")
    return weights


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))
