"""What a challenger earns for a program, and a solver for an answer in its box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.challenged import FORM, HARD, VALID, Challenged
from assay.verify.answer.extract import extract


@dataclass(frozen=True, slots=True)
class ChallengeReward:
    """R_i = ``form`` format_i + ``valid`` valid_i + ``hard`` (1 - 2 |acc_i - 1/2|) of signal
    :class:`~assay.signals.challenged.Challenged`; no reward where that knows nothing.

    Args:
        signal: the signal.
        form, valid, hard: weights.

    Source: EVE (arXiv 2604.18320) and its authors' code.
    """

    signal: Challenged
    form: float = 0.2
    valid: float = 0.4
    hard: float = 0.4

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal})

    def __call__(self, batch: Batch) -> Reward:
        found = batch.signals[self.signal.name].to(batch.rewards.dtype)
        known = ~found.isnan().any(-1)
        found = torch.where(known[:, None], found, 0)
        terms = {"form": found[:, FORM], "valid": found[:, VALID], "hard": found[:, HARD]}
        values = self.form * terms["form"] + self.valid * terms["valid"] + self.hard * terms["hard"]
        return Reward(values, valid=known, terms=terms)


@part("reward", "boxed")
@dataclass(frozen=True, slots=True)
class Boxed:
    r"""R_i = ``form`` f_i + ``score`` score_i: f is 1 for a response that has a box, one half where it begins with it.

    Args:
        form, score: weights.

    Source: the solver of EVE (arXiv 2604.18320) and its authors' code.
    """

    form: float = 0.2
    score: float = 0.8

    def __call__(self, batch: Batch) -> Reward:
        forms = [boxed_form(e.text) for e in batch.episodes]
        form = torch.tensor(forms, dtype=batch.rewards.dtype)
        score = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        values = self.form * form + self.score * score
        return Reward(values, valid=judged(batch), terms={"form": form, "score": score})


def boxed_form(response: str) -> float:
    r"""Return 1 for a response with a box, one half if there is nothing before it, 0 without one."""
    text = response.rpartition("</think>")[2].strip()
    if extract(text, ("boxed",), "none") is None:
        return 0.0
    return 0.5 if text.startswith("\\boxed{") else 1.0
