"""Responses of two features, people of whom half want what the other half do not, and what is learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.statistics.preferences.choices import Choice, fit_choices


@dataclass(frozen=True, slots=True)
class Setting:
    """A response has quality a and length b, both normal. Half of the people want what is short, half what is long:
    with s = -1 or 1, worth is a + s b. An arm that is ``told`` learns log-odds of yes from (response, principle s,
    whether somebody finds that it is fulfilled); the other a worth from which of two responses people prefer. Both are
    linear, of a, b, and, if told, s times each.

    Args:
        labels: of either kind.
        fresh: pairs that each principle is measured on.
        ridge: of both fits.
    """

    labels: int = 200
    fresh: int = 1000
    ridge: float = 0.1

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``accuracy``, the share of pairs whose response of more worth is ranked first, the mean over both
        principles, and by principle, ``short`` and ``long``."""
        rng = np.random.default_rng([seed, 79])
        x, side = rng.standard_normal((self.labels, 2, 2)), rng.choice([-1.0, 1.0], self.labels)
        worth = x[..., 0] + side[:, None] * x[..., 1]
        lot = rng.random(self.labels)
        if arm["told"]:  # whether the first response is found to fulfil the principle
            features = np.vstack([self.features(x[:, 0], side), np.zeros((1, 4))])
            chances, other = 1 / (1 + np.exp(-worth[:, 0])), [self.labels] * self.labels
        else:
            features = np.vstack([self.features(x[:, 0], 0 * side), self.features(x[:, 1], 0 * side)])
            chances, other = 1 / (1 + np.exp(worth[:, 1] - worth[:, 0])), [self.labels + i for i in range(self.labels)]
        choices = [Choice(i if won else o, (i, o)) for i, (won, o) in enumerate(zip(lot < chances, other, strict=True))]
        weights = fit_choices(choices, features, self.ridge).weights
        fresh = np.random.default_rng([seed, 83]).standard_normal((self.fresh, 2, 2))
        found = {}
        for name, s in (("short", -1.0), ("long", 1.0)):
            told = s if arm["told"] else 0.0
            scores = [self.features(fresh[:, k], np.full(self.fresh, told)) @ weights for k in (0, 1)]
            true = fresh[..., 0] + s * fresh[..., 1]
            found[name] = float(np.mean((scores[0] > scores[1]) == (true[:, 0] > true[:, 1])))
        return {"accuracy": (found["short"] + found["long"]) / 2, **found}

    def features(self, x: np.ndarray, side: np.ndarray) -> np.ndarray:
        return np.concatenate([x, side[:, None] * x], 1)
