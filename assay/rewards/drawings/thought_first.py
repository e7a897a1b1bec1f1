"""Rewards of thoughts and of the drawings after them; a drawing over a draft is worth at least the draft."""

from __future__ import annotations

import re
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.policies.flow.samples import split
from assay.registry import part
from assay.rewards.wrapped import Around

THOUGHT = re.compile(r"\s*<think>(?:(?!</?think>).)+</think>\s*(<reflect>.*</reflect>)?\s*", re.DOTALL)
REFLECTED = re.compile(r"<reflect>\s*\S.*?</reflect>", re.DOTALL)


@part("reward", "thought_first")
class ThoughtFirst(Around):
    """A drawing has the reward r of another part; the thought before it, as term ``thought``,

        r + form (think + reflect) / 2

    think is 1 where the thought is one ``<think>...</think>``, reflect 0 where it has a ``<reflect>...</reflect>`` that
    says something and -1 where not; drafts apart, reflect is 0. Where drafts stand in the group (rollout ``redrawn``)
    a drawing that is worth less than the least of them is worth as much (``clamp``), and they themselves are not
    learned from.

    Args:
        reward: of a drawing.
        form: weight of the form.
        clamp: see above.

    Source: AlphaGRPO (arXiv 2605.12495). What a reflection looks like is not known from the paper; these tags are ours.
    """

    def __init__(self, reward: Any = "verdict", form: float = 0.5, clamp: bool = True):
        super().__init__({"drawing": reward})
        self.form, self.clamp = form, clamp

    def __call__(self, batch: Batch) -> Reward:
        [found] = self.found(batch).values()
        values = found.values.clone()
        valid = batch.valid.clone() if found.valid is None else found.valid & batch.valid
        drafts = torch.tensor([e.meta.get("role") == "draft" for e in batch.episodes], dtype=torch.bool)
        over = torch.tensor([bool(e.meta.get("redrawn")) for e in batch.episodes], dtype=torch.bool)
        if self.clamp:
            for group in batch.prompt_group[over].unique():
                rows = batch.prompt_group == group
                known = rows & drafts & valid
                if bool(known.any()):
                    values = torch.where(rows & over, values.clamp(min=float(values[known].min())), values)
        valid &= ~drafts
        forms = [self.formed(split(e.text)[0], bool(o)) for e, o in zip(batch.episodes, over, strict=True)]
        thought = values + self.form * torch.tensor(forms, dtype=values.dtype) / 2
        return Reward(values, valid=valid, terms={**found.terms, "drawing": values, "thought": thought})

    @staticmethod
    def formed(thought: str, redrawn: bool) -> float:
        """Return think + reflect of a thought."""
        think = float(THOUGHT.fullmatch(thought) is not None)
        return think + (float(REFLECTED.search(thought) is not None) - 1 if redrawn else 0.0)
