"""An environment played over several turns by a tabular policy: every episode there can be is known, and its chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.tabular_turns import TabularTurns
from assay.environments.corridor import ACTIONS
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.registry import build
from assay.rollout.turns.enumerated import player
from assay.types import Episode, Task
from assay.verify.none import NoVerifier


@dataclass(frozen=True, slots=True)
class Setting:
    """A tabular policy plays an environment by rollout ``multi_turn``, one softmax for everything that went before.

    An arm's ``rollout`` may hold options of ``multi_turn``, such as ``oracle``.

    Args:
        environment: a part's name, or a table with ``name`` and options.
        words: what can be said in a turn, one word of each, a line each; an environment that reads the last line alone
            takes the earlier ones for thoughts.
        tasks: names of tasks, by their place in the environment's; ``None`` for all.
        turns: of an episode, at most.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer, epochs, mini_batches: of training.
    """

    environment: Any = "corridor"
    words: Sequence[Sequence[str]] = (ACTIONS,)
    tasks: Sequence[int] | None = None
    turns: int = 4
    spread: float = 0.5
    steps: int = 100
    prompts: int = 2
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"
    epochs: int = 1
    mini_batches: int = 1

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def player(self, seed: int) -> tuple[TabularTurns, list[Task]]:
        """Return the engine and the tasks it plays, its policy as it is at the start."""
        world = build("environment", self.environment)
        source = world.tasks()
        size = source.size
        if self.tasks is None and size is None:
            raise UsageError("setting 'environment': tasks without an end; say which to take by their places in them")
        tasks = [source[i] for i in (range(size) if self.tasks is None else self.tasks)]
        engine = player(world, tasks, self.words, self.turns)
        with torch.no_grad():
            engine.policy.logits.add_(torch.from_numpy(jitter(self.spread, seed, *engine.policy.logits.shape)))
            engine.policy.logits[0] = 0.0  # which task it is: nobody's choice
        return engine, tasks

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over tasks unless said otherwise.

        ``final``: expected score of the verdict; ``area``: its mean over training; ``start``; ``worst``: of the task
        where it is least; ``reached``: share of training after which it first was 0.9, negative, 1 if never;
        ``turns``: expected number;
        ``fresh``: expected share of turns whose last word is none of an earlier turn's;
        ``moved``: mean length of an update of the logits, by the learning rate;
        ``moved/k``: of those of the k-th word of a turn alone; ``quiet``: minus that of the first; ``right_turns``:
        share of the turns that an oracle found right, of all that were taken in the last tenth of training, where it
        was asked; ``part/NAME``: mean of that part of the verdicts there; ``rollouts``: episodes.
        """
        method = {**arm}
        rollout = method.pop("rollout", {})
        rollout = {"name": "multi_turn", **({"name": rollout} if isinstance(rollout, str) else rollout)}
        bounds = {"turns": self.turns} if rollout["name"] == "multi_turn" else {}
        method["rollout"] = {"environment": self.environment, **bounds, **rollout}
        engine, tasks = self.player(seed)
        policy, counted = engine.policy, Counted(engine)
        training = Training(
            self.steps,
            self.prompts,
            self.group,
            self.lr,
            self.optimizer,
            self.epochs,
            self.mini_batches,
            max_tokens=len(self.words),
        )
        place = self.places(engine)
        before, moved, curve = policy.logits.detach().clone(), [], []
        right: list[bool] = []
        parts: dict[str, list[float]] = {}

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            nonlocal before
            change = (policy.logits.detach() - before) / self.lr
            moved.append([float(change[place == k].norm()) for k in range(len(self.words))] + [float(change.norm())])
            before = policy.logits.detach().clone()
            curve.append(float(self.scores(engine).mean()))
            if step >= self.steps * 0.9:
                judged = [t.verdict for e in batch.episodes for t in e.turns if t.verdict is not None]
                right.extend(v.passed is True for v in judged if v.passed is not None)
                for name, value in (item for v in batch.verdicts for item in v.parts.items()):
                    if value is not None:
                        parts.setdefault(f"part/{name}", []).append(value)

        start = float(self.scores(engine).mean())
        train(policy, tasks, NoVerifier(), method, training, seed, watch, counted)
        scores, steps = self.scores(engine), np.mean(moved, axis=0)
        reached = next((i for i, value in enumerate(curve) if value >= 0.9), len(curve))
        return {
            "start": start,
            "final": float(scores.mean()),
            "area": float(np.mean(curve)),
            "worst": float(scores.min()),
            "reached": -reached / max(len(curve), 1),
            "turns": float(self.expected(engine, (policy.tree.lengths - 1).to(torch.float64) / len(self.words)).mean()),
            "fresh": float(self.expected(engine, self.fresh(engine)).mean()),
            "moved": float(steps[-1]),
            **{f"moved/{k}": float(x) for k, x in enumerate(steps[:-1])},
            "quiet": -float(steps[0]),
            **({"right_turns": float(np.mean(right))} if right else {}),
            **{name: float(np.mean(values)) for name, values in parts.items()},
            "rollouts": counted.sampled,
        }

    def places(self, engine: TabularTurns) -> torch.Tensor:
        """Return which word of a turn is chosen at each node, -1 at the root."""
        tree = engine.policy.tree
        place = torch.full((len(tree.children),), -1)
        inside = torch.arange(tree.depth) < tree.lengths[:, None]
        word = ((torch.arange(tree.depth) - 1) % len(self.words)).expand(inside.shape)
        place[tree.nodes[inside]] = word[inside]
        place[0] = -1
        return place

    def fresh(self, engine: TabularTurns) -> torch.Tensor:
        """Return for each leaf the share of its turns whose last word is none of an earlier turn's."""
        size = len(self.words)
        said = [path[size::size] for path in engine.policy.tree.paths]
        return torch.tensor([len(set(words)) / len(words) for words in said], dtype=torch.float64)

    def scores(self, engine: TabularTurns) -> np.ndarray:
        """Expected score of each task."""
        return self.expected(engine, engine.policy.tree.rewards)

    def expected(self, engine: TabularTurns, values: torch.Tensor) -> np.ndarray:
        """Expectation of one value per leaf, for each task."""
        policy, first = engine.policy, engine.policy.tree.tokens[:, 0]
        with torch.no_grad():
            chance = policy.leaf_logprobs().exp()
            sums = [float((chance * values)[first == k].sum() / chance[first == k].sum()) for k in first.unique()]
        return np.array(sums)


class Counted(TabularTurns):
    """The same engine, which counts the episodes it has begun."""

    sampled = 0

    def __init__(self, engine: TabularTurns):
        super().__init__(engine.policy, engine.words, engine.openings)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.sampled += sum(request.n for request in requests if not request.prefix)
        return super().generate(requests)
