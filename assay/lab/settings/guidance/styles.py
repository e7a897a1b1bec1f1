"""Ways of reasoning that a policy does not take by itself, from some of which it would see the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of, text_of
from assay.types import Task, Verdict
from assay.verify.answer.spans import Span


@dataclass(frozen=True, slots=True)
class Setting:
    """A response chooses a style, reasons in it for some steps, and answers with one of ``answers`` symbols.

    Half of the ``styles`` are the policy's habit, and the answer after them is right once in a thousand. The others are
    those of teachers: at the start the odds of each are ``rare``, and each of their steps is gone on with
    with a chance of one half, or the response is lost. What the chance of the right answer is after a teacher's
    reasoning differs: evenly spaced logits between ``least`` and ``most``, in an order that is drawn for each seed,
    as is the number of steps, between 1 and ``longest``. The task's ``meta["traces"]`` are teachers' right responses.

    Args:
        styles, answers, longest, rare: see above.
        least, most: chance of the right answer after a teacher's reasoning, of the hardest and the easiest.
        spread: standard deviation of the logits around all this.
        steps, prompts, group, lr, optimizer: of training.
    """

    styles: int = 8
    answers: int = 8
    longest: int = 4
    rare: float = 0.01
    least: float = 0.02
    most: float = 0.8
    spread: float = 0.1
    steps: int = 60
    prompts: int = 1
    group: int = 8
    lr: float = 30.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact chances of a right response: ``start``, ``solved`` at the end, ``area``, its mean over training;
        and ``rollouts``, which traces are not among, nor readings of them."""
        policy, traces = self.policy(seed)
        engine, curve, start = Sampled(policy), list[float](), policy.expected_reward().item()
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=self.longest + 2)

        def watch(*_: Any) -> None:
            curve.append(policy.expected_reward().item())

        verifier = Leaves(policy.tree)
        right = path_of(traces[0])
        assert right is not None
        task = Task("styles", "which?", str(right[-1]), "tabular", meta={"traces": traces})
        train(policy, [task], verifier, arm, training, seed, watch, engine)
        return {"start": start, "solved": curve[-1], "area": float(np.mean(curve)), "rollouts": engine.sampled}

    def policy(self, seed: int) -> tuple[TabularPolicy, list[str]]:
        """Return the policy at the start, and the teachers' right responses."""
        rng = np.random.default_rng([seed, 7])
        teachers = self.styles // 2
        right = int(rng.integers(self.answers))
        long = rng.integers(1, self.longest + 1, size=teachers).tolist()
        low, high = (float(np.log(p / (1 - p))) for p in (self.least, self.most))
        chances = 1 / (1 + np.exp(-rng.permutation(np.linspace(low, high, teachers))))
        last = [float(k == right) for k in range(self.answers)]

        def style(steps: int) -> Any:
            return last if steps == 0 else [style(steps - 1), 0.0]

        tree = Tree.of([*(style(n) for n in long), *([last] * (self.styles - teachers))])
        logits = torch.from_numpy(jitter(self.spread, seed, *tree.children.shape))
        root = torch.tensor([self.rare] * teachers + [1.0] * (self.styles - teachers))
        logits[0, : self.styles] += root.log()
        odds = [*chances.tolist(), *[1e-3] * (self.styles - teachers)]
        for k, chance in enumerate(odds):
            node = tree.node((k, *([0] * long[k] if k < teachers else [])))
            logits[node, right] += np.log(chance / (1 - chance) * (self.answers - 1))
        traces = [text_of((k, *[0] * n, right)) for k, n in enumerate(long)]
        return TabularPolicy(tree, logits), traces


class Sampled(Counting):
    """Counts what is sampled freely: a given answer that is read after a trace is not."""

    def generate(self, requests: Any) -> Any:
        found = super().generate(requests)
        self.sampled -= sum(r.n for r in requests if r.within is not None)
        return found


class Leaves:
    """Right is a path to a leaf of reward 1; its answer is its last symbol."""

    def __init__(self, tree: Tree):
        self.right = {text_of(p) for p, r in zip(tree.paths, tree.rewards.tolist(), strict=True) if r == 1}

    def __call__(self, task: Task, response: str) -> Verdict:
        return Verdict.right() if response in self.right else Verdict.wrong()

    def answer(self, task: Task, response: str) -> Span | None:
        """The last symbol, with the slash before it."""
        at = response.rfind("/")
        return Span(at, at, len(response), len(response)) if at > 0 else None
