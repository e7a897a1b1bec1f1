"""Responses compared with one of their own group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.engines.asking import seed_of
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.judges.scored_pairs import ScoredPairs


@part("reward", "against_member")
class AgainstMember:
    """R_i = 1 if response i is better than a member of its group by every vote in both orders, else -1; 0 for that one.

    The member is drawn by lot (by numbers that the responses' texts give), so that before it is known E R_i = 0 for
    responses that are equally good. A response whose comparison is not settled for a vote that cannot be read has no
    reward, nor has one whose verifier failed, or that is alone; take verifier ``none`` where nothing else judges.
    Terms: ``win``, 1 for what is better; ``reference``, 1 for the member.

    Source: BRPO of Writing-Zero (arXiv 2506.00103).

    Args:
        judge: a :class:`~assay.rewards.judges.scored_pairs.ScoredPairs`, a table of its options (``judge`` among them),
            or the specification of an engine.
    """

    def __init__(self, judge: Any):
        if isinstance(judge, Mapping) and "judge" in judge:
            judge = ScoredPairs(**judge)
        self.judge = judge if isinstance(judge, ScoredPairs) else ScoredPairs(judge)

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        terms, asked = {"reference": values.clone()}, []
        for group in batch.prompt_group.unique().tolist():
            rows = ((batch.prompt_group == group) & valid).nonzero()[:, 0].tolist()
            if len(rows) == 1:
                valid[rows] = False
            if len(rows) < 2:
                continue
            reference = drawn(batch, rows)
            terms["reference"][reference] = 1
            asked += [(i, reference) for i in rows if i != reference]
        items = [(batch.tasks[i].question, batch.episodes[i].text, batch.episodes[r].text) for i, r in asked]
        for (i, _), better in zip(asked, self.judge.beats(items), strict=True):
            values[i] = 1.0 if better else -1.0
            if better is None:
                values[i], valid[i] = 0.0, False
        return Reward(values, valid=valid, terms={"win": (values > 0).to(values.dtype), **terms})


def drawn(batch: Batch, rows: Sequence[int]) -> int:
    """Return a row by lot, whatever the order of the rows; the lot depends on all of their texts."""
    texts = {i: batch.episodes[i].text for i in rows}
    lot = seed_of("\0".join([batch.tasks[rows[0]].question, *sorted(texts.values())]))
    return min(rows, key=lambda i: seed_of(f"{lot} {texts[i]}"))
