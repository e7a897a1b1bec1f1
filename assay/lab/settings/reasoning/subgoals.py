"""Steps on a screen: a thought that aims at something, then a gesture, likelier right after the right aim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular_turns import TabularTurns
from assay.lab.settings._tabular import Training, jitter, train
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task
from assay.verify.gestures.verifier import GestureVerifier

NAMES = ("network", "display", "sound", "privacy", "battery", "about", "apps", "storage")


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is a thought, the name of what it aims at, and a gesture: a click on one of these, a swipe or a key.

    Each task has a gesture that is right, a click, and its sub-goal, what is clicked. The policy begins unsure
    of both, but after the right thought the right gesture's logit is larger by ``insight``: it knows how to do what it
    aims at, and does not know what to aim at.

    Args:
        names: things to click on, 2 to 8.
        insight: see above.
        spread: standard deviation of the logits at the start.
        tasks: each with a root of its own.
        steps, prompts, group, lr, optimizer: of training.
    """

    names: int = 8
    insight: float = 3.0
    spread: float = 0.5
    tasks: int = 4
    steps: int = 60
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over tasks; as ``NAME/area`` their means over training.

        ``right``: probability of the right gesture; ``aim``: of the right thought; ``start``: ``right`` before.
        """
        engine, tasks = self.player(seed)
        start = self.measure(engine, tasks)
        curve: list[dict[str, float]] = []

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(self.measure(engine, tasks))

        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=2)
        train(engine.policy, tasks, GestureVerifier(), arm, training, seed, watch, engine)
        area = {f"{name}/area": float(np.mean([now[name] for now in curve])) for name in start}
        return {**curve[-1], **area, "start": start["right"], "rollouts": self.steps * self.prompts * self.group}

    def player(self, seed: int) -> tuple[TabularTurns, list[Task]]:
        """Return the engine and the tasks, its policy as it is at the start."""
        names = NAMES[: self.names]
        thoughts = tuple(f"<think>{name}</think>" for name in names)
        gestures = (*(f"click {name}" for name in names), "swipe up", "swipe down", "press back", "press home")
        keys = np.random.default_rng([seed, 7]).integers(self.names, size=self.tasks).tolist()
        leaves = [[[[float(a == key) for a in range(len(gestures))] for _ in names]] for key in keys]
        tree = Tree.of([task for [task] in leaves])
        logits = torch.from_numpy(jitter(self.spread, seed, *tree.children.shape))
        for k, key in enumerate(keys):
            node = tree.node((k, key))
            assert node is not None
            logits[node, key] += self.insight
        tasks = [
            Task(
                f"subgoals/{k}",
                str(k),
                reference={"gesture": gestures[key], "target": names[key]},
                kind="gesture",
                meta={"subgoal": names[key], "key": key},
            )
            for k, key in enumerate(keys)
        ]
        return TabularTurns(TabularPolicy(tree, logits), (thoughts, gestures), {}), tasks

    def measure(self, engine: TabularTurns, tasks: list[Task]) -> dict[str, float]:
        """Return the exact measures."""
        with torch.no_grad():
            p = engine.policy.log_policy().exp().numpy()
        right, aim = [], []
        for k, task in enumerate(tasks):
            root, key = engine.policy.tree.node((k,)), task.meta["key"]
            after = [engine.policy.tree.node((k, thought)) for thought in range(self.names)]
            aim.append(p[root, key])
            right.append(sum(p[root, thought] * p[node, key] for thought, node in enumerate(after)))
        return {"right": float(np.mean(right)), "aim": float(np.mean(aim))}
