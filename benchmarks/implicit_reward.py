"""What a step costs with an implicit reward model of the policy's size, as a multiple of a plain one.

    python benchmarks/implicit_reward.py [--rounds 10] [--prompts 8] [--model quickstart]

Whole RL steps in memory on a recipe's model and sizes: generation, verdicts, signals, update of the policy and of the
reward model. The plain step is leave-one-out on outcomes, with the same objective; the others are S011's with either
reference and either order. Verdicts are by lot, half right, so that all responses are learned from. Steps are taken in
turn, all kinds in each round, each from the same weights' successor; printed are medians of the ratios of a round.
Exits with 1 if the step that PRIME takes (the initial policy as reference, read before the update) costs more than 2.2
times a plain one.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Mapping
from importlib import resources
from statistics import median
from typing import Any

import numpy as np
import torch

from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.learning.step import learn, sample
from assay.learning.update import update
from assay.method import Method, make_method
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.registry import build
from assay.signals.base import Models
from assay.types import Ask, Task, Verdict

BAR = 2.2
EVERYTHING = {"low": 0.0, "high": 1.0}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"name": "grpo", "credit": "rloo"},
    "after": {"name": "S011", "options": EVERYTHING},
    "before": {"name": "S011", "options": {**EVERYTHING, "update": "before"}},
    "after, behaviour as reference": {"name": "S011", "options": {**EVERYTHING, "reference": "behaviour"}},
}
BARRED = "after"


def by_lot(task: Task, response: str) -> Verdict:
    """Half right, whatever the model can do."""
    passed = sum(map(ord, response)) % 2 == 0
    return Verdict(float(passed), passed)


class Stepper:
    """One kind of step, on a model of its own."""

    def __init__(self, recipe: Mapping[str, Any], method: Method, prompts: int):
        self.recipe, self.method, self.prompts = recipe, method, prompts
        torch.manual_seed(0)
        self.policy = CausalLM.load(ModelConfig(**recipe["model"]), 0)
        self.engine = HFEngine(self.policy)
        self.optimizer = torch.optim.AdamW(self.policy.module.parameters(), lr=1e-5)
        self.models = Models(self.policy, self.policy.twin(), engine=self.engine, lr=1e-5)
        for learner in method.learners:
            learner.start(self.models)
        self.source = build("tasks", recipe["tasks"]["source"])
        self.rng, self.asked = np.random.default_rng(0), 0

    def step(self) -> float:
        """Take a step; return its seconds."""
        sizes = self.recipe["rollout"]
        rollout = build("rollout", "single_turn", sampling=Sampling(sizes["max_tokens"]))
        asks = [Ask(self.source[self.asked + i], sizes["group"]) for i in range(self.prompts)]
        self.asked += len(asks)
        start = time.perf_counter()
        _, batch = sample(asks, rollout, self.engine, by_lot, self.method, self.models, self.rng)

        def apply(objective: Any, part: Any) -> dict[str, float]:
            return update(self.policy, objective, part, self.optimizer)[0]

        learn(batch, self.method, self.models, self.rng, apply)
        return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--prompts", type=int, default=8, help="of a step, with the recipe's group each")
    parser.add_argument("--model", default="quickstart", help="a recipe of the package")
    arguments = parser.parse_args()
    recipe = tomllib.loads(resources.files("assay.recipes").joinpath(f"{arguments.model}.toml").read_text("utf-8"))
    steppers = {name: Stepper(recipe, make_method(**spec), arguments.prompts) for name, spec in KINDS.items()}
    for stepper in steppers.values():
        stepper.step()
    seconds: dict[str, list[float]] = {name: [] for name in steppers}
    for _ in range(arguments.rounds):
        for name, stepper in steppers.items():
            seconds[name].append(stepper.step())
    ratios = {
        name: median(a / b for a, b in zip(taken, seconds["plain"], strict=True)) for name, taken in seconds.items()
    }
    for name, taken in seconds.items():
        print(f"{name:32s} {median(taken):7.3f} s   {ratios[name]:5.2f} x")
    print(f"the step of PRIME costs {ratios[BARRED]:.2f} times a plain one; the bar is {BAR}")
    return int(ratios[BARRED] > BAR)


if __name__ == "__main__":
    sys.exit(main())
