"""Items whose worth is linear in features that are unlike in size, and someone who is asked which of two is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from assay.statistics.preferences.choices import Choice, fit_choices, most_informative


@dataclass(frozen=True, slots=True)
class Setting:
    """Worths are x w, w normal; i is preferred to j with chance sigmoid(r_i - r_j). Pairs are asked about one by one.

    An arm's ``design`` says which: ``informative``, the one that tells most by what is known so far, or ``random``.

    Args:
        items, width: how many, with how many features.
        decay: feature k is normal with deviation decay^k.
        labels: preferences that are asked for.
        ridge: of the estimate.
    """

    items: int = 20
    width: int = 6
    decay: float = 0.8
    labels: int = 80
    ridge: float = 0.1

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what is known at the end of the differences of all pairs: ``precision``, minus their root mean squared
        error; ``ordered``, the share whose better item has the higher worth; ``covered``, the share that lies in its
        interval for 95 %."""
        rng = np.random.default_rng([seed, 47])
        features = rng.standard_normal((self.items, self.width)) * self.decay ** np.arange(self.width)
        worths = features @ rng.standard_normal(self.width)
        lots = np.random.default_rng([seed, 53])
        pairs = list(combinations(range(self.items), 2))
        choices: list[Choice] = []
        fitted = fit_choices(choices, features, self.ridge)
        for _ in range(self.labels):
            told = most_informative(fitted, pairs) if arm["design"] == "informative" else lots.integers(len(pairs))
            i, j = pairs[int(told)]
            first = rng.random() < 1 / (1 + np.exp(worths[j] - worths[i]))
            choices.append(Choice(i if first else j, (i, j)))
            fitted = fit_choices(choices, features, self.ridge)
        found = [(fitted.difference(i, j), worths[i] - worths[j]) for i, j in pairs]
        return {
            "precision": -float(np.sqrt(np.mean([(x.value - true) ** 2 for x, true in found]))),
            "ordered": float(np.mean([(x.value > 0) == (true > 0) for x, true in found])),
            "covered": float(np.mean([x.low <= true <= x.high for x, true in found])),
        }
