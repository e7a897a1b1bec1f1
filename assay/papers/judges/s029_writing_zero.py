"""S029: writing that is compared with writing of the same group, by a judge who gives reasons."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reinforce import Reinforce
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judges.against_member import AgainstMember
from assay.select.reward_balance import RewardBalance


@paper(
    "S029",
    "Writing-Zero",
    arxiv="2506.00103",
    seams=["tasks", "reward", "credit", "select", "inference", "policies"],
    essentials={
        "a judge writes principles, a critique and two scores from 0 to 10": "test_a_comparison_is_read",
        "its tasks: each preference in both orders, begun on a teacher's right comparisons": "test_tasks_of_a_judge",
        "its reward: the better answer has the higher score, times the form": "test_a_comparison_is_read",
        "accuracy by order, and the liking for a place": "test_accuracy_by_order",
        "a member of the group, by lot, is what the others are compared with": "test_worked_numbers",
        "1 if better by all votes in both orders, else -1; the member 0": "test_who_has_to_agree",
        "rewards are advantages: no mean, no deviation; zero in expectation": "test_equals_earn_nothing_on_average",
        "a prompt with |sum R| / G > 0.6 is left out": "test_what_is_left_out",
        "it learns which of several answers is best, whatever is added to scores": "test_a_bandit_of_qualities",
        "in assay train": "test_it_acts_in_training",
    },
    choices=(
        "all wording, and the form of the judge's reply",
        "votes that do not agree count as -1; one that cannot be read, with none against, leaves no reward",
        "the judge earns 1 or 0; the paper's terms for the margin of scores and the liking for a place are not given",
        "one greedy vote in either order unless more are asked for",
        "clipping and the mean over tokens are those of objective clip",
    ),
    lacks="the reward terms of the judge's training that the paper does not write out",
)
def writing_zero(judge: Any = None, votes: int = 1, most: float = 0.6) -> Method:
    """BRPO: each response against one of its own group, by a generative judge of pairs.

        ref ~ Uniform{1 ... G};   R_i = 1 if o_i beats o_ref by all votes in both orders, else -1;   R_ref = 0
        A_i = R_i;   only prompts with |sum_i R_i| / G <= most

    G is 16 in the paper. Rewards have no baseline and no scale: which response is the reference does not depend on what
    it is worth. The judge is trained by the same package: tasks ``pairs`` with a ``teacher`` for ``[warmup]``, and then
    GRPO on verifier ``pair_scores`` with rollout ``dynamic``; :func:`~assay.tasks.judging.pairs.by_order` says whether
    it likes a place.

    Args:
        judge: an engine, or the specification of one, or a table of
            :class:`~assay.rewards.judges.scored_pairs.ScoredPairs`, whose ``votes`` then count.
        votes: see there.
        most: see :class:`~assay.select.reward_balance.RewardBalance`.

    Source: Writing-Zero (arXiv 2506.00103).
    """
    spec = judge if isinstance(judge, dict) and "judge" in judge else {"judge": judge, "votes": votes}
    return Method(
        reward=AgainstMember(spec), credit=Reinforce(), select=RewardBalance(most), objective=ClippedSurrogate()
    )


claims(
    Claim(
        paper="S029",
        text="A policy that is rewarded by comparisons within the group comes to better answers than REINFORCE on the "
        "same judge's scores, to which each prompt adds something of its own.",
        setting="uncalibrated",
        evidence="mechanism",
        arms={
            "compared": {"name": "S029", "judge": "here"},
            "scored": {"name": "grpo", "credit": {"name": "reinforce", "baseline": "batch"}, "reward": "here"},
            "scored, grpo": {"name": "grpo", "reward": "here"},
        },
        better="compared",
        baseline="scored",
        measure="worth",
        sweep={"lr": (0.3, 1.0, 3.0)},
        tuning=(1000, 1001),
    )
)
