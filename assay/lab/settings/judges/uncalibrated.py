"""Answers of different quality, and a judge whose scores are off by something that is the same for all answers to a
prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task
from assay.verify.none import NoVerifier

SHOWN = "{question}|{first}|{second}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A prompt's answers have normal qualities q. The judge's score is q + c(prompt) + noise; of two that it sees
    together c is the same, and the one that is shown first has ``bias`` more.

    An arm is a method whose ``judge`` of pairs, or ``reward`` by scores, is ``here``. A prompt's anchor, its
    ``solution``, is the answer of median quality.

    Args:
        problems, answers: prompts, all asked in every step, and answers to each.
        offset: standard deviation of c.
        noise: of a score, each time it is asked for.
        bias: for the place.
        steps, group, lr, optimizer: of training.
    """

    problems: int = 8
    answers: int = 5
    offset: float = 3.0
    noise: float = 0.5
    bias: float = 0.5
    steps: int = 60
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``worth``, where the trained policy's expected quality lies between that of chance (0) and of the best
        answer (1), a mean over prompts; ``best``, the chance of the best answer; ``rollouts``."""
        rng = np.random.default_rng([seed, 59])
        quality = rng.standard_normal((self.problems, self.answers))
        scores = quality + self.offset * rng.standard_normal((self.problems, 1))
        policy = TabularPolicy(Tree.of([[0.0] * self.answers for _ in range(self.problems)]))
        middle = np.argsort(quality, 1)[:, self.answers // 2]
        tasks = [Task(str(i), str(i), kind="none", solution=str(m)) for i, m in enumerate(middle)]
        method, judge = {**arm}, Judge(self, scores, seed)
        if method.get("judge") == "here":
            options = {**method.pop("options", {}), "judge": {"judge": judge, "template": SHOWN}}
            method = {**{k: v for k, v in method.items() if k != "judge"}, "options": options}
        elif method.get("reward") == "here":
            method["reward"] = judge.reward
        else:
            raise UsageError("an arm of setting 'uncalibrated' is a method whose judge or reward is 'here'")
        engine = Counting(policy)
        training = Training(self.steps, self.problems, self.group, self.lr, self.optimizer)
        train(policy, tasks, NoVerifier(), method, training, seed, engine=engine)
        with torch.no_grad():
            nodes = [int(policy.tree.children[0, i]) for i in range(self.problems)]
            pi = policy.log_policy().exp().numpy()[nodes, : self.answers]
        chance, best = quality.mean(1), quality.max(1)
        worth = ((pi * quality).sum(1) - chance) / (best - chance)
        top = pi[np.arange(self.problems), quality.argmax(1)]
        return {"worth": float(worth.mean()), "best": float(top.mean()), "rollouts": engine.sampled}


class Judge(Keywords):
    """The judge, an engine that compares what ``{question}|{first}|{second}`` shows, in words or by its first token.

    Args:
        setting: whose noise and bias it has.
        scores: ``(problems, answers)``.
        seed: of the noise.
    """

    def __init__(self, setting: Setting, scores: np.ndarray, seed: int):
        super().__init__([])
        self.setting, self.table, self.rng = setting, scores, np.random.default_rng([seed, 61])

    def noisy(self, question: str, answer: str) -> float:
        return float(self.table[int(question), int(answer)]) + self.setting.noise * self.rng.standard_normal()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            question, first, second = str(request.prompt).split("|")
            gap = self.noisy(question, first) - self.noisy(question, second) + self.setting.bias
            if request.beam:
                out.append([self.said(name, -math.log1p(math.exp(-g))) for name, g in (("m", gap), ("M", -gap))])
            else:
                high, low = f"{min(5 + abs(gap), 10):.4f}", f"{max(5 - abs(gap), 0):.4f}"
                scores = (high, low) if gap > 0 else (low, high)
                out.append([self.said(f"Principles: quality\nCritique: as seen\nScores: {', '.join(scores)}", 0.0)])
        return out

    def said(self, text: str, logprob: float) -> Episode:
        tokens = self.encode(text)
        return Episode(tokens[:0], tokens, tokens >= 0, np.full(len(tokens), logprob, np.float32), text, "eos")

    def reward(self, batch: Batch) -> Reward:
        """Scores as rewards."""
        found = [self.noisy(t.question, e.text) for t, e in zip(batch.tasks, batch.episodes, strict=True)]
        return Reward(torch.tensor(found, dtype=batch.rewards.dtype))
