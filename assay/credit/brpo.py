"""Budget relative advantages: a thought is valued by the answers it leads to when it is cut at several lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_mean, outcome
from assay.registry import part
from assay.types import Episode, Verdict

Variant = Literal["both", "own", "group", "none"]


@part("credit", "brpo")
@dataclass(frozen=True, slots=True)
class BRPO:
    """A_is = Ret_is - (s V1_is + (S - s) V2_s) / S on the thinking tokens of segment s = 0 ... S - 1.

    Ret_is = sum_{j >= s} P_j r_ij is what the budgets still to come are worth, r_ij the score at budget j and P_j its
    prior. V1_is = (sum_{j < s} 2^j r_ij / sum_{j < s} 2^j) sum_{j >= s} P_j guesses it from the budgets passed,
    the later ones weighing more; V1_i0 = 0. V2_s = mean of Ret_s over the group's active traces. Neither depends on
    what is decided in the segment, but for the trace's own share of V2. Nothing is divided by a standard deviation.

    A thinking episode says r_ij in the parts ``budget j`` of its verdict, P in ``meta["prior"]``, and segment s by a
    span of kind ``budget`` with ``meta["index"]``, as the rollout ``anytime`` leaves them. Every other episode, its
    summaries among them, gets A_i = R_i - mean of its advantage group.

    Source: AnytimeReasoner (arXiv 2505.13438), budget relative policy optimization, as in its implementation.

    Args:
        baseline: ``both`` as above, ``own`` is V1 alone, ``group`` V2 alone, ``none`` neither.
    """

    baseline: Variant = "both"

    group_relative = True
    level = "token"

    @property
    def summary(self) -> dict[str, str]:
        words = {"both": "earlier budgets, group mean", "own": "earlier budgets", "group": "group mean", "none": "none"}
        return {"baseline": words[self.baseline], "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        thinking = torch.tensor(
            [scores_of(e, v) is not None for e, v in zip(batch.episodes, batch.verdicts, strict=True)]
        )
        others = batch.active & ~thinking.bool()
        out = torch.where(others[:, None], broadcast(rewards - group_mean(rewards, batch.group, others), batch), 0)
        rows = (batch.active & thinking).nonzero()[:, 0]
        for group in batch.group[rows].unique().tolist():
            members = rows[batch.group[rows] == group]
            found = [scores_of(batch.episodes[i], batch.verdicts[i]) for i in members.tolist()]
            scores = torch.tensor([s for s, _ in (f for f in found if f is not None)], dtype=rewards.dtype)
            prior = torch.tensor([p for _, p in (f for f in found if f is not None)], dtype=rewards.dtype)[0]
            advantages = segment_advantages(scores, prior, self.baseline)
            for i, row in zip(members.tolist(), advantages, strict=True):
                for span in batch.episodes[i].spans:
                    if span.kind == "budget":
                        out[i, span.start : span.end] = row[span.meta["index"]]
        return torch.where(batch.mask & batch.active[:, None], out, 0)


def scores_of(episode: Episode, verdict: Verdict) -> tuple[list[float], list[float]] | None:
    """Return scores and priors of a thinking episode's budgets; ``None`` for any other, and where one is unknown."""
    prior = episode.meta.get("prior")
    if prior is None:
        return None
    scores = [verdict.parts.get(f"budget {j}") for j in range(len(prior))]
    return None if None in scores else ([float(s) for s in scores if s is not None], list(prior))


def segment_advantages(
    scores: Float[Tensor, "G S"], prior: Float[Tensor, "S"], baseline: Variant = "both"
) -> Float[Tensor, "G S"]:
    """Return A_is of each trace of a group and each segment, see :class:`BRPO`.

    Args:
        scores: r_ij in [0, 1].
        prior: P_j.
        baseline: see :class:`BRPO`.
    """
    budgets = scores.shape[1]
    to_come = prior.flip(0).cumsum(0).flip(0)
    returns = (scores * prior).flip(1).cumsum(1).flip(1)
    group = returns.mean(0, keepdim=True).expand_as(returns)
    weights = 2.0 ** torch.arange(budgets, dtype=scores.dtype)
    own = torch.zeros_like(returns)
    own[:, 1:] = (scores * weights).cumsum(1)[:, :-1] / weights.cumsum(0)[:-1] * to_come[1:]
    s = torch.arange(budgets, dtype=scores.dtype)
    mixed = {"both": (s * own + (budgets - s) * group) / budgets, "own": own, "group": group, "none": 0 * own}
    return returns - mixed[baseline]
