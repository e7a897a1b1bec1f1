"""What the calls of a turn have found of what was still to be found, for how many calls they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.ops.turns import own_turns
from assay.registry import part
from assay.rewards.judged import judged

Form = Literal["f1", "precision", "rate", "product"]

STRAY = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
"""Marks of calls and of what tools say, which are none of a final answer."""
EMPTY, MALFORMED, DONE = -0.5, -0.3, 0.5
NOTES = ("calls", "unread", "found", "left")


def solved(found: int, calls: int, form: Form = "f1") -> float:
    """Return what k answers found by n >= 1 calls are worth: 2k / (n + 1), k / n, k or k^2 / n."""
    return {
        "f1": 2 * found / (calls + 1),
        "precision": found / calls,
        "rate": float(found),
        "product": found**2 / calls,
    }[form]


def said(text: str, answer: Any, left: int, unread: int) -> float:
    """Return what a turn without calls is worth, of which ``left`` answers are still to be found.

    -0.5 if it is empty; -0.3 if it has something of a call in it; 1 / (1 + left) if the answer stands in it, whatever
    its case and commas; else 0.5 if nothing is left; else 0.
    """
    text = text.rpartition("</think>")[2].strip()
    if not text:
        return EMPTY
    if unread or any(mark in text for mark in STRAY):
        return MALFORMED
    if isinstance(answer, str) and _plain(answer) and _plain(answer) in _plain(text):
        return 1 / (1 + left)
    return 0.0 if left else DONE


def _plain(text: str) -> str:
    return text.lower().replace(",", "").strip()


@part("reward", "solved_f1")
@dataclass(frozen=True, slots=True)
class SolvedF1:
    """R_i = sum over the turns of response i of what their calls have found, see :func:`solved` and :func:`said`.

    The environment notes of each turn (``Turn.info``) its ``calls`` n, those ``unread``, the answers it has ``found``,
    k, and how many are ``left``; each answer is found once, so that a call made again counts in n alone, and so does
    one that failed. The answer of the task is its reference. A sample whose verdict abstains has no reward.

    Args:
        form: ``f1`` is 2k / (n + 1); for comparison ``precision`` is k / n, ``rate`` k, ``product`` k^2 / n.
        placed: on the turn's last own token, with R_i = 0, for credits of turns.

    Raises:
        UsageError: when called: an environment that does not note these.

    Source: FTRL (arXiv 2508.08791) and its authors' code.
    """

    form: Form = "f1"
    placed: bool = False

    def __call__(self, batch: Batch) -> Reward:
        known = judged(batch)
        totals, tokens = torch.zeros_like(batch.rewards), torch.zeros(batch.mask.shape, dtype=batch.rewards.dtype)
        for i, (episode, task) in enumerate(zip(batch.episodes, batch.tasks, strict=True)):
            if not known[i]:
                continue
            for turn in own_turns(episode):
                n, unread, k, left = _noted(turn.info, task.id)
                worth = solved(k, n, self.form) if n else said(turn.text, task.reference, left, unread)
                totals[i] += worth
                own = batch.mask[i, : turn.end].nonzero()
                if len(own):
                    tokens[i, own[-1, 0]] += worth
        values = torch.zeros_like(totals) if self.placed else totals
        return Reward(values, tokens if self.placed else None, known, {f"solved_{self.form}": totals})


def _noted(info: Mapping[str, Any], task: str) -> list[int]:
    missing = [note for note in NOTES if note not in info]
    if missing:
        raise UsageError(
            f"reward 'solved_f1': of a turn of task {task} its environment does not note {', '.join(missing)}; take "
            "environment 'functions', or one whose steps note them, and a rollout that plays it"
        )
    return [int(info[note]) for note in NOTES]
