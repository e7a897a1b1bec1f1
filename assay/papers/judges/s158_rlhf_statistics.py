"""S158: what statistics says of preferences: worths with intervals, which pair to ask about, and caution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judges.pair_ratings import PairRatings


@paper(
    "S158",
    "A statistical perspective on RLHF",
    arxiv="2604.02507",
    seams=["reward", "curriculum", "evaluate", "policies"],
    essentials={
        "worths of most likelihood from choices of two, and of rankings": "test_worked_numbers",
        "Fisher's information, its pseudo-inverse, intervals of differences": "test_worked_numbers",
        "worths that do not exist are told": "test_who_never_lost_has_no_worth",
        "intervals cover as often as they say": "test_intervals_cover",
        "the next pair is the one that tells most (D-optimal)": "test_the_pair_that_tells_most",
        "pessimism: r - kappa sd": "test_ratings_of_a_group_by_hand",
        "the optimum under a divergence: pi_ref exp(r / beta)": "test_the_optimum_under_a_divergence",
        "DPO estimates the same in one stage": "test_dpo_is_the_same_estimate",
        "in assay train, ratings of a prompt's responses from few comparisons": "test_it_acts_in_training",
    },
    choices=(
        "in training, worths are among a prompt's responses, compared by a judge in place of people",
        "under a normal prior of variance 1, as some response may never lose; a judge's doubt is part of a win",
        "three rounds, in which the responses of a prompt are paired up; kappa 1",
        "GRPO, with 0.05 times the divergence from the reference policy",
    ),
)
def rlhf_statistics(
    judge: Any = None, rounds: int = 3, kappa: float = 1.0, ridge: float = 1.0, kl_weight: float = 0.05
) -> Method:
    """RLHF in two stages within a step: worths from preferences, cautiously, and a policy that is held near its own.

        P(i is better than j) = sigmoid(r_i - r_j);   R_i = r_i - kappa sd_i;   max E R - kl_weight KL(pi || pi_ref)

    The worths and what is known of them are :func:`assay.statistics.preferences.choices.fit_choices`; which pairs are
    asked about, :func:`~assay.statistics.preferences.choices.most_informative`. See reward ``pair_ratings``. In one
    stage the same is objective ``dpo``, whose log-ratios to the reference are worths divided by beta.

    Args:
        judge, rounds, kappa, ridge: see :class:`~assay.rewards.judges.pair_ratings.PairRatings`.
        kl_weight: see :class:`~assay.objectives.clip.ClippedSurrogate`.

    Source: "Reinforcement Learning from Human Feedback: A Statistical Perspective" (arXiv 2604.02507), a survey.
    """
    return Method(
        reward=PairRatings(judge, rounds, kappa, ridge), credit=GRPO(), objective=ClippedSurrogate(kl_weight=kl_weight)
    )


def optimum(reference: ArrayLike, rewards: ArrayLike, beta: float) -> NDArray[np.float64]:
    """Return pi* = pi_ref exp(r / beta) / Z, which has the most E r - beta KL(pi || pi_ref).

    Args:
        reference, rewards: ``(K,)`` of each response.
        beta: above 0.
    """
    ratio = np.asarray(rewards, dtype=np.float64) / beta
    weighed = np.asarray(reference, dtype=np.float64) * np.exp(ratio - ratio.max())
    return np.asarray(weighed / weighed.sum())


claims(
    Claim(
        paper="S158",
        text="With as many preferences, worths are known better where each pair asked about is the one that tells most "
        "than where pairs are asked about by lot.",
        setting="preference_design",
        arms={"informative": {"design": "informative"}, "by lot": {"design": "random"}},
        better="informative",
        baseline="by lot",
        measure="precision",
    )
)
