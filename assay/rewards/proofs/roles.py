"""The reward of a model in all of its roles at once: it writes proofs, analyses them, and analyses analyses."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.proofs.analysis import AnalysisReward
from assay.rewards.proofs.self_analysed import ALPHA, BETA, SelfAnalysed


@part("reward", "proof_roles")
class ProofRoles:
    """R_i of :class:`~assay.rewards.proofs.analysis.AnalysisReward` where the task brings a proof, of
    :class:`~assay.rewards.proofs.self_analysed.SelfAnalysed` where it asks for one.

    Term ``worth``: R_i, by which a selection can go; -1 without a reward.

    Source: DeepSeekMath-V2, whose checkpoint between two rounds has both skills.

    Args:
        judge, alpha, beta, n: see there; the judge of analyses is asked of both.
    """

    def __init__(self, judge: Any, alpha: float = ALPHA, beta: float = BETA, n: int = 1):
        self.written, self.analysed = SelfAnalysed(judge, alpha, beta, n), AnalysisReward(judge)

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), torch.zeros(len(batch), dtype=torch.bool)
        brought = torch.tensor(["proof" in task.meta for task in batch.tasks], dtype=torch.bool)
        for reward, here in ((self.analysed, brought), (self.written, ~brought)):
            rows = here.nonzero()[:, 0]
            if len(rows):
                found = reward(batch.rows(rows))
                assert found.valid is not None
                values[rows], valid[rows] = found.values, found.valid
        return Reward(values, valid=valid, terms={"worth": torch.where(valid, values, -1)})
