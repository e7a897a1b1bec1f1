"""The reward of who writes a proof and says himself how good it is."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.tasks.judging.proof_judge import proof_judge_of
from assay.verify.proofs.analysis import divided, score_of

ALPHA, BETA = 0.76, 0.24
"""What the proof weighs, and what its author says of it."""


@part("reward", "self_analysed")
class SelfAnalysed:
    """R_i = R_format (alpha R_Y + beta R_Z),   R_Y = s,   R_Z = (1 - |s' - s|) ms.

    s is the score of the proof Y by the judge (the mean of n opinions), s' what the response's analysis Z of itself
    says, ms the quality of Z by the judge of analyses; R_format is 1 for a solution and a self-evaluation in their
    form, and without it nobody is asked. Who admits a flaw earns more than who denies it. A response on which
    the judge cannot be read has no reward, nor has one whose verifier failed. Terms: ``form``; ``proof``, s; ``self``,
    s'; ``honesty``, R_Z.

    Source: DeepSeekMath-V2, the generator's reward.

    Args:
        judge: a :class:`~assay.tasks.judging.proof_judge.ProofJudge`, a table of its options, or the specification of
            an engine.
        alpha, beta: weights.
        n: opinions on each proof.

    Raises:
        UsageError: no judge, or ``n`` below 1.
    """

    def __init__(self, judge: Any, alpha: float = ALPHA, beta: float = BETA, n: int = 1):
        if n < 1:
            raise UsageError(f"reward 'self_analysed': n {n} must be at least 1")
        self.judge, self.alpha, self.beta, self.n = proof_judge_of(judge), alpha, beta, n

    def __call__(self, batch: Batch) -> Reward:
        valid, zeros = judged(batch), torch.zeros_like(batch.rewards)
        form, proof, own, honesty = (zeros.clone() for _ in range(4))
        rows: list[tuple[int, str, str, str]] = []
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            parts = divided(episode.text)
            score = None if parts is None else score_of(parts[1])
            if parts is not None and score is not None and valid[i]:
                rows.append((i, str(task.meta.get("problem", task.question)), *parts))
                form[i], own[i] = 1.0, score
        opinions = self.judge.analyses([(problem, y) for _, problem, y, _ in rows], self.n)
        asked = []
        for (i, problem, y, z), told in zip(rows, opinions, strict=True):
            valid[i] = bool(told)
            if told:
                proof[i] = sum(score for score, _ in told) / len(told)
                honesty[i] = 1 - (own[i] - proof[i]).abs()
            if told and honesty[i] > 0:
                asked.append((i, (problem, y, z)))
        for (i, _), quality in zip(asked, self.judge.qualities([item for _, item in asked]), strict=True):
            valid[i] = bool(quality)
            honesty[i] *= quality[0] if quality else 0.0
        values = torch.where(valid, form * (self.alpha * proof + self.beta * honesty), 0)
        return Reward(values, valid=valid, terms={"form": form, "proof": proof, "self": own, "honesty": honesty})
