"""What turns brought the goal nearer by, and the end; taken back where nothing was handed in."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.process.turns import turn_rewards


@part("reward", "progress")
class Progress:
    """r_it of the turns, on each one's last own token; R_i = answer score_i if the episode was handed in.

    Handed in is what its last turn has ended (``terminated``): an episode that ran out of turns, tokens or time is not.
    Then R_i = - sum_t r_it, which takes back what progress had earned.

    Args:
        answer: what a verdict of score 1 is worth, >= 0.
        name: of the turns' reward, see :class:`~assay.rewards.process.turns.TurnRewards`.

    Raises:
        UsageError: ``answer`` below 0.

    Source: A3 (arXiv 2605.08013).
    """

    def __init__(self, answer: float = 3.0, name: str = "reward"):
        if answer < 0:
            raise UsageError(f"reward 'progress': answer {answer:g} must be at least 0")
        self.answer, self.name = answer, name

    def __call__(self, batch: Batch) -> Reward:
        tokens = torch.zeros(batch.mask.shape, dtype=batch.rewards.dtype)
        earned, answers = torch.zeros_like(batch.rewards), torch.zeros_like(batch.rewards)
        for i, (episode, verdict) in enumerate(zip(batch.episodes, batch.verdicts, strict=True)):
            for turn, value in turn_rewards(episode, self.name):
                own: Any = batch.mask[i, : turn.end].nonzero()
                if len(own):
                    tokens[i, own[-1, 0]] += value
                    earned[i] += value
            ended = bool(episode.turns) and episode.turns[-1].terminated
            answers[i] = self.answer * verdict.score if ended else -earned[i]
        return Reward(answers, tokens, judged(batch), {"progress": earned, "answer": answers})
