"""S061: recommendation as generation within a catalogue, with beams for a group and a penalty by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rollout.catalogue import RANK, Catalogue, Decode, hits
from assay.types import Ask, Task
from assay.verify.base import Verifier
from assay.verify.episodes import judge_groups


@paper(
    "S061",
    "ReRe",
    seams=["rollout", "reward", "evaluate"],
    essentials={
        "a group is the items of a beam search that only continues items, all different, best first": (
            "test_a_group_is_the_catalogue_in_order_as_far_as_it_goes"
        ),
        "a language model's beams stay within the catalogue": "test_a_language_model_learns_within_a_catalogue",
        "beside the rule, wrong items cost by rank, the highest most": "test_the_worked_example",
        "an item counts the same however many tokens it has": "test_every_item_counts_the_same_however_long_it_is",
        "a group without the right item teaches nothing": "test_a_group_without_a_right_item_teaches_nothing",
        "sampling, and samples of which different items are kept, are the alternatives": (
            "test_distinct_keeps_right_ones_then_each_item_once"
        ),
        "hit ratio and NDCG of lists are measured": "test_lists_are_measured_by_their_first_right_item",
        "a recommender comes to rank what users take higher than from plain samples": (
            "test_beams_and_ranks_teach_more_than_samples"
        ),
    },
    choices=(
        "the reference policy of the divergence stays where it began; the authors' code moves it along",
        "log-probabilities are those of the whole vocabulary; advantages divide by the deviation plus 1e-4",
    ),
)
def rere(
    items: Sequence[str] | Path | None = None,
    decode: Decode = "beam",
    rule: float = 1.0,
    ranking: float = 1.0,
    kl_weight: float = 1e-3,
    add_target: bool = False,
) -> Method:
    """GRPO whose group is the items that a beam search finds in a catalogue, with a penalty for wrong ones by rank.

        group:   the G items of a beam search of width G in which every next token continues some item; rank k = 0, 1,
                 ... from the best
        a_k    = 1 / log2(k + 2)
        R_k    = rule 1[item k is right] + ranking P_k
        P_k    = -a_k / sum_j a_j for a wrong item if some item of the group is right, else 0

    so that all items are different, none is outside the catalogue, and the errors that the model ranks highest cost
    most. A group without a right item teaches nothing. Beams are no samples from the policy; the gradient is that of a
    surrogate, strictly on-policy as to ratios (log-probabilities are those of the whole vocabulary). The loss is a mean
    over the tokens of each item, and then over items. Right is what the verifier calls right: ``exact`` compares with
    the title. For hit ratio and NDCG see :func:`recommended`.

    Args:
        items: titles, or a file with one per line; without them the search is free.
        decode: ``beam``, or the alternatives ``sample`` and ``distinct``, see
            :class:`assay.rollout.catalogue.Catalogue`. Samples are ranked by their log-probability.
        rule, ranking: weights; 0 leaves a term out.
        kl_weight: of the divergence (k3) from the policy that RL began with.
        add_target: put the right item in the place of the last where none of the group is it.

    Source: ReRe ("Reinforced Preference Optimization for Recommendation") and its authors' code, which has 16 beams at
    temperature 1, a learning rate of 1e-5, and moves the reference policy along with the trained one; here it stays.
    """
    return Method(
        reward=RankedReward(rule, ranking),
        credit=GRPO(epsilon=1e-4),
        objective=ClippedSurrogate(kl_weight=kl_weight, aggregation="sequence_mean"),
        rollout={"name": "catalogue", "items": items, "decode": decode, "add_target": add_target},
    )


@dataclass(frozen=True, slots=True)
class RankedReward:
    """R_k = rule 1[right] + ranking P_k, see :func:`rere`; terms ``rule`` and ``ranking``, before their weights.

    A response's rank is that of ``episode.meta["rank"]``, or else by the log-probability it was sampled with, highest
    first, then in order. Samples without a verdict have no reward and no rank.

    Args:
        rule, ranking: weights.

    Raises:
        UsageError: both weights are 0.
    """

    rule: float
    ranking: float

    def __post_init__(self) -> None:
        if not self.rule and not self.ranking:
            raise UsageError("reward 'S061': the weights rule and ranking are both 0")

    def __call__(self, batch: Batch) -> Reward:
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        right = torch.tensor([bool(v.passed) for v in batch.verdicts], dtype=torch.bool)
        rule, ranking = right.to(batch.rewards), torch.zeros_like(batch.rewards)
        for group in batch.prompt_group.unique().tolist():
            rows = ((batch.prompt_group == group) & valid).nonzero()[:, 0]
            if len(rows):
                ranking[rows] = rank_penalties(ranks(batch, rows), right[rows]).to(ranking)
        values = self.rule * rule + self.ranking * ranking
        return Reward(values, valid=valid, terms={"rule": rule, "ranking": ranking})


def rank_penalties(rank: Int[Tensor, "G"], right: Bool[Tensor, "G"]) -> Float[Tensor, "G"]:
    """Return P of a group, see :func:`rere`: zero for right items, and for all where none is right."""
    discounts = 1 / torch.log2(rank.double() + 2)
    penalties = -discounts / discounts.sum()
    return torch.where(right | ~right.any(), 0, penalties)


def ranks(batch: Batch, rows: Int[Tensor, "G"]) -> Int[Tensor, "G"]:
    """Return the places of ``rows`` among each other, from 0."""
    said = [batch.episodes[i].meta.get(RANK) for i in rows.tolist()]
    if None in said:
        logp = torch.where(batch.mask, batch.logprobs, 0)[rows].sum(-1)
        # Where the author's log-probabilities are unknown, the last place.
        keys = -torch.where(logp.isnan(), -torch.inf, logp)
    else:
        keys = torch.tensor(said, dtype=batch.logprobs.dtype)
    order = keys.argsort(stable=True)
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))


def recommended(
    tasks: Sequence[Task],
    engine: Engine,
    verifier: Verifier,
    items: Sequence[str] | Path,
    width: int = 20,
    ks: Sequence[int] = (3, 5, 10, 20),
    max_tokens: int = 128,
) -> dict[str, float]:
    """Return ``HR@k`` and ``NDCG@k`` of the beam searches for tasks that have one right item each.

    Args:
        tasks, engine, verifier: what is asked of whom, and who judges.
        items: the catalogue.
        width: of the searches, at most as many as there are items.
        ks: list lengths, at most ``width``.
        max_tokens: longest item.

    Raises:
        UsageError: a list longer than the search is wide, or what :class:`Catalogue` refuses.
    """
    if max(ks, default=1) > width:
        raise UsageError(f"lists of {max(ks)} items need a search at least as wide, not {width}")
    search = Catalogue(Sampling(max_tokens), partial(judge_groups, verifier), items)
    groups = search.collect([Ask(task, width) for task in tasks], engine, np.random.default_rng(0))
    out: dict[str, float] = {}
    for k in ks:
        found = hits(groups, k)
        out |= {f"HR@{k}": found["catalogue/found"], f"NDCG@{k}": found["catalogue/ndcg"]} if found else {}
    return out


claims(
    Claim(
        paper="S061",
        text="Learning from the items of a constrained beam search with a penalty by rank, a recommender ranks what "
        "users take next higher than learning from samples that are right or wrong.",
        setting="shop",
        arms={
            "beams": {"name": "S061", "rollout": {"decode": "beam"}},
            "samples": {"name": "S061", "reward": {"name": "S061", "ranking": 0.0}, "rollout": {"decode": "sample"}},
        },
        better="beams",
        baseline="samples",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0, 10.0, 30.0)},
    )
)
