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
    """Samples ``ask.n`` responses to each ask's :func:`full_prompt`.

    Args:
        sampling: how tokens are drawn.
    """

    sampling: Sampling

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        seeds = rng.integers(2**63, size=len(asks))
        requests = [Request(full_prompt(a), a.n, self.sampling, int(seed)) for a, seed in zip(asks, seeds, strict=True)]
        return [Group(a, tuple(e)) for a, e in zip(asks, engine.generate(requests), strict=True)]


def full_prompt(ask: Ask, prompt: Prompt | None = None) -> Prompt:
    """Return what an ask shows: the task's prompt, or another wording of it, with its hint and instruction."""
    return with_instruction(with_hint(ask.task.prompt if prompt is None else prompt, ask.hint), ask.instruction)


def with_instruction(prompt: Prompt, instruction: str | None) -> Prompt:
    """Return the prompt with ``instruction`` before everything else.

    It is a chat's system message, and the first lines of a text. A system message that is there
    already stands after it, in the same message.
    """
    if instruction is None:
        return prompt
    if isinstance(prompt, str):
        return f"{instruction}\n{prompt}"
    own = prompt[0]["content"] if prompt and prompt[0]["role"] == "system" else None
    said = instruction if own is None else f"{instruction}\n{own}"
    first: Message = {"role": "system", "content": said} if own is None else {**prompt[0], "content": said}
    return (first, *prompt[own is not None :])


def with_hint(prompt: Prompt, hint: str | None) -> Prompt:
    """Return the prompt with ``hint`` on its own line before the (last user) question."""
    if hint is None:
        return prompt
    if isinstance(prompt, str):
        return f"{hint}\n{prompt}"
    last = max(i for i, m in enumerate(prompt) if m["role"] == "user")
    hinted: Message = {**prompt[last], "content": f"{hint}\n{prompt[last]['content']}"}
    return (*prompt[:last], hinted, *prompt[last + 1 :])


def fits(ask: Ask, engine: Any, sampling: Sampling, begun: int = 0) -> bool:
    """Whether a prompt, and so many tokens after it, leave room for the longest response in the model's context; true
    where none is known."""
    context = getattr(getattr(engine, "policy", None), "context", None)
    return context is None or len(engine.encode(full_prompt(ask))) + begun + sampling.max_tokens <= context
