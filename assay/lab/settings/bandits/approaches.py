"""Problems that yield to some approaches and not to others, and a policy that has one choice of approach for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, pass_at, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """An approach solves a problem or it does not, at random but for good; the policy is one choice for all problems.

    What is learned from the problems that the best approach solves is taken from the approaches that others need: the
    sharpening of a policy that cannot tell problems apart. An arm may give a table ``setting`` with ``steps`` and
    ``group`` of its own.

    Args:
        problems: how many.
        chances: for each approach, of its solving a problem.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: a chance outside [0, 1], or fewer than two approaches.
    """

    problems: int = 200
    chances: tuple[float, ...] = (0.27, 0.18, 0.12, 0.09)
    spread: float = 0.3
    steps: int = 600
    prompts: int = 1
    group: int = 16
    lr: float = 0.3
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if len(self.chances) < 2 or not all(0 <= c <= 1 for c in self.chances):
            raise UsageError(f"setting 'approaches' needs two or more chances in [0, 1], not {list(self.chances)}")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over problems.

        ``final``: probability of a right answer, that is pass@1; ``pass@8``, ``pass@64``, ``pass@512``; ``solvable``:
        share of problems that some approach solves; ``entropy``: of the choice, in nats; ``start``: ``final`` before
        training; ``rollouts``: episodes sampled.
        """
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - {"steps", "group"}:
            raise UsageError("an arm may change steps and group of its setting alone")
        return replace(self, **knobs)._run(method, seed)

    def _run(self, method: Mapping[str, Any], seed: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, 7])
        solves = rng.random((self.problems, len(self.chances))) < np.array(self.chances)
        logits = self.spread * rng.standard_normal((1, len(self.chances)))
        policy = TabularPolicy(Tree.of([0.0] * len(self.chances)), torch.from_numpy(logits))

        def verifier(task: Task, response: str) -> Verdict:
            path = path_of(response)
            return Verdict.right() if path and solves[int(task.id), path[0]] else Verdict.wrong()

        def rates() -> np.ndarray:
            return solves @ policy.leaf_logprobs().exp().detach().numpy()

        start, engine = float(rates().mean()), Counting(policy)
        tasks = [Task(str(i), "", kind="tabular") for i in range(self.problems)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, verifier, method, training, seed, engine=engine)
        p, choice = rates(), policy.leaf_logprobs().exp().detach().numpy()
        return {
            "start": start,
            "final": float(p.mean()),
            **{f"pass@{k}": pass_at(p, k) for k in (8, 64, 512)},
            "solvable": float(solves.any(1).mean()),
            "entropy": float(-(choice * np.log(choice.clip(1e-300))).sum()),
            "rollouts": engine.sampled,
        }
