"""A sequence that is right as a whole or not at all, and a teacher who knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.reasoning.miracle import told
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of, text_of
from assay.types import Episode, Prompt, Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """Of ``symbols``^``length`` sequences one is right, drawn for each seed. A verdict's part ``step k`` is 1 as long
    as all symbols so far are right, and 0 from the first wrong one on.

    An arm gets a teacher, an engine that writes the right symbols wherever it begins, by naming ``"here"``.

    Args:
        length, symbols: of a sequence.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    length: int = 4
    symbols: int = 3
    spread: float = 0.3
    steps: int = 60
    prompts: int = 1
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``solved``, the chance of the right sequence after training, ``area``, its mean over training, and
        ``rollouts``, which the teacher's are not among, though what the policy goes on with is."""
        answer = tuple(np.random.default_rng([seed, 11]).integers(self.symbols, size=self.length).tolist())
        policy = self.policy(seed, answer)
        engine = Counting(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=self.length)
        tasks = [Task(str(i), f"problem {i}", reference="right", kind="tabular") for i in range(self.prompts)]
        curve: list[float] = []

        def verifier(task: Task, response: str) -> Verdict:
            path = path_of(response) or ()
            good = [path[: k + 1] == answer[: k + 1] for k in range(len(path))]
            passed = path == answer
            return Verdict(float(passed), passed, {f"step {k}": float(g) for k, g in enumerate(good)})

        def watch(*_: Any) -> None:
            curve.append(self.solved(policy))

        train(policy, tasks, verifier, told(arm, Teacher(answer)), training, seed, watch, engine)
        return {"solved": curve[-1], "area": float(np.mean(curve)), "rollouts": engine.sampled}

    def policy(self, seed: int, answer: Sequence[int]) -> TabularPolicy:
        """Return the policy at the start."""

        def node(path: tuple[int, ...]) -> Any:
            if len(path) == self.length:
                return float(path == tuple(answer))
            return [node((*path, k)) for k in range(self.symbols)]

        tree = Tree.of(node(()))
        return TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))

    def solved(self, policy: TabularPolicy) -> float:
        with torch.no_grad():
            return float(policy.leaf_logprobs().exp() @ policy.tree.rewards)


class Teacher:
    """An engine that goes on with the right symbols, whatever stands before."""

    def __init__(self, answer: Sequence[int]):
        self.answer = tuple(answer)

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.asarray(path_of(text) or (), dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return text_of(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._go_on(request)] * request.n for request in requests]

    def _go_on(self, request: Request) -> Episode:
        tokens = np.asarray(self.answer[len(request.prefix) :], dtype=np.int64)
        prompt = np.asarray(request.prefix, dtype=np.int64)
        return Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, text_of(tokens), "eos")
