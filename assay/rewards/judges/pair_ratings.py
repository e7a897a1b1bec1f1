"""Responses rated by comparisons within their group: few of them, those that say most."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.judges.pair_judge import pair_judge_of
from assay.statistics.preferences.choices import Choice, Worths, fit_choices, most_informative


@part("reward", "pair_ratings")
class PairRatings:
    """R_i = r_i - kappa sd_i, the worth of a response among its prompt's by Bradley and Terry, from a judge of pairs.

    In each round the responses of a prompt are paired up, the pair first that tells most (D-optimal) by what is known,
    and the judge says P(i is better than j), the mean of both orders: so much of a win for i, the rest for j. Worths
    are the mode under a normal prior of variance 1 / ``ridge``, and sd_i are of their posterior.

    A response without a comparison that can be read has no reward, nor has one whose verifier failed; take verifier
    ``none`` where nothing else judges. Terms: ``worth``, ``deviation``.

    Args:
        judge: a :class:`~assay.rewards.judges.pair_judge.PairJudge`, a table of its options (``judge`` among them), or
            the specification of an engine.
        rounds: comparisons of each response, at most.
        kappa: how much of the deviation is taken off, which is pessimism.
        ridge: see above.

    Raises:
        UsageError: an option out of range.
    """

    def __init__(self, judge: Any, rounds: int = 3, kappa: float = 0.0, ridge: float = 1.0):
        if rounds < 1 or kappa < 0 or ridge <= 0:
            raise UsageError(
                f"reward 'pair_ratings': rounds {rounds} must be 1 or more, kappa {kappa:g} not below 0, and ridge "
                f"{ridge:g} above 0"
            )
        self.judge, self.rounds, self.kappa, self.ridge = pair_judge_of(judge), rounds, kappa, ridge

    def __call__(self, batch: Batch) -> Reward:
        groups: dict[int, list[int]] = {}
        for i in judged(batch).nonzero()[:, 0].tolist():
            groups.setdefault(int(batch.prompt_group[i]), []).append(i)
        choices: dict[int, list[Choice]] = {g: [] for g in groups}
        for _ in range(self.rounds):
            asked = [(g, i, j) for g, rows in groups.items() for i, j in matched(self.fitted(choices[g], len(rows)))]
            said = self.judge.compared(batch, [(groups[g][i], groups[g][j]) for g, i, j in asked])
            for (g, i, j), p in zip(asked, said, strict=True):
                if p is not None:
                    choices[g] += [Choice(i, (i, j), p), Choice(j, (i, j), 1 - p)]
        values, valid = torch.zeros_like(batch.rewards), torch.zeros(len(batch), dtype=torch.bool)
        terms = {"worth": values.clone(), "deviation": values.clone()}
        for g, rows in groups.items():
            found = self.fitted(choices[g], len(rows))
            values[rows] = torch.from_numpy(found.pessimistic(self.kappa)).to(values.dtype)
            terms["worth"][rows] = torch.from_numpy(found.values).to(values.dtype)
            terms["deviation"][rows] = torch.from_numpy(found.deviations).to(values.dtype)
            valid[[rows[i] for choice in choices[g] for i in choice.among]] = True
        return Reward(values, valid=valid, terms=terms)

    def fitted(self, choices: list[Choice], items: int) -> Worths:
        return fit_choices(choices, items, self.ridge)


def matched(fitted: Worths) -> list[tuple[int, int]]:
    """Return pairs of items that have none in common, the one that tells most first; of an odd number one stays out."""
    left, out = list(range(len(fitted.features))), []
    while len(left) > 1:
        pairs = list(combinations(left, 2))
        pair = pairs[most_informative(fitted, pairs)]
        out.append(pair)
        left = [i for i in left if i not in pair]
    return out
