"""What a challenger earns for a program, and a solver for an answer in its box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.challenged import FORM, HARD, VALID, Challenged
from assay.tasks.pictures.edits import written_program
from assay.verify.answer.extract import extract
from assay.verify.text.overlap import bleu

LAST = 1000
"""Characters of a program, from its end, that are compared with others'."""


@dataclass(frozen=True, slots=True)
class ChallengeReward:
    """R_i = ``form`` format_i + ``valid`` valid_i + ``hard`` (1 - 2 |acc_i - 1/2|) - ``alike`` c_i

    of signal :class:`~assay.signals.challenged.Challenged`, no reward where that knows nothing; and c_i the share of
    the batch's programs that are of one cluster with i's (:func:`shares`), moved and stretched so that the least
    of them is 0 and the largest 1 unless all are equal; 0 of a response without a program. Of a program its last 1,000
    characters before the settings count.

    Args:
        signal: the signal.
        form, valid, hard, alike: weights.

    Source: EVE (arXiv 2604.18320) and its authors' code.
    """

    signal: Challenged
    form: float = 0.2
    valid: float = 0.4
    hard: float = 0.4
    alike: float = 0.0

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal})

    def __call__(self, batch: Batch) -> Reward:
        found = batch.signals[self.signal.name].to(batch.rewards.dtype)
        known = ~found.isnan().any(-1)
        found = torch.where(known[:, None], found, 0)
        terms = {"form": found[:, FORM], "valid": found[:, VALID], "hard": found[:, HARD]}
        values = self.form * terms["form"] + self.valid * terms["valid"] + self.hard * terms["hard"]
        if self.alike:
            terms["alike"] = torch.tensor(likeness([e.text for e in batch.episodes]), dtype=values.dtype)
            values = values - self.alike * terms["alike"]
        return Reward(values, valid=known, terms=terms)


def likeness(responses: Sequence[str]) -> list[float]:
    """Return c of each response, see :class:`ChallengeReward`."""
    programs = [written_program(text)[-LAST:] for text in responses]
    found = shares(programs)
    if len(set(found)) > 1:
        least, most = min(found), max(found)
        found = [(share - least) / (most - least) for share in found]
    return [share if program else 0.0 for share, program in zip(found, programs, strict=True)]


def shares(texts: Sequence[str], distance: float = 0.5) -> list[float]:
    """Return the share of texts that are in each one's cluster.

    Two texts are 1 - BLEU apart, the earlier held against the later. Clusters are joined, the nearest first, as long as
    the mean distance of their texts is below ``distance``.
    """
    n = len(texts)
    apart = np.full((n, n), np.inf)
    for i in range(n):
        for j in range(i + 1, n):
            apart[i, j] = apart[j, i] = 1 - bleu(texts[j], texts[i])
    clusters = [[i] for i in range(n)]
    while n and apart.min() < distance:
        a, b = sorted(divmod(int(apart.argmin()), n))
        mine, other = len(clusters[a]), len(clusters[b])
        apart[a] = apart[:, a] = (mine * apart[a] + other * apart[b]) / (mine + other)
        apart[b] = apart[:, b] = apart[a, a] = np.inf
        clusters[a] += clusters[b]
        clusters[b] = []
    sizes = {i: len(cluster) / n for cluster in clusters for i in cluster}
    return [sizes[i] for i in range(n)]


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
