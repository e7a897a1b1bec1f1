"""A language model as a distribution of texts given prompts: drawn from, scored, and fitted by likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch

from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.learning.update import update
from assay.learning.warmup import demonstrations
from assay.objectives.sft import SFT
from assay.policies.causal_lm import CausalLM
from assay.types import Task

Pair = tuple[str, str]
"""A prompt and a response."""


@runtime_checkable
class Writes(Protocol):
    """Something that writes texts, says how likely they are, and learns to write others."""

    def draw(self, prompts: Sequence[str], n: int, seed: int) -> list[list[str]]:
        """Return ``n`` responses to each prompt; the same seed gives the same."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return log p(response | prompt) of each pair, in nats, the end of the response included."""
        ...

    def fit(self, pairs: Sequence[Pair], seed: int) -> None:
        """Make the responses of pairs likelier."""
        ...


@dataclass(slots=True)
class LanguageModel:
    """A policy that is fitted by supervised steps of AdamW.

    Args:
        policy: the model, changed in place.
        sampling: of what is drawn.
        steps, batch, lr: of a call of :meth:`fit`.
    """

    policy: CausalLM
    sampling: Sampling = field(default_factory=lambda: Sampling(512, 1.0))
    steps: int = 20
    batch: int = 16
    lr: float = 1e-3

    def draw(self, prompts: Sequence[str], n: int, seed: int) -> list[list[str]]:
        """See :class:`Writes`."""
        asked = [Request(prompt, n, self.sampling, seed + i) for i, prompt in enumerate(prompts)]
        return [[e.text for e in row] for row in HFEngine(self.policy).generate(asked)]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """See :class:`Writes`."""
        out: list[float] = []
        with torch.no_grad():
            for start in range(0, len(pairs), self.batch):
                batch = demonstrations(self._tasks(pairs[start : start + self.batch]), self.policy)
                logprobs = self.policy.forward(batch).logprobs.cpu()
                out += torch.where(batch.mask, logprobs, 0.0).sum(-1).tolist()
        return out

    def fit(self, pairs: Sequence[Pair], seed: int) -> None:
        """See :class:`Writes`."""
        optimizer = torch.optim.AdamW(self.policy.module.parameters(), lr=self.lr)
        draw = torch.Generator().manual_seed(seed)
        for _ in range(self.steps if pairs else 0):
            rows = torch.randint(len(pairs), (min(self.batch, len(pairs)),), generator=draw).tolist()
            update(self.policy, SFT(), demonstrations(self._tasks([pairs[i] for i in rows]), self.policy), optimizer)

    @staticmethod
    def _tasks(pairs: Sequence[Pair]) -> list[Task]:
        return [Task(str(i), prompt, solution=response) for i, (prompt, response) in enumerate(pairs)]
