"""The policy's own verdict on what it answered."""

from __future__ import annotations

from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.follow_ups import FollowUps

QUESTION = "Is this answer right? Check it and reply with one word, Yes or No."


@part("reward", "self_verdict")
class SelfVerdict:
    """R_i = 1 if the policy, asked whether its response is right, would rather say yes than no; detached.

    The question is the next turn after the response, and P = p(yes) / (p(yes) + p(no)) comes from one pass over both,
    at temperature 1, without generating anything. Where ``yes`` and ``no`` are of several tokens, p is the geometric
    mean of their probabilities. No sample is rewarded whose verifier failed or whose conversation does not fit the
    context.

    Args:
        form: ``verdict`` is 1[P > 1/2], ``probability`` is P.
        question, yes, no: what is asked, and the two replies.
        scorer: who is asked, see :class:`~assay.signals.follow_ups.FollowUps`; by default the policy as it stands.

    Raises:
        UsageError: the two replies are the same.
    """

    def __init__(
        self,
        form: Literal["verdict", "probability"] = "verdict",
        question: str = QUESTION,
        yes: str = "Yes",
        no: str = "No",
        scorer: Any = "policy",
    ):
        if yes == no:
            raise UsageError(f"reward 'self_verdict': yes and no are both {yes!r}")
        self.form = form
        self.replies = FollowUps((yes, no), scorer, question=question)
        self.needs = frozenset({self.replies})

    def __call__(self, batch: Batch) -> Reward:
        said = batch.signals[self.replies.name]
        told = said.isfinite().all(-1)
        p = torch.where(told, (said[:, 0] - said[:, 1]).nan_to_num().sigmoid(), 0).to(batch.rewards.dtype)
        values = p if self.form == "probability" else (p > 0.5).to(p.dtype)
        return Reward(values, valid=judged(batch) & told, terms={"self_verdict": values})
