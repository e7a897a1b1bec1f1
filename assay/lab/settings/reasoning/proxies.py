"""Proxies of a reward in a small decision process: how far from it they are, and what is lost by going by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from assay.papers.process.s121_starc import MDP, regret, starc


@dataclass(frozen=True, slots=True)
class Setting:
    """A random process and reward, and proxies of it that are mixed with another reward, then shaped by a potential and
    moved between successors, which changes no policy.

    An arm says how distances are measured, by the options of :func:`assay.papers.process.s121_starc.starc`.

    Args:
        states, actions: of the process.
        proxies: of the reward; their shares of the other reward rise from 0 to 1.
        shaping: size of potentials and of what is moved.
        gamma: discount.
    """

    states: int = 4
    actions: int = 2
    proxies: int = 24
    shaping: float = 2.0
    gamma: float = 0.9

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``rank``: the rank correlation of distance and regret over the proxies."""
        rng = np.random.default_rng([seed, 7])
        shape = (self.states, self.actions, self.states)
        mdp = MDP(rng.dirichlet(np.ones(self.states), shape[:2]), self.gamma)
        true, distance = rng.standard_normal(shape), starc(**arm)
        far, lost = [], []
        for share in np.linspace(0, 1, self.proxies):
            proxy = (1 - share) * true + share * rng.standard_normal(shape)
            potential = self.shaping * rng.standard_normal(self.states)
            moved = self.shaping * rng.standard_normal(shape)
            moved -= (mdp.transitions * moved).sum(-1, keepdims=True)
            shaped = proxy + self.gamma * potential[None, None] - potential[:, None, None] + moved
            far.append(distance(mdp, true, shaped))
            lost.append(regret(mdp, true, shaped))
        return {"rank": float(spearmanr(far, lost).statistic), "regret": float(np.mean(lost))}
