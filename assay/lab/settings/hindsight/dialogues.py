"""A hidden number, guessed in dialogues whose replies are tokens that the policy reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularEngine
from assay.engines.tokens import Tokens
from assay.environments.guess import GuessTasks
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Message, Prompt, Task, Tool
from assay.verify.none import NoVerifier

REPLIES = ("higher", "lower")


@dataclass(frozen=True, slots=True)
class Setting:
    """The environment ``guess``: each of 1 to ``most`` is the hidden number equally often, for ``asks`` guesses.

    A guess is a token, and so is what is said of it, which the policy reads: one softmax for every history. An arm's
    ``rollout`` may hold options of ``multi_turn``; with ``turns = 1`` it is trained on first guesses alone.

    Args:
        most: numbers, at least 2.
        asks: guesses, at least 1.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    most: int = 7
    asks: int = 3
    spread: float = 0.5
    steps: int = 100
    prompts: int = 7
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if self.most < 2 or self.asks < 1 or self.most**self.asks > 10_000:
            raise UsageError(f"setting 'dialogues': most {self.most} and asks {self.asks} are too few or too many")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over the numbers: ``final``, the chance to guess it within ``asks`` turns;
        ``by/k``, within k; ``start``; ``area`` of ``final`` over training; ``rollouts``, the episodes."""
        method = {**arm}
        environment = {"name": "guess", "most": self.most, "asks": self.asks}
        method["rollout"] = {
            "name": "multi_turn", "environment": environment, "turns": self.asks, **method.pop("rollout", {}),
        }  # fmt: skip

        def after(left: int) -> Any:
            if left == 1:
                return [0.0] * self.most
            return [[after(left - 1) for _ in REPLIES] for _ in range(self.most)]

        policy = TabularPolicy(Tree.of(after(self.asks)))
        with torch.no_grad():
            policy.logits.add_(torch.from_numpy(jitter(self.spread, seed, *policy.logits.shape)))
        engine = Dialogues(policy)
        source = GuessTasks(seed, self.most, self.asks)
        found: dict[int, Task] = {}
        for index in range(1000 * self.most):
            task = source[index]
            found.setdefault(int(task.reference["number"]), task)
            if len(found) == self.most:
                break
        tasks = [found[n] for n in sorted(found)]
        curve, start = list[float](), self.chances(policy)[-1]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=1)

        def watch(*_: Any) -> None:
            curve.append(self.chances(policy)[-1])

        train(policy, tasks, NoVerifier(), method, training, seed, watch, engine)
        by = self.chances(policy)
        return {
            "final": by[-1],
            "area": float(np.mean(curve)),
            "start": start,
            **{f"by/{k}": value for k, value in enumerate(by, 1)},
            "rollouts": self.steps * self.prompts * self.group,
        }

    @torch.no_grad()
    def chances(self, policy: TabularPolicy) -> list[float]:
        """Return the chance to have guessed a number within 1, 2, ... guesses, a mean over all."""
        p = policy.log_policy().exp()
        out = [0.0] * self.asks

        def walk(number: int, path: tuple[int, ...], reached: float, k: int) -> None:
            row = p[policy.tree.node(path)]
            for guess in range(self.most):
                here = reached * float(row[guess])
                if guess + 1 == number:
                    for later in range(k, self.asks):
                        out[later] += here / self.most
                elif k + 1 < self.asks:
                    walk(number, (*path, guess, int(guess + 1 > number)), here, k + 1)

        for number in range(1, self.most + 1):
            walk(number, (), 1.0, 0)
        return out


class Dialogues(TabularEngine):
    """Says a number in a turn, and reads a reply as a token (:class:`assay.engines.base.Conversing`)."""

    @property
    def window(self) -> int:
        return self.policy.tree.depth + 2

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        said = [str(m["content"]) for m in messages]
        return np.array([REPLIES.index(s) for s in said if s in REPLIES], dtype=np.int64)

    def encode(self, prompt: Prompt) -> np.ndarray:
        return prompt.ids if isinstance(prompt, Tokens) else np.zeros(0, dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return " ".join(str(int(t) + 1) if k % 2 == 0 else REPLIES[int(t)] for k, t in enumerate(tokens))
