"""One reward of a thought and the drawing after it; a drawing over a draft is worth at least the draft."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.policies.flow.samples import split
from assay.registry import part
from assay.rewards.wrapped import Around


@part("reward", "thought_first")
class ThoughtFirst(Around):
    """R = r + form think, r of another part for the drawing, think 1 where the thought before it is in its tags.

    Those are ``<think>`` at its begin and ``</think>`` at its end. Where drafts stand in the group (rollout
    ``redrawn``) a drawing whose r is no better than that of the least of them has that one's (``clamp``), and they
    themselves are not learned from.

    Args:
        reward: of a drawing.
        form: weight of the form.
        clamp: see above.

    Source: AlphaGRPO (arXiv 2605.12495) and a public copy of its code.
    """

    def __init__(self, reward: Any = "verdict", form: float = 1.0, clamp: bool = True):
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
        form = torch.tensor([self.formed(split(e.text)[0]) for e in batch.episodes], dtype=values.dtype)
        return Reward(values + self.form * form, valid=valid, terms={**found.terms, "drawing": values, "form": form})

    @staticmethod
    def formed(thought: str) -> float:
        """Return think."""
        return float(thought.strip().startswith("<think>") and thought.strip().endswith("</think>"))
