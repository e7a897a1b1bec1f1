"""A policy of numbers in a small world: what it learns from steps on record, and from playing on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from assay.engines.base import Sampling
from assay.engines.control import ControlEngine
from assay.environments.control.returns import course, normalised_return, scale_of
from assay.lab.settings._tabular import Training, train
from assay.policies.loading import ModelConfig
from assay.policies.policy import load_policy
from assay.registry import build
from assay.rollout.turns.vector import Vector
from assay.types import Ask
from assay.verify.none import NoVerifier

MEASURED = 40
"""Episodes that a policy is measured by, by its likeliest actions."""


@dataclass(frozen=True)
class Setting:
    """A policy acts in a world by rollout ``vector``; what is on record is in an arm's own options.

    Args:
        environment: a part's name, or a table with ``name`` and options, of a world with a script.
        decisions, hidden, levels, bins, alpha: of the policy, see
            :class:`~assay.policies.control.config.ControlConfig`.
        steps, prompts, group, lr: of training, by Adam.
        every: steps between measurements.
    """

    environment: Any = "point_mass"
    decisions: Literal["gaussian", "bins"] = "gaussian"
    hidden: Sequence[int] = (32, 32)
    levels: int = 2
    bins: int = 3
    alpha: float = 0.05
    steps: int = 8
    prompts: int = 1
    group: int = 1
    lr: float = 3e-3
    every: int = 2

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Mean returns of uniform actions and of the script."""
        return scale_of(self.environment)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return measures by the likeliest actions, on episodes that all arms and seeds begin alike.

        ``final``: return of the trained policy, 0 of uniform actions and 100 of the script; ``area``: its mean over
        the measurements; ``best``: the largest of them; ``offline``: the last one before it played, where the arm says
        how long it is ``offline``; ``online``: the mean height of the line from there on; ``reached``: share of
        episodes that got to the goal; ``rollouts``: episodes played.
        """
        control = {
            "environment": self.environment,
            "decisions": self.decisions,
            "hidden": list(self.hidden),
            "levels": self.levels,
            "bins": self.bins,
            "alpha": self.alpha,
        }
        policy = load_policy(ModelConfig.model_validate({"source": "control", "control": control}), seed)
        engine, greedy = ControlEngine(policy), Vector(Sampling(temperature=0.0))
        # Other tasks than those it is asked, by the number that they begin from.
        source = build("environment", self.environment).tasks()
        tasks, held = [source[i] for i in range(200)], [source[10_000 + i] for i in range(MEASURED)]
        curve: list[tuple[int, float, float]] = []

        def measure(step: int) -> None:
            groups = greedy.play([Ask(task, 1) for task in held], list(range(MEASURED)), engine)
            returns = [sum(turn.reward or 0.0 for turn in g.episodes[0].turns) for g in groups]
            reached = float(np.mean([g.verdicts[0].passed is True for g in groups]))
            curve.append((step, normalised_return(float(np.mean(returns)), *self.scale), reached))

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            if (step + 1) % self.every == 0 or step + 1 == self.steps:
                measure(step + 1)

        training = Training(self.steps, self.prompts, self.group, self.lr, "adam")
        train(policy, tasks, NoVerifier(), {"rollout": "vector", **arm}, training, seed, watch, engine)
        offline = int(arm.get("options", {}).get("offline", 0))
        line = [(step, value) for step, value, _ in curve]
        went = course(line, offline) if 0 < offline < self.steps else None
        return {
            "final": curve[-1][1],
            "area": float(np.mean([value for _, value, _ in curve])),
            "best": max(value for _, value, _ in curve),
            **({} if went is None else {"offline": went.offline, "online": went.area}),
            "reached": curve[-1][2],
            "rollouts": float(self.steps * self.prompts * self.group),
        }
