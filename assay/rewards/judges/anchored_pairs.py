"""Responses compared with the answer that a task already has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.judges.pair_judge import pair_judge_of
from assay.rewards.text.embedding import texts_of
from assay.types import Task

SURE = 2.0**-20
"""A preference is held this far from 0 and 1 where its logit is taken."""


@part("reward", "anchored_pairs")
class AnchoredPairs:
    """R_i = p_i - 1/2 or logit p_i,   p_i = (P(i is better | i first) + 1 - P(a is better | a first)) / 2.

    The anchor a is the task's ``meta["anchor"]``, or its solution, or its reference: an answer like it earns 0 whatever
    place the judge likes, and what a prompt adds to the worth of all its answers is in neither. A response that the
    judge cannot be read on has no reward, nor has one whose verifier failed; take verifier ``none`` where nothing else
    judges. Terms: ``preference``, p; ``better``, 1 where p > 1/2.

    Source: Pairwise-RL (arXiv 2504.04950).

    Args:
        judge: a :class:`~assay.rewards.judges.pair_judge.PairJudge`, a table of its options (``judge`` among them), or
            the specification of an engine.
        form: ``probability``, between -1/2 and 1/2, or ``logit``.

    Raises:
        UsageError: before a run, a task without an anchor.
    """

    def __init__(self, judge: Any, form: Literal["probability", "logit"] = "probability"):
        self.judge, self.form = pair_judge_of(judge), form

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task that has no answer to compare with."""
        for task in tasks:
            anchor(task)

    def __call__(self, batch: Batch) -> Reward:
        valid = judged(batch)
        rows = valid.nonzero()[:, 0].tolist()
        items = [(batch.tasks[i].question, batch.episodes[i].text, anchor(batch.tasks[i])) for i in rows]
        preference = torch.full_like(batch.rewards, 0.5)
        for i, p in zip(rows, self.judge.both_orders(items), strict=True):
            valid[i] = p is not None
            preference[i] = 0.5 if p is None else p
        values = preference.clamp(SURE, 1 - SURE).logit() if self.form == "logit" else preference - 0.5
        better = (preference > 0.5).to(values.dtype)
        return Reward(values, valid=valid, terms={"preference": preference, "better": better})


def anchor(task: Task) -> str:
    """Return the answer that responses to a task are compared with; raise UsageError where it has none."""
    found = task.meta.get("anchor") or task.solution or next(iter(texts_of(task)), None)
    if not found:
        raise UsageError(
            f"reward 'anchored_pairs': task {task.id} has no answer to compare with; give it a solution or a reference"
        )
    return str(found)
