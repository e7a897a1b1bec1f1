"""Questions with four options, of which one letter is right more often than the others: think, or say that letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.reread.reordered import REORDERED, Second
from assay.types import Episode, Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy of two ways to answer, each taken half of the time at the start.

    Who thinks is right with probability ``thought``, and says the same of reordered options. Who says B is right where
    B is, in a share ``letter`` of the questions; no option keeps its letter, so that the second answer is wrong there,
    and elsewhere right once in three times.

    Args:
        thought, letter: see above.
        steps, prompts, group, lr: of training.
    """

    thought: float = 0.6
    letter: float = 0.6
    steps: int = 200
    prompts: int = 2
    group: int = 8
    lr: float = 0.1

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``thinks``, the probability of thinking after training, and ``rollouts``."""
        rng = np.random.default_rng([seed, 97])
        rights = rng.random(self.steps * self.prompts) < self.letter
        tasks = [Task(str(i), "B" if right else "another", kind="letters") for i, right in enumerate(rights)]
        policy = TabularPolicy(Tree.bandit(2))
        engine = Ways(policy, self.thought, rng)
        training = Training(self.steps, self.prompts, self.group, self.lr)
        train(policy, tasks, verdict, dict(arm), training, seed, engine=engine)
        return {"thinks": float(policy.leaf_logprobs().detach().exp()[0]), "rollouts": float(engine.sampled)}


class Ways(Counting):
    """Answers by either way (0: think, 1: say B), and what each would answer of reordered options."""

    def __init__(self, policy: TabularPolicy, thought: float, rng: np.random.Generator):
        super().__init__(policy)
        self.thought, self.rng = thought, rng

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        drawn = super().generate(requests)
        return [[self.answered(e, r.prompt == "B") for e in made] for r, made in zip(requests, drawn, strict=True)]

    def answered(self, episode: Episode, is_b: bool) -> Episode:
        if int(episode.tokens[0]) == 0:
            right = again = bool(self.rng.random() < self.thought)
        else:
            right, again = is_b, not is_b and bool(self.rng.random() < 1 / 3)
        second = Second((1, 2, 3, 0), again, right and again, "")
        text = f"<think></think><answer>{'right' if right else 'wrong'}</answer>"
        return replace(episode, text=text, meta={**episode.meta, REORDERED: second})


def verdict(task: Task, response: str) -> Verdict:
    return Verdict.right() if "right" in response else Verdict.wrong()
