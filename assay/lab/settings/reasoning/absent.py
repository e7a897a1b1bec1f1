"""People who may not be there, a hint of whether they are, and the choice to name one or to say that nobody is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Task, Verdict
from assay.verify.grounding.persona import Persona

CONTEXTS = 2


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy that is told, in a share ``clear`` of the cases rightly, whether the person is there, and for each of
    both hints names somebody or says that nobody is there. Whom it names is right with chance ``sees``.

    Args:
        absent: persons who are not there for each who is.
        clear: 1/2 says nothing.
        sees: see above.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr: of training.
    """

    absent: float = 0.6
    clear: float = 0.8
    sees: float = 0.7
    spread: float = 0.3
    steps: int = 60
    prompts: int = 4
    group: int = 8
    lr: float = 0.3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact expectations of the trained policy: ``cal``, right answers where somebody is there and
        abstentions where nobody is; ``attempted``, of the former those it answered; ``ta``, of the latter those it
        left; and ``rollouts``."""
        rng = np.random.default_rng([seed, 109])
        tree = Tree.of([[0.0, 0.0], [0.0, 0.0]])
        policy = TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))
        there = rng.random(self.steps * self.prompts) < 1 / (1 + self.absent)
        hints = np.where(rng.random(len(there)) < self.clear, there, ~there)
        tasks = [
            Task(
                str(i),
                str(int(hint)),
                {"type": "localize", "contexts": CONTEXTS, "answer": 0 if is_there else CONTEXTS},
                "persona",
            )
            for i, (is_there, hint) in enumerate(zip(there, hints, strict=True))
        ]
        judge, engine = Persona(), Counting(policy)

        def verdict(task: Task, response: str) -> Verdict:
            named = (path_of(response) or (1,))[-1] == 0
            index = int(rng.random() >= self.sees) if named else CONTEXTS
            return judge(task, f"\\boxed{{{index}}}")

        training = Training(self.steps, self.prompts, self.group, self.lr)
        train(policy, tasks, verdict, dict(arm), training, seed, engine=engine)
        with torch.no_grad():
            table = policy.log_policy().exp().numpy()
        names = np.array([table[tree.node([hint]), 0] for hint in (0, 1)])
        seen = float(names @ [1 - self.clear, self.clear])
        imagined = float(names @ [self.clear, 1 - self.clear])
        share = 1 / (1 + self.absent)
        return {
            "cal": share * seen * self.sees + (1 - share) * (1 - imagined),
            "attempted": seen,
            "ta": 1 - imagined,
            "rollouts": float(engine.sampled),
        }
