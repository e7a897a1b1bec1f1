"""S048: a thought has to lead to the same right option when the options stand in another order."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.consistency import Consistency
from assay.rewards.text.rederived import Rederived
from assay.rollout.reread.options import order_of, reordered
from assay.rollout.reread.reordered import Reordered

__all__ = ["Consistency", "Rederived", "Reordered", "acre", "order_of", "reordered"]


@paper(
    "S048",
    "ACRE",
    arxiv="2510.10104",
    seams=["rollout", "reward", "credit", "objective"],
    essentials={
        "the options in another order, what is right with them": "test_a_question_in_another_order",
        "no option keeps its letter, or any order": "test_derangements_and_any_order",
        "the tokens of the thought after the new question, and a second answer": (
            "test_the_thought_is_continued_as_it_was_sampled"
        ),
        "four cases: both right, one of them, none": "test_the_four_cases",
        "answers are compared by what they say, not by their letters": "test_the_same_option_by_another_letter",
        "second answers are not learned from": "test_the_thought_is_continued_as_it_was_sampled",
        "CACR: a judge who reads the thought alone names the option that was answered": "test_thoughts_without_answers",
        "it trains a model that sees, pictures and videos": "test_it_trains",
    },
    choices=(
        "alpha .3, .1, .1 are ours",
        "by default no option keeps its letter; the paper draws any order, the same one included",
        "second answers are the likeliest tokens",
        "the form is a thought and then the answer in tags, worth 1",
        "a response without an answer is wrong, and so is its second",
        "CACR's judge is shown the question with its options, and no pictures; it is a monitor, asked every 10 steps",
    ),
    lacks="the paper's own three values of alpha",
)
def acre(
    order: Literal["derangement", "any"] = "derangement",
    both: float = 0.3,
    first: float = 0.1,
    second: float = 0.1,
    form: float = 1.0,
    tokens: int = 16,
    judge: Any = None,
    every: int = 10,
) -> Method:
    """GRPO with a reward for thoughts that survive another order of the options.

        R_i = [a right] + [form] + alpha;   alpha = .3 (a and a~ right), .1 (one of them), 0

    a~ is what the policy answers after the same thought where the options of the question stand otherwise. The share
    of a and a~ that are one option (OSCR) is logged as ``reordered/same``.

    Args:
        order, tokens: see :class:`~assay.rollout.reread.reordered.Reordered`.
        both, first, second, form: see :class:`~assay.rewards.outcome.consistency.Consistency`.
        judge, every: of CACR, see :class:`~assay.rewards.text.rederived.Rederived`.

    Source: ACRE (arXiv 2510.10104), with Qwen2.5-VL-7B after supervised learning of thoughts.
    """
    reward = Consistency(both, first, second, form)
    return Method(
        rollout={"name": "reordered", "order": order, "tokens": tokens},
        reward=reward if judge is None else Rederived(reward, judge, every),
        credit=GRPO(),
        objective=ClippedSurrogate(aggregation="sequence_mean"),
    )


ARM = {"name": "S048", "rollout": "single_turn"}
"""The setting's engine gives second answers itself."""

claims(
    Claim(
        paper="S048",
        text="Where always giving one letter is right as often as thinking, a reward for answers that survive another "
        "order of the options leads to thinking, and accuracy alone does not tell the two apart.",
        setting="letters",
        arms={"consistency": ARM, "accuracy": {**ARM, "reward": "verdict"}},
        better="consistency",
        baseline="accuracy",
        measure="thinks",
        sweep={"lr": (0.05, 0.1, 0.2)},
    )
)
