"""Steps of which a later one says that an earlier one was wrong, and a token classifier that reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.inference.supervision.quality import quality
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.rewards.step_models.examples import StepExample
from assay.rewards.step_models.saved import PRMSettings
from assay.rewards.step_models.training import StepTraining
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """A solution gives digits to ``names``, a step each, and then looks at some of them; a step is wrong if a later one
    says so of its name.

    In order, nothing tells that a step is wrong. An arm says how a small token classifier reads: ``both_ways``.

    Args:
        solutions, tested: to learn from, and to be measured on.
        names, again: steps that name something, and steps that look at one of them again.
        wrong: share of those that say it was wrong.
        hidden, layers, epochs, lr: of the classifier and its training.
    """

    solutions: int = 200
    tested: int = 100
    names: int = 3
    again: int = 2
    wrong: float = 0.5
    hidden: int = 32
    layers: int = 2
    epochs: int = 8
    lr: float = 0.003

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``pr_auc`` of wrong steps and ``share``, what one that knows nothing has; ``f1`` of first errors."""
        rng = np.random.default_rng([seed, 7])
        rows = [self.solution(rng, i) for i in range(self.solutions + self.tested)]
        nano = {
            "hidden": self.hidden,
            "layers": self.layers,
            "heads": 2,
            "context": 64,
            "alphabet": "abcd0123456789=!?\n",
        }
        with tempfile.TemporaryDirectory() as source:
            CausalLM.load(ModelConfig.model_validate({"nano": nano}), seed).save(Path(source))
            torch.manual_seed(seed)
            model = PRMSettings("whole", arm["both_ways"]).made(None, source)
        training = StepTraining("hard", epochs=self.epochs, batch=30, lr=self.lr, trunk_lr=self.lr)
        training.fit(model, rows[: self.solutions], np.random.default_rng([seed, 11]))
        found = quality(model, rows[self.solutions :])
        assert found.pr_auc is not None
        return {
            "pr_auc": found.pr_auc.value,
            "share": found.share,
            "f1": 0.0 if found.f1 is None else found.f1.value,
        }

    def solution(self, rng: np.random.Generator, number: int) -> StepExample:
        """Return a solution with the labels of its steps."""
        names = [str(x) for x in rng.permutation(list("abcd"))[: self.names]]
        told = rng.permutation(self.names)[: self.again]
        differs = rng.random(self.again) < self.wrong
        steps = [f"{name}={rng.integers(10)}" for name in names]
        labels = [1.0] * (self.names + self.again)
        for place, other in zip(told.tolist(), differs.tolist(), strict=True):
            steps.append(f"{names[place]}{'!' if other else '?'}")
            labels[place] = 0.0 if other else 1.0
        return StepExample(Task(str(number), "="), tuple(steps), tuple(labels))
