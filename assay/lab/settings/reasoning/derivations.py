"""Right answers by sound and by flawed derivations, which the verifier cannot tell apart and a judge of steps can."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import Leaf, TabularPolicy, Tree, path_of, text_of
from assay.types import Episode, Prompt, Task

KINDS = ("sound", "flawed", "wrong")


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` questions with three kinds of response: sound and flawed ones have the right answer, wrong ones not.

    The judge is an engine that is asked about a response's steps, ``<step 0>...``, as
    :func:`assay.rewards.process.error_step.question` writes them, and boxes the index of the first flawed one or -1. It
    errs at known rates, always the same way about the same response. An arm gets it by naming ``"here"`` as the
    ``judge`` of its reward.

    Args:
        tasks: questions, all asked in every step.
        start: probability of each kind at the start; how it is spread over the responses of a kind is random.
        each: responses of each kind.
        spread: standard deviation of their logits at the start.
        missed, alarms: how often the judge finds no flaw in a flawed response, one in a sound response.
        steps, group, lr, optimizer: of training.

    Raises:
        UsageError: ``start`` is not three positive probabilities.
    """

    tasks: int = 4
    start: tuple[float, float, float] = (0.05, 0.15, 0.80)
    each: int = 2
    spread: float = 0.5
    missed: float = 0.0
    alarms: float = 0.0
    steps: int = 200
    group: int = 16
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if min(self.start) <= 0 or abs(sum(self.start) - 1) > 1e-6:
            raise UsageError("setting 'derivations': start must be three positive probabilities that sum to 1")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over tasks: final chances of ``sound``, ``flawed`` and ``wrong`` responses.

        ``peak``: the largest that flawed responses had in the course of training, and ``peak/step`` when, as a share of
        it; ``early``: the mean probability of a right answer in the first quarter; ``rollouts``.
        """
        policy = self.policy(seed)
        engine = Counting(policy)
        method = {**arm}
        reward = method.get("reward")
        if isinstance(reward, Mapping) and reward.get("judge") == "here":
            method["reward"] = {**reward, "judge": Judge(policy.tree, self.missed, self.alarms, seed)}
        tasks = [Task(str(i), str(i), reference="right", kind="tabular") for i in range(self.tasks)]
        training = Training(self.steps, self.tasks, self.group, self.lr, self.optimizer)
        curve: list[dict[str, float]] = []

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(self.measure(policy))

        train(policy, tasks, TabularVerifier(policy.tree), method, training, seed, watch, engine)
        flawed = [now["flawed"] for now in curve]
        quarter = curve[: max(len(curve) // 4, 1)]
        return {
            **curve[-1],
            "peak": max(flawed),
            "peak/step": flawed.index(max(flawed)) / len(flawed),
            "early": float(np.mean([1 - now["wrong"] for now in quarter])),
            "rollouts": engine.sampled,
        }

    def policy(self, seed: int) -> TabularPolicy:
        """Return the policy at the start."""
        rng = np.random.default_rng([seed, 7])
        leaves = [Leaf(float(kind != "wrong"), kind) for kind in KINDS for _ in range(self.each)]
        tree = Tree.of([leaves] * self.tasks)
        logits = torch.zeros(tree.children.shape, dtype=torch.float64)
        for i in range(self.tasks):
            node = tree.node([i])
            assert node is not None
            noise = np.exp(self.spread * rng.standard_normal((len(KINDS), self.each)))
            p = np.asarray(self.start)[:, None] * noise / noise.sum(1, keepdims=True)
            logits[node, : len(leaves)] = torch.from_numpy(np.log(p.ravel()))
        return TabularPolicy(tree, logits)

    def measure(self, policy: TabularPolicy) -> dict[str, float]:
        with torch.no_grad():
            p = policy.leaf_logprobs().exp().numpy().reshape(self.tasks, len(KINDS), self.each).sum(-1)
        p = p / p.sum(-1, keepdims=True)
        return dict(zip(KINDS, p.mean(0).tolist(), strict=True))


class Judge:
    """An engine that knows which responses are flawed; see :class:`Setting`.

    Args:
        tree: its leaves' labels say so.
        missed, alarms: rates of its errors.
        seed: of the errors.
    """

    def __init__(self, tree: Tree, missed: float, alarms: float, seed: int):
        rng = np.random.default_rng([seed, 19])
        # A response is written from its question on; questions have the same responses, and the judge the same errors.
        self.says: dict[str, int] = {}
        for path, label in zip(tree.paths, tree.labels, strict=True):
            wrong = rng.random() < (missed if label == "flawed" else alarms)
            self.says.setdefault(text_of(path[1:]), 0 if (label == "flawed") != wrong else -1)

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.asarray(path_of(text) or (), dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return text_of(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._reply(str(request.prompt))] * request.n for request in requests]

    def _reply(self, prompt: str) -> Episode:
        found = re.search(r"<step 0>\n(.*?)\n</step 0>", prompt, re.DOTALL)
        index = self.says.get(found[1].strip()) if found else None
        empty = np.zeros(0, dtype=np.int64)
        text = "nothing to judge" if index is None else f"\\boxed{{{index}}}"
        return Episode(empty, empty, empty > 0, None, text, "eos")
