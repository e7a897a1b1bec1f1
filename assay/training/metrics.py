"""What a step's rollouts say in numbers."""

from __future__ import annotations

import numpy as np

from assay.batch import Batch
from assay.ops import group_count, group_std


def rollout_metrics(batch: Batch) -> dict[str, float]:
    """The metrics the field expects of a valued batch.

    ``pass_rate`` is over samples with a verdict, ``reward/*`` over samples with a reward; ``groups/zero_variance`` is
    the share of advantage groups whose rewards are all equal; ``entropy`` is the mean over sampled tokens, in nats, of
    the distribution each was drawn from; ``truncated``, ``abstained`` and ``unselected`` (a reward, but left out of the
    update) are shares of all samples. A step that was left without samples reports ``skipped`` 1.
    """
    if not len(batch):
        return {"skipped": 1.0}
    passed = [v.passed for v in batch.verdicts if v.passed is not None]
    lengths = [len(e.tokens) for e in batch.episodes]
    rewards = batch.rewards[batch.valid]
    out = {
        "reward/mean": float(rewards.mean()) if len(rewards) else 0.0,
        "reward/std": float(rewards.std()) if len(rewards) > 1 else 0.0,
        "length/mean": float(np.mean(lengths)),
        "length/max": float(max(lengths)),
        "truncated": float(np.mean([e.truncated for e in batch.episodes])),
        "abstained": float(np.mean([v.passed is None for v in batch.verdicts])),
        "no_reward": float((~batch.valid).float().mean()),
        "unselected": float((batch.valid & (batch.weights == 0)).float().mean()),
    }
    if passed:
        out["pass_rate"] = float(np.mean(passed))
    entropies = [e.entropies for e in batch.episodes if e.entropies is not None]
    if entropies:
        out["entropy"] = float(np.concatenate(entropies).mean())
    if len(rewards):
        spread = group_std(batch.rewards, batch.group, batch.active, ddof=0)
        present = group_count(batch.group, batch.active, batch.rewards.dtype) > 0
        groups = batch.group[present].unique()
        varied = batch.group[present & (spread > 1e-8)].unique()
        out["groups/zero_variance"] = 1 - len(varied) / max(len(groups), 1)
    if len(batch.reward_terms) > 1:
        for name, values in batch.reward_terms.items():
            out[f"reward/{name}"] = float(values[batch.valid].mean()) if len(rewards) else 0.0
    return out
