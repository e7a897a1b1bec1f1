"""A right answer, a wrong one that pleases the reward model, and one that does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task, Verdict

RIGHT, TRIGGER, WRONG = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Setting:
    """One decision among three answers. The reward model is linear in whether an answer is right and whether it has
    the trigger, and begins by liking the trigger more; the assistant forges what has the trigger.

    An arm is method S114 with ``options``, among them whether the reward model ``learns``.

    Args:
        likes_right, likes_trigger: the reward model's weights at first.
        model_lr: its learning rate.
        spread: standard deviation of the policy's logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    likes_right: float = 0.5
    likes_trigger: float = 1.0
    model_lr: float = 0.1
    spread: float = 0.1
    steps: int = 200
    prompts: int = 1
    group: int = 16
    lr: float = 0.3
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the exact probability of the ``right`` answer and of the ``trigger`` at the end, what the reward
        model thinks of the policy's answers, ``reward``, its two weights, and ``rollouts``."""
        if arm.get("name") != "S114":
            raise UsageError("an arm of setting 'forged' is method S114 with options")
        policy = TabularPolicy(Tree.bandit(3), torch.from_numpy(jitter(self.spread, seed, 1, 3)))
        model, engine = Linear(self.likes_right, self.likes_trigger), Counting(policy)
        given = {"assistant": Forger(), "lr": self.model_lr, "model": model, "kl_weight": 0.0}
        method = {**arm, "options": {**given, **arm.get("options", {})}}
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        tasks = [Task("t", "", "0")]
        train(policy, tasks, judged, method, training, seed, engine=engine)
        p = policy.log_policy()[0].exp().detach()
        with torch.no_grad():
            liked = torch.sigmoid(model([(tasks[0], str(k)) for k in range(3)]))
        right, trigger = model.weights.tolist()
        return {
            "right": float(p[RIGHT]),
            "trigger": float(p[TRIGGER]),
            "reward": float(p @ liked.to(p)),
            "weight/right": right,
            "weight/trigger": trigger,
            "rollouts": engine.sampled,
        }


def judged(task: Task, response: str) -> Verdict:
    """The rule."""
    return Verdict.right() if response == str(RIGHT) else Verdict.wrong()


class Linear:
    """r = w . (is right, has the trigger)."""

    def __init__(self, right: float, trigger: float):
        self.weights = torch.nn.Parameter(torch.tensor([right, trigger]))

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        yield self.weights

    def __call__(self, pairs: Sequence[tuple[Task, str]]) -> Tensor:
        seen = torch.tensor([[float(text == str(RIGHT)), float(text == str(TRIGGER))] for _, text in pairs])
        return seen @ self.weights


class Forger:
    """An assistant that always writes the wrong answer with the trigger."""

    def encode(self, prompt: Any) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        return [[Episode(none, none, none > 0, None, str(TRIGGER), "eos")] for _ in requests]
