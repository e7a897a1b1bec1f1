"""Verdicts on pairs that may be right for sound reasons or for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task
from assay.verify.pair_verdict import PairVerdict

SOUND, OTHER, WRONG = "what decides it", "a trifle", "a mistake"
WAYS = ((SOUND, 1), (OTHER, 1), (WRONG, 2))
"""Critique and verdict of each way to judge a pair whose first answer is better."""
REPLIES = (
    (r"The other critique:\nwhat decides it", '[{"argument": "it", "point": 1}]'),
    (r"The other critique:\n", '[{"argument": "another", "point": null}]'),
)


class Words(torch.nn.Module):
    """MetaRM: a number for each critique, whatever the pair, 0 at first."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(len(WAYS), dtype=torch.float64))

    def forward(self, pairs: Sequence[tuple[Task, str]]) -> torch.Tensor:
        return self.table[[[words for words, _ in WAYS].index(text) for _, text in pairs]]


class Judge(Counting):
    """Says in words what a tabular policy chooses."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[replace(e, text=_reply(*WAYS[int(e.text)])) for e in some] for some in super().generate(requests)]


@dataclass(frozen=True, slots=True)
class Setting:
    """A judge says for each pair which answer is better, rightly for a sound reason, rightly for another, or wrongly.

    Of some pairs a person has said why one is better. An arm is a method whose ``critiques`` are ``here``: a matcher
    that knows the sound reason, and a MetaRM that reads critiques and not pairs.

    Args:
        pairs: that are judged, all in every step, each learned apart.
        told: of these, how many come with a person's critique.
        spread: standard deviation of the logits at the start.
        rate: MetaRM's learning rate.
        steps, group, lr: of training.
    """

    pairs: int = 12
    told: int = 3
    spread: float = 0.5
    rate: float = 1.0
    steps: int = 60
    group: int = 8
    lr: float = 1.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``sound``, the chance of a right verdict for a sound reason, mean over pairs that nobody has spoken
        of; ``right``, that of a right verdict; ``spurious``, the share of other reasons among right verdicts;
        ``rollouts``."""
        if arm.get("critiques") != "here":
            raise UsageError("an arm of setting 'reasons' is a method whose critiques are 'here'")
        given = {"matcher": Keywords(REPLIES), "model": Words(), "lr": self.rate}
        method = {k: v for k, v in arm.items() if k != "critiques"}
        method["options"] = {**given, **method.get("options", {})}
        tree = Tree.of([[0.0] * len(WAYS)] * self.pairs)
        policy = TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))
        engine, tasks = Judge(policy), []
        for i in range(self.pairs):
            meta = {"points": [SOUND]} if i < self.told else {}
            tasks.append(Task(str(i), str(i), "1", "pair_verdict", meta=meta))
        training = Training(self.steps, self.pairs, self.group, self.lr)
        train(policy, tasks, PairVerdict(), method, training, seed, engine=engine)
        p = policy.leaf_logprobs().exp().detach().numpy().reshape(self.pairs, len(WAYS))
        sound, other, _ = (p / p.sum(1, keepdims=True))[self.told :].T
        return {
            "sound": float(sound.mean()),
            "right": float((sound + other).mean()),
            "spurious": float(np.mean(other / (sound + other))),
            "rollouts": engine.sampled,
        }


def _reply(words: str, verdict: int) -> str:
    return f"[Critique]\n{words}\n[End of Critique]\n[Verdict]\n\\boxed{{{verdict}}}\n[End of Verdict]"
