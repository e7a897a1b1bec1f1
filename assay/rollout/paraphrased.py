"""One question in several wordings: responses to each of them, in one group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.types import Ask, Group, Prompt, Task

VIEW = "view"
"""Key of ``episode.meta``: which wording of the question was asked, from 0."""


@part("rollout", "paraphrased")
@dataclass(frozen=True, slots=True)
class Paraphrased:
    """The ``ask.n`` responses spread evenly over the wordings of the task; earlier wordings get what is left over.

    The wordings are the task's prompt and ``task.meta[key]``: a prompt (text or chat) or a list of them, which may each
    bring documents of their own. The episodes of a task are one group with one verifier and one reference, and each
    wording is an advantage group of its own; ``episode.meta["view"]`` says which, 0 for the prompt itself.

    Args:
        sampling: supplied by the run.
        key: of ``task.meta``.
        most: wordings asked, the first ones; ``None`` for all.
        together: all wordings are one advantage group.

    Raises:
        UsageError: ``most`` below 1, other wordings that are no prompts, or fewer responses than wordings.
    """

    sampling: Sampling
    key: str = "paraphrases"
    most: int | None = None
    together: bool = False

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise UsageError(f"rollout 'paraphrased': most {self.most} must be at least 1")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        wordings = [self.wordings(ask.task) for ask in asks]
        requests = []
        for ask, prompts in zip(asks, wordings, strict=True):
            if ask.n < len(prompts):
                raise UsageError(
                    f"rollout 'paraphrased': {ask.n} responses for the {len(prompts)} wordings of task {ask.task.id}; "
                    "raise rollout.group, or set 'most'"
                )
            for view, prompt in enumerate(prompts):
                n = ask.n // len(prompts) + (view < ask.n % len(prompts))
                seed = int(rng.integers(2**63))
                requests.append(Request(full_prompt(ask, prompt), n, self.sampling, seed))
        found, out = iter(engine.generate(requests)), []
        for i, (ask, prompts) in enumerate(zip(asks, wordings, strict=True)):
            episodes = tuple(
                replace(e, meta={**e.meta, VIEW: view}, advantage_group=f"{i}" if self.together else f"{i}/{view}")
                for view in range(len(prompts))
                for e in next(found)
            )
            out.append(Group(ask, episodes))
        return out

    def wordings(self, task: Task) -> list[Prompt]:
        """Return the task's prompt and its other wordings."""
        more = task.meta.get(self.key, ())
        if isinstance(more, str) or (more and is_chat(more)):
            more = [more]
        if not isinstance(more, Sequence) or not all(isinstance(p, str) or is_chat(p) for p in more):
            raise UsageError(f"task {task.id}: meta[{self.key!r}] must be a prompt or a list of prompts")
        found: list[Prompt] = [task.prompt, *(p if isinstance(p, str) else tuple(p) for p in more)]
        return found if self.most is None else found[: self.most]


def is_chat(prompt: Any) -> bool:
    """Say whether a prompt is a list of messages."""
    return isinstance(prompt, Sequence) and all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in prompt)
