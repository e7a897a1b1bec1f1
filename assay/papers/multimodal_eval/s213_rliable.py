"""S213: what a few runs of each method can say: aggregates with intervals, profiles, probability of improvement."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.statistics import aggregate, profiles
from assay.statistics.efficiency import efficiency_curve
from assay.statistics.intervals import Interval


@paper(
    "S213",
    "rliable",
    arxiv="2108.13264",
    seams=["evaluate"],
    essentials={
        "mean, median, IQM and optimality gap of all runs x tasks scores": "test_worked_numbers",
        "IQM: a quarter of the scores left out at either end, so that an outlier does not move it": (
            "test_an_outlier_moves_the_mean_and_not_the_iqm"
        ),
        "stratified bootstrap: runs drawn anew within each task, ends are the quantiles of 50,000 resamples": (
            "test_the_intervals_are_quantiles_of_runs_drawn_within_tasks"
        ),
        "performance profiles of runs, with bands": "test_the_band_of_a_profile_is_that_of_the_bootstrap",
        "probability of improvement, with its interval": "test_the_improvement_of_resampled_runs",
        "sample efficiency curves: an aggregate with its interval at each checkpoint": (
            "test_each_checkpoint_has_the_interval_of_the_table_there"
        ),
    },
    choices=(
        "beats() is ours: the paper compares intervals by eye; here both those of the IQM and that of the improvement",
        "improvements take 10,000 resamples at most; the authors' code takes as many as are asked for",
        "method='t', not the default, is ours: wider intervals, which cover as often as they say of five runs too",
    ),
)
def rliable(
    scores: Mapping[str, ArrayLike],
    confidence: float = 0.95,
    resamples: int = 50_000,
    target: float = 1.0,
    seed: int = 0,
    method: aggregate.Method = "percentile",
) -> Reliable:
    """Statistics of methods by few runs each: no training method, but what its claims are reported with.

        mean           mean over tasks of the mean over runs
        median         median over tasks of the mean over runs
        IQM            mean of the middle half of all runs x tasks scores
        optimality gap target - mean(min(score, target))
        F(tau)         share of runs x tasks scores above tau (performance profile)
        P(X > Y)       mean over tasks of P(x > y) + P(x = y) / 2 over pairs of runs

    each with an interval from runs of every task drawn anew, by themselves; and learning curves with such an interval
    at each checkpoint. The parts are functions too: :mod:`assay.statistics.aggregate`,
    :mod:`assay.statistics.profiles`, :mod:`assay.statistics.efficiency`.

    Args:
        scores: by method a table ``(runs, tasks)`` of normalised scores, or ``(runs, tasks, checkpoints)``, of which
            the last checkpoint counts. All have the same tasks, in the same order; runs may differ in number.
        confidence: coverage of the intervals.
        resamples: of the bootstrap; profiles and curves take at most 2000, improvements at most 10,000.
        target: score beyond which the optimality gap sees no merit.
        seed: of the resampling.
        method: ``percentile`` for the authors' intervals, whose ends are quantiles of the resamples; of five runs they
            cover in 80 to 93 % of cases. ``t``, not of the paper, allows for how little few runs say of their spread,
            see :func:`assay.statistics.aggregate.interval` and :mod:`assay.statistics.profiles`.

    Source: "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (arXiv 2108.13264) and its authors'
    code.
    """
    return Reliable(scores, confidence, resamples, target, seed, method)


@dataclass(frozen=True)
class Reliable:
    """See :func:`rliable`.

    Raises:
        UsageError: no methods, scores that are no tables of finite numbers, or tables of different tasks.
    """

    scores: Mapping[str, ArrayLike]
    confidence: float = 0.95
    resamples: int = 50_000
    target: float = 1.0
    seed: int = 0
    method: aggregate.Method = "percentile"
    _curves: dict[str, np.ndarray] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        made = {}
        for name, given in self.scores.items():
            x = np.asarray(given, dtype=np.float64)
            x = x[:, :, None] if x.ndim == 2 else x
            if x.ndim != 3 or not x.size or not np.isfinite(x).all():
                raise UsageError(
                    f"S213: the scores of {name!r} are no table (runs, tasks) of finite numbers: {x.shape}"
                )
            made[name] = x
        if len({x.shape[1] for x in made.values()}) != 1:
            sizes = ", ".join(f"{name} {x.shape[1]}" for name, x in made.items()) or "no method"
            raise UsageError(f"S213: give each method's scores on the same tasks; tasks: {sizes}")
        object.__setattr__(self, "_curves", made)

    def final(self, name: str) -> np.ndarray:
        """Return a method's scores ``(runs, tasks)`` at its last checkpoint."""
        return self._curves[name][:, :, -1]

    def aggregates(self, tasks: bool = False) -> dict[str, dict[str, Interval]]:
        """Return by method ``mean``, ``median``, ``iqm`` and ``optimality_gap``; ``tasks`` resamples tasks too."""
        gap = functools.partial(aggregate.optimality_gap, target=self.target)
        functions: dict[str, aggregate.Aggregate] = {**aggregate.AGGREGATES, "optimality_gap": gap}
        return {
            name: {
                k: aggregate.interval(self.final(name), f, tasks=tasks, **self._options) for k, f in functions.items()
            }
            for name in self._curves
        }

    def profiles(self, thresholds: ArrayLike, of_means: bool = False) -> dict[str, list[Interval]]:
        """Return by method F(tau) at each threshold, with a pointwise 95% interval.

        ``of_means`` takes the share of tasks whose mean score is above in place of the share of runs.
        """
        out = {}
        for name in self._curves:
            columns = profiles.profile(
                self.final(name),
                thresholds,
                of_means=of_means,
                resamples=min(self.resamples, 2_000),
                method=self.method,
                seed=self.seed,
            )
            out[name] = [Interval(*map(float, row)) for row in zip(*columns, strict=True)]
        return out

    def improvement(self, better: str, baseline: str) -> Interval:
        """Return the probability that a run of one method beats a run of the other."""
        return profiles.probability_of_improvement(
            self.final(better),
            self.final(baseline),
            confidence=self.confidence,
            resamples=min(self.resamples, 10_000),
            method=self.method,
            seed=self.seed,
        )

    def improvements(self) -> dict[tuple[str, str], Interval]:
        """Return :meth:`improvement` of every method over every method named before it."""
        names = list(self._curves)
        return {(b, a): self.improvement(b, a) for i, a in enumerate(names) for b in names[i + 1 :]}

    def efficiency(self, key: str = "iqm") -> dict[str, list[Interval]]:
        """Return by method an aggregate at each checkpoint."""
        options = {**self._options, "resamples": min(self.resamples, 2_000)}
        return {name: efficiency_curve(x, key, **options) for name, x in self._curves.items()}

    def beats(self, better: str, baseline: str) -> bool:
        """Say whether one method is better beyond doubt.

        The interval of its IQM lies above the other's, and that of the probability of improvement above one half. Both
        are asked for, because the second alone calls two identical methods of five runs different too often.
        """
        a, b = (aggregate.interval(self.final(n), "iqm", **self._options) for n in (better, baseline))
        return a.low > b.high and self.improvement(better, baseline).low > 0.5

    def summary(self) -> list[str]:
        """Return one line for each method: its IQM with the interval, and whom it :meth:`beats`."""
        lines = []
        for name in self._curves:
            iqm = aggregate.interval(self.final(name), "iqm", **self._options)
            over = [other for other in self._curves if other != name and self.beats(name, other)]
            told = f"; beats {', '.join(over)}" if over else ""
            lines.append(f"{name}: IQM {iqm.value:.3f} [{iqm.low:.3f}, {iqm.high:.3f}]{told}")
        return lines

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "confidence": self.confidence,
            "resamples": self.resamples,
            "method": self.method,
            "seed": self.seed,
        }


claims(
    Claim(
        paper="S213",
        text="Of 200 pairs of identical methods with five runs each, fewer are called different than by standard "
        "errors that do not overlap.",
        setting="alike",
        arms={
            "S213": {"rule": "beats"},
            "improvement alone": {"rule": "improvement"},
            "standard errors": {"rule": "standard errors"},
        },
        better="S213",
        baseline="standard errors",
        measure="calm",
    )
)
