"""Drafts first, then drawings over the worst of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.engines.flow.sampling import FlowSampling
from assay.errors import UsageError
from assay.media import Picture, marks
from assay.policies.flow.samples import point, split
from assay.registry import part
from assay.rollout.drawings.denoise import check_draws
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.types import Ask, Group, Message, Prompt

TEMPLATE = "{question}\nDrawn before: {draft}"


@part("rollout", "redrawn")
@dataclass(frozen=True, slots=True)
class Redrawn:
    """``drafts`` drawings without noise, judged; then ``ask.n`` over the draft of the lowest score.

    A drawing over a draft begins with it, noised up to ``strength``, and a flow that ``edits`` sees it; the thought
    before it is written under the prompt and the draft: a point's numbers in its text, a picture before it where the
    language model sees. The drafts stand in the group with nothing to learn (``meta["role"] == "draft"``), the drawings
    have ``meta["redrawn"]``.

    Args:
        sampling, judge: supplied by the run.
        drafts: of each prompt.
        strength: see above.
        begin, end, trained, noise: noisy steps, see :class:`~assay.engines.flow.sampling.FlowSampling`.

    Raises:
        UsageError: no drafts, or a window or strength out of range.

    Source: AlphaGRPO (arXiv 2605.12495), self-reflective refinement, whose model edits a picture in another way.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    drafts: int = 7
    strength: float = 0.6
    begin: int = 0
    end: int | None = None
    trained: int | None = None
    noise: float | None = None

    def __post_init__(self) -> None:
        if self.drafts < 1:
            raise UsageError(f"rollout 'redrawn': drafts {self.drafts} must be at least 1")
        if not 0 < self.strength <= 1:
            raise UsageError(f"rollout 'redrawn': strength {self.strength:g} is above 0 and at most 1")

    def check(self, policy: Any) -> None:
        """Raise UsageError for a policy that does not draw."""
        check_draws(policy, "redrawn")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        cold = replace(self.sampling, temperature=0.0)
        first = SingleTurn(cold).collect([replace(ask, n=self.drafts) for ask in asks], engine, rng)
        out = []
        for ask, group in zip(asks, self.judge(first), strict=True):
            scores = [float("inf") if v.passed is None else v.score for v in group.verdicts]
            worst = group.episodes[int(np.argmin(scores))]
            how = FlowSampling(
                self.sampling.max_tokens,
                self.sampling.temperature,
                begin=self.begin,
                end=self.end,
                trained=self.trained,
                noise=self.noise,
                draft=split(worst.text)[1],
                strength=self.strength,
            )
            shown = replace(ask, task=replace(ask.task, prompt=with_draft(full_prompt(ask), how.draft, engine)))
            [drawn] = SingleTurn(how).collect([replace(shown, hint=None, instruction=None)], engine, rng)
            drafts = [
                replace(e, mask=np.zeros(len(e.tokens), dtype=bool), meta={**e.meta, "role": "draft"})
                for e in group.episodes
            ]
            redrawn = [replace(e, meta={**e.meta, "redrawn": True}) for e in drawn.episodes]
            out.append(Group(ask, (*drafts, *redrawn)))
        return out


def with_draft(prompt: Prompt, draft: str, engine: Any) -> Prompt:
    """Return a prompt with a draft, where the language model can read it."""
    if point(draft) is not None:
        if isinstance(prompt, str):
            return TEMPLATE.format(question=prompt, draft=draft)
        last: Message = {**prompt[-1], "content": TEMPLATE.format(question=prompt[-1]["content"], draft=draft)}
        return (*prompt[:-1], last)
    if not getattr(getattr(engine.policy, "language", None), "sighted", False):
        return prompt
    images = tuple(Picture.from_url(line) for line in draft.split())
    chat: tuple[Message, ...] = ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt
    last = {**chat[-1], "content": f"{marks(len(images))}\n{chat[-1]['content']}"}
    return (*chat[:-1], {**last, "images": (*images, *chat[-1].get("images", ()))})
