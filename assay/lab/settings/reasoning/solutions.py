"""Solutions of several kinds, some likely and some rare, that differ in how good they are where they are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.inference.named import make_strategy
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is a kind of solution and a version of it; some versions are right, and kinds differ in speed.

    A strategy at test time, which an arm names with its options, chooses one response to each task; the measure is the
    speed-up of what it chooses, 0 where it chooses nothing or a wrong one. The policy is drawn anew for each seed
    around the likelihoods given.

    Args:
        likelihoods: of the kinds, about; 5 of them.
        speeds: speed-ups of right solutions of these kinds.
        right: share of a kind's versions that are right.
        versions: of each kind, equally likely at first.
        spread: standard deviation of the noise on logits, and on the logarithms of the speeds of versions.
        tasks: answered by each run.
        samples: budget of each task.
    """

    likelihoods: tuple[float, ...] = (0.5, 0.25, 0.15, 0.07, 0.03)
    speeds: tuple[float, ...] = (0.8, 0.9, 1.1, 1.6, 2.5)
    right: float = 0.5
    versions: int = 4
    spread: float = 0.2
    tasks: int = 200
    samples: int = 64

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return means over tasks.

        ``speed``: of what was chosen; ``reversed``: the same where the likely kinds are the fast ones; ``fast``: share
        of tasks with a speed-up above 1; ``best``: the best right sample's speed; ``answered``; ``tokens``.
        """
        out: dict[str, float] = {}
        for name, speeds in (("speed", self.speeds), ("reversed", self.speeds[::-1])):
            found = self._run(arm, seed, speeds)
            out |= found if name == "speed" else {"reversed": found["speed"]}
        return out

    def _run(self, arm: Mapping[str, Any], seed: int, speeds: tuple[float, ...]) -> dict[str, float]:
        rng = np.random.default_rng([seed, 7])
        kinds = len(self.likelihoods)
        shape = (kinds, self.versions)
        faster = np.exp(self.spread * rng.standard_normal(shape)) * np.asarray(speeds)[:, None]
        good = np.zeros(shape, dtype=bool)
        count = max(1, round(self.right * self.versions))
        for row in good:
            row[rng.choice(self.versions, count, replace=False)] = True
        tree = Tree.of([[0.0] * self.versions for _ in range(kinds)])
        logits = torch.zeros(tree.children.shape, dtype=torch.float64)
        logits[0, :kinds] = torch.from_numpy(np.log(self.likelihoods))
        logits += self.spread * torch.from_numpy(rng.standard_normal(tuple(logits.shape)))
        most = float(faster.max())

        def verifier(task: Task, response: str) -> Verdict:
            kind, version = path_of(response) or (0, 0)
            passed = bool(good[kind, version])
            # Scores lie in [0, 1]: the speed as a share of the fastest there is.
            return Verdict(float(faster[kind, version]) / most if passed else 0.0, passed)

        strategy = make_strategy({**arm, "verifier": verifier, "sampling": Sampling(2)})
        tasks = [Task(str(i), "") for i in range(self.tasks)]
        answers = strategy(tasks, TabularEngine(TabularPolicy(tree, logits)), self.samples, rng)
        taken = [0.0 if a.text is None else most * verifier(tasks[0], a.text).score for a in answers]
        best = [most * max(verifier(tasks[0], e.text).score for e in a.episodes) for a in answers]
        return {
            "speed": float(np.mean(taken)),
            "fast": float(np.mean([t > 1 for t in taken])),
            "best": float(np.mean(best)),
            "answered": float(np.mean([not a.abstains for a in answers])),
            "tokens": float(np.mean([a.tokens for a in answers])),
        }
