"""Policies that make one choice each, for toys that are learned through the real reward, credit, select and loss.

Many independent runs are rows of one table of logits and are learned side by side, in one batch: the run's number is
the prompt's group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.base import Request
from assay.method import Method
from assay.types import Episode, Prompt, Task, Verdict

NOBODY = np.zeros(0, dtype=np.int64)


def response(length: int = 1, text: str = "") -> Episode:
    """A response of so many tokens, of which the first is the choice."""
    tokens, mask = np.zeros(length, dtype=np.int64), np.arange(length) == 0
    return Episode(NOBODY, tokens, mask, np.zeros(length, dtype=np.float32), text, "eos")


RIGHT, WRONG = Verdict.right(), Verdict.wrong()


@dataclass
class Reader:
    """A judge of derivations, as an engine: in those in which ``flaw`` stands the first step is wrong."""

    flaw: str

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[response(text="\\boxed{0}" if self.flaw in str(r.prompt) else "\\boxed{-1}")] for r in requests]

    def encode(self, prompt: Prompt) -> np.ndarray:
        return NOBODY

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NOBODY

    def decode(self, tokens: Sequence[int]) -> str:
        return ""


@dataclass
class Choices:
    """``logits`` ``(runs, K)``: a softmax for each run; ``choices``: the response that each of the K choices makes."""

    logits: torch.Tensor
    choices: Sequence[Episode]
    seed: int = 0

    def __post_init__(self) -> None:
        self.logits = self.logits.clone().requires_grad_(True)
        self.generator = torch.Generator().manual_seed(self.seed)

    @property
    def chances(self) -> torch.Tensor:
        return self.logits.detach().softmax(-1)

    def batch(self, group: int, judge: Callable[[int, int], Verdict], kinds: int = 1) -> Batch:
        """``kinds`` prompts a run, ``group`` responses each; ``judge(kind, choice)`` is asked about every response."""
        runs, width = len(self.logits), max(len(e.tokens) for e in self.choices)
        chosen = self.chances.multinomial(kinds * group, True, generator=self.generator).flatten()
        prompt = torch.arange(runs * kinds).repeat_interleave(group)
        # The order of prompts must not favour a run where a method ranks them.
        names = torch.randperm(runs * kinds, generator=self.generator)
        verdicts = [judge(p % kinds, k) for p, k in zip(prompt.tolist(), chosen.tolist(), strict=True)]
        old = self.logits.detach().log_softmax(-1)[prompt // kinds, chosen]
        mask = torch.zeros(len(chosen), width, dtype=torch.bool)
        mask[:, 0] = True
        task, zero = Task("choice", "?", reference=""), torch.zeros(len(chosen), width, dtype=torch.float64)
        batch = Batch(
            episodes=[self.choices[k] for k in chosen.tolist()],
            tasks=[task] * len(chosen),
            verdicts=verdicts,
            tokens=torch.zeros(len(chosen), width, dtype=torch.int64),
            mask=mask,
            logprobs=torch.where(mask, old[:, None], 0),
            prompt_group=names[prompt],
            group=names[prompt],
            trajectory=torch.arange(len(chosen)),
            turn=torch.where(mask, 0, -1),
            valid=torch.ones(len(chosen), dtype=torch.bool),
            rewards=zero[:, 0].clone(),
            advantages=zero.clone(),
            weights=torch.ones(len(chosen), dtype=torch.float64),
        )
        mean = self.logits.detach().log_softmax(-1).mean(-1)[prompt // kinds]
        batch.signals = {
            "run": prompt // kinds,
            "choice": chosen,
            "policy_logprobs": batch.logprobs.clone(),
            "policy_mean_logprob": torch.where(mask, mean[:, None], 0),
        }
        return batch

    def step(self, method: Method, batch: Batch, lr: float) -> None:
        """Take a step along the loss of a valued batch, scaled to be one of each run's own mean over its responses."""
        getattr(method.objective, "prepare", lambda _: None)(batch)
        table, run = self.logits.log_softmax(-1), batch.signals["run"]
        here = table[run, batch.signals["choice"]]
        batch.live = {"mean_logprob": torch.where(batch.mask, table.mean(-1)[run, None], 0)}
        loss = method.objective(torch.where(batch.mask, here[:, None], 0), batch).value
        (slope,) = torch.autograd.grad(loss, self.logits)
        with torch.no_grad():
            self.logits -= lr * len(self.logits) * slope
