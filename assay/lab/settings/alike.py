"""Methods of a few runs each that are the same, or not: how often each rule says that one is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.errors import UsageError

Scores = NDArray[np.float64]
Rule = Callable[[Scores, Scores, int], bool]


@dataclass(frozen=True, slots=True)
class Setting:
    """Pairs of methods of the same law, and pairs of which one is better by ``gap``, compared by one rule.

    Every second comparison is over one task, the others are over three. Scores are normal about their task's level,
    with standard deviation 1 over runs. An arm gives ``rule``: ``beats``
    (:meth:`assay.papers.multimodal_eval.s213_rliable.Reliable`), ``improvement`` (its second condition alone), both
    with the intervals of method ``t``, or ``standard errors`` (mean and standard error of the runs' means over tasks do
    not overlap, as bars are often read).

    Args:
        comparisons: of each kind.
        runs: of each method.
        gap: of those that differ, in standard deviations.
        resamples: of the bootstrap.
    """

    comparisons: int = 200
    runs: int = 5
    gap: float = 3.0
    resamples: int = 400

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``calm``, the share of equal pairs of which neither is called better, and ``found``, that of unequal
        pairs of which the better one is."""
        if arm.get("rule") not in RULES:
            raise UsageError(f"setting 'alike' has the rules {', '.join(RULES)}, not {arm.get('rule')!r}")
        rule, rng = RULES[arm["rule"]](self.resamples), np.random.default_rng([seed, 7])
        called = found = 0
        for i in range(self.comparisons):
            tasks = 3 if i % 2 == 0 else 1
            a, b, c = rng.normal(size=tasks) + rng.normal(size=(3, self.runs, tasks))
            called += rule(a, b, i) or rule(b, a, i)
            found += rule(c + self.gap, a, i)
        return {"calm": 1 - called / self.comparisons, "found": found / self.comparisons}


def beats(resamples: int) -> Rule:
    from assay.papers.multimodal_eval.s213_rliable import rliable

    return lambda a, b, seed: rliable({"a": a, "b": b}, resamples=resamples, seed=seed, method="t").beats("a", "b")


def improvement(resamples: int) -> Rule:
    from assay.papers.multimodal_eval.s213_rliable import rliable

    return lambda a, b, seed: (
        rliable({"a": a, "b": b}, resamples=resamples, seed=seed, method="t").improvement("a", "b").low > 0.5
    )


def standard_errors(resamples: int) -> Rule:
    def apart(a: Scores, b: Scores, seed: int) -> bool:
        x, y = a.mean(1), b.mean(1)
        bars = (x.std(ddof=1) + y.std(ddof=1)) / np.sqrt(len(x))
        return bool(x.mean() - y.mean() > bars)

    return apart


RULES: dict[str, Callable[[int], Rule]] = {
    "beats": beats,
    "improvement": improvement,
    "standard errors": standard_errors,
}
