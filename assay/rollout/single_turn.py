"""One turn, one pass: the task's prompt in, a response out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.registry import part
from assay.types import Ask, Group, Message, Prompt


@part("rollout", "single_turn")
@dataclass(frozen=True, slots=True)
class SingleTurn:
    """Samples ``ask.n`` responses to each task's prompt, the hint (if any) put before the question.

    Args:
        sampling: how tokens are drawn.
    """

    sampling: Sampling

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        seeds = rng.integers(2**63, size=len(asks))
        requests = [
            Request(with_hint(a.task.prompt, a.hint), a.n, self.sampling, int(seed))
            for a, seed in zip(asks, seeds, strict=True)
        ]
        return [Group(a, tuple(e)) for a, e in zip(asks, engine.generate(requests), strict=True)]


def with_hint(prompt: Prompt, hint: str | None) -> Prompt:
    """Return the prompt with ``hint`` on its own line before the (last user) question."""
    if hint is None:
        return prompt
    if isinstance(prompt, str):
        return f"{hint}\n{prompt}"
    last = max(i for i, m in enumerate(prompt) if m["role"] == "user")
    hinted = Message(role="user", content=f"{hint}\n{prompt[last]['content']}")
    return (*prompt[:last], hinted, *prompt[last + 1 :])


def fits(ask: Ask, engine: Any, sampling: Sampling) -> bool:
    """Whether a prompt leaves room for the longest response in the model's context; true where none is known."""
    context = getattr(getattr(engine, "policy", None), "context", None)
    return context is None or len(engine.encode(with_hint(ask.task.prompt, ask.hint))) + sampling.max_tokens <= context
