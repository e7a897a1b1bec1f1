"""Mazes to be crossed by moves that a table knows nothing of: how far points for a part of the path lead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting, beside
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.tasks.pictures.mazes import lay
from assay.types import Task, Verdict
from assay.verify.puzzles.path_prefix import PathPrefix, written


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy that knows mazes by name alone, and at the start next to nothing of the moves: each is a softmax.

    Responses are as many moves as the path has, written after an empty thought.

    Args:
        mazes: of ``grid`` x ``grid`` cells; each is asked as often.
        moves, turns: of each path.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr: of training.
    """

    mazes: int = 4
    grid: int = 5
    moves: int = 5
    turns: int = 2
    spread: float = 0.5
    steps: int = 60
    prompts: int = 4
    group: int = 8
    lr: float = 3.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact means over mazes: ``start`` and ``final``, the probability of the whole path before and after
        training, ``area``, its mean over training, ``first``, that of the first half of the path after it, and
        ``rollouts``.
        """
        rng = np.random.default_rng([seed, 89])
        laid = [lay(rng, self.grid, self.moves, self.turns) for _ in range(self.mazes)]
        policy = self.policy(seed)
        tasks = [Task(str(i), str(i), maze.reference, "path_prefix") for i, maze in enumerate(laid)]
        routes = [["UDLR".index(move) for move in maze.path] for maze in laid]
        engine, curve, start = Counting(policy), list[float](), chance(policy, routes)

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(chance(policy, routes))

        training = Training(self.steps, self.prompts, self.group, self.lr)
        train(policy, tasks, spelled, dict(arm), training, seed, watch, engine)
        return {
            "start": start,
            "final": curve[-1],
            "area": float(np.mean(curve)),
            "first": chance(policy, [route[: self.moves // 2] for route in routes]),
            "rollouts": float(engine.sampled),
        }

    def policy(self, seed: int) -> TabularPolicy:
        """Return the policy at the start; its first decision is the maze, which prompts make."""
        tree = beside([Tree.uniform(4, self.moves) for _ in range(self.mazes)])
        return TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))


def spelled(task: Task, response: str) -> Verdict:
    """Judge a path such as ``0/2/1`` by the verifier that the paper brings."""
    path = "".join("UDLR"[code] for code in path_of(response) or ())
    return PathPrefix()(task, f"<think></think>{written(path)}")


def chance(policy: TabularPolicy, routes: list[list[int]]) -> float:
    """Return the mean probability that the policy begins with each maze's moves."""
    with torch.no_grad():
        p = policy.log_policy().numpy()
    logs = []
    for i, route in enumerate(routes):
        nodes = [policy.tree.node([i, *route[:k]]) for k in range(len(route))]
        logs.append(float(np.sum([p[node, move] for node, move in zip(nodes, route, strict=True)])))
    return float(np.mean(np.exp(logs)))
