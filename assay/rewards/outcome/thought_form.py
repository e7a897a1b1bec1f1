"""A little for turns that think and act in form, a little off for those that do not."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.rollout.turns.corrected import thought_of


@part("reward", "thought_form")
@dataclass(frozen=True, slots=True)
class ThoughtForm:
    """R_i = the verdict's score, and on the last token of each turn ``form`` if it begins with a thought in its tags
    and could be taken, else -``form``.

    Source: GTR (arXiv 2503.08525) has a reward for form, whose size it does not tell.

    Args:
        form: see above.
    """

    form: float = 0.1

    def __call__(self, batch: Batch) -> Reward:
        values = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        tokens = torch.zeros(batch.mask.shape, dtype=batch.rewards.dtype)
        for row, episode in zip(tokens, batch.episodes, strict=True):
            for turn in episode.turns:
                if turn.end > turn.start:
                    good = turn.valid and thought_of(turn.text) is not None
                    row[turn.end - 1] = self.form if good else -self.form
        return Reward(values, tokens, valid=judged(batch), terms={"verdict": values, "form": tokens.sum(-1)})
