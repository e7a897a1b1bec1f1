"""The reward of who analyses proofs: form, score, and whether its objections are justified."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.outcome.verdict import VerdictReward
from assay.tasks.judging.proof_judge import proof_judge_of
from assay.verify.proofs.analysis import spoken


@part("reward", "analysis")
class AnalysisReward:
    """R_i = the verdict's score, R_format (1 - |s' - s|), times R_meta: the quality of the analysis in {0, 1/2, 1}.

    The quality is what ``meta``, a judge of analyses, says of a response on the proof that its task brings
    (``meta["problem"]``, ``meta["proof"]``); 1 without one, and of tasks that are about analyses themselves. It is only
    asked for where the score is above 0. A response whose quality cannot be had has no reward. Terms: ``score``,
    ``quality``.

    Source: DeepSeekMath-V2, equations of the verifier's and the meta-verifier's rewards.

    Args:
        meta: a :class:`~assay.tasks.judging.proof_judge.ProofJudge`, a table of its options, or the specification of
            an engine.
    """

    def __init__(self, meta: Any = None):
        self.meta = None if meta is None else proof_judge_of(meta)

    def __call__(self, batch: Batch) -> Reward:
        found = VerdictReward()(batch)
        assert found.valid is not None
        quality, valid = torch.ones_like(found.values), found.valid.clone()
        if self.meta is not None:
            rows = [
                i
                for i, task in enumerate(batch.tasks)
                if found.valid[i] and found.values[i] > 0 and "proof" in task.meta and "analysis" not in task.meta
            ]
            tasks = [batch.tasks[i] for i in rows]
            items = [
                (t.meta["problem"], t.meta["proof"], spoken(batch.episodes[i].text))
                for i, t in zip(rows, tasks, strict=True)
            ]
            for i, said in zip(rows, self.meta.qualities(items), strict=True):
                valid[i], quality[i] = bool(said), said[0] if said else 0.0
        return Reward(found.values * quality, valid=valid, terms={"score": found.values, "quality": quality})
