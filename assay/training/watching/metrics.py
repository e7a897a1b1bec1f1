"""What a step's rollouts say in numbers."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import group_count, group_mean, group_std, outcome
from assay.types import Origin

NGRAM = 4
"""Tokens in a row that count as said again."""
FACTORS = np.random.default_rng(0).integers(1, 2**63, NGRAM).astype(np.uint64) * np.uint64(2) + np.uint64(1)


def rollout_metrics(batch: Batch) -> dict[str, float]:
    """The metrics the field expects of a valued batch.

    ``pass_rate`` is over samples with a verdict, ``reward/*`` over samples with a reward; ``groups/zero_variance`` is
    the share of advantage groups whose rewards are all equal; ``entropy`` is the mean over sampled tokens, in nats, of
    the distribution each was drawn from; ``truncated``, ``abstained``, ``unmarked`` (refused for marking no answer, so
    not known to be wrong) and ``unselected`` (a reward, but left out of the update) are shares of all samples. A step
    that was left without samples reports ``skipped`` 1.

    ``length/*`` are in tokens, without those that a tool or an environment wrote; ``length/stopped`` is the mean of the
    responses that came to their end, if any did.

    What a gamed reward shows in: ``score/mean`` over samples with a verdict; ``repetition``, the mean share of a
    response's 4-grams that it had before; ``verdict_correlation`` of rewards and scores; ``hollow_wins``, the share of
    rewards above their prompt's mean whose score is not above its mean.

    All are of what was asked. Of what a rollout derived from that there are ``derived/pass_rate`` and
    ``derived/reward``.
    """
    if not len(batch):
        return {"skipped": 1.0}
    asked = torch.tensor([task.parent is None for task in batch.tasks])
    if not bool(asked.all()):
        return {**rollout_metrics(batch.rows(asked.nonzero()[:, 0])), **_derived(batch.rows((~asked).nonzero()[:, 0]))}
    passed = [v.passed for v in batch.verdicts if v.passed is not None]
    lengths = [len(e.tokens) if e.origins is None else int((e.origins != Origin.TOOL).sum()) for e in batch.episodes]
    rewards = batch.rewards[batch.valid]
    out = {
        "reward/mean": float(rewards.mean()) if len(rewards) else 0.0,
        "reward/std": float(rewards.std()) if len(rewards) > 1 else 0.0,
        "length/mean": float(np.mean(lengths)),
        "length/max": float(max(lengths)),
        **_stopped(batch, lengths),
        "truncated": float(np.mean([e.truncated for e in batch.episodes])),
        "abstained": float(np.mean([v.passed is None for v in batch.verdicts])),
        "unmarked": float(np.mean([v.parts.get("marked") == 0 for v in batch.verdicts])),
        "no_reward": float((~batch.valid).float().mean()),
        "unselected": float((batch.valid & (batch.weights == 0)).float().mean()),
    }
    if passed:
        out["pass_rate"] = float(np.mean(passed))
        out["score/mean"] = float(np.mean([v.score for v in batch.verdicts if v.passed is not None]))
        out |= _agreement(batch)
    if said := [e.tokens[e.mask] for e in batch.episodes if e.path is None]:  # who acts may well act the same way
        out["repetition"] = float(np.mean([repetition(tokens) for tokens in said]))
    entropies = np.concatenate([np.zeros(0), *(e.entropies for e in batch.episodes if e.entropies is not None)])
    if not np.isnan(entropies).all():
        out["entropy"] = float(np.nanmean(entropies))
    if len(rewards):
        spread = group_std(batch.rewards, batch.group, batch.active, ddof=0)
        present = group_count(batch.group, batch.active, batch.rewards.dtype) > 0
        groups = batch.group[present].unique()
        varied = batch.group[present & (spread > 1e-8)].unique()
        out["groups/zero_variance"] = 1 - len(varied) / max(len(groups), 1)
    if len(batch.reward_terms) > 1:
        for name, values in batch.reward_terms.items():
            known = values[batch.valid & ~values.isnan()]  # of some responses a term need not be known
            if len(known) or not len(rewards):
                out[f"reward/{name}"] = float(known.mean()) if len(known) else 0.0
    return out


def _stopped(batch: Batch, lengths: list[int]) -> dict[str, float]:
    ended = [length for length, episode in zip(lengths, batch.episodes, strict=True) if not episode.truncated]
    return {"length/stopped": float(np.mean(ended))} if ended else {}


def _derived(batch: Batch) -> dict[str, float]:
    """What is said of derived samples; a number that cannot be told is left out."""
    passed, rewards = [v.passed for v in batch.verdicts if v.passed is not None], batch.rewards[batch.valid]
    out = {"derived/pass_rate": float(np.mean(passed))} if passed else {}
    return {**out, "derived/reward": float(rewards.mean())} if len(rewards) else out


def repetition(tokens: np.ndarray) -> float:
    """Share of a response's runs of :data:`NGRAM` tokens ``(T,)`` that stand in it before; 0 if it has none."""
    if len(tokens) < NGRAM:
        return 0.0
    runs = np.lib.stride_tricks.sliding_window_view(tokens.astype(np.uint64), NGRAM)
    # Sums modulo 2^64: that two different runs share one is less likely than a fault of the memory.
    return 1 - len(np.unique((runs * FACTORS).sum(-1, dtype=np.uint64))) / len(runs)


def hollow(batch: Batch) -> tuple[Bool[Tensor, "N"], Bool[Tensor, "N"]]:
    """Return which samples win, their reward above the mean of their prompt's, and which win without a better verdict.

    Samples without a reward or a verdict neither win nor count.
    """
    known, scores, rewards = *_scored(batch), outcome(batch)
    wins = known & (rewards > group_mean(rewards, batch.prompt_group, known) + 1e-6)
    return wins, wins & (scores <= group_mean(scores, batch.prompt_group, known) + 1e-6)


def _scored(batch: Batch) -> tuple[Bool[Tensor, "N"], Float[Tensor, "N"]]:
    """Return which samples have a reward and a verdict, and the verdicts' scores."""
    known = batch.valid & torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
    return known, torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)


def _agreement(batch: Batch) -> dict[str, float]:
    """How rewards go with verdicts; a number that cannot be told is left out."""
    out = {}
    wins, without = hollow(batch)
    if bool(wins.any()):
        out["hollow_wins"] = float(without.sum() / wins.sum())
    known, scores = _scored(batch)
    both = torch.stack([outcome(batch), scores])[:, known].double()
    if both.shape[1] > 1 and bool((both.std(-1) > 1e-8).all()):
        out["verdict_correlation"] = float(torch.corrcoef(both)[0, 1])
    return out
