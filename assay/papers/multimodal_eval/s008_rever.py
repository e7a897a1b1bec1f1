"""S008: plans of skills rewarded by what is in order, and carried out by who also watches every step."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.environments.tabletop.environment import TabletopWorld
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.verdict_part import VerdictPart
from assay.rewards.shaping.weighted import WeightedSum
from assay.tasks.pictures.tabletop import Tabletop
from assay.verify.planning.plan_match import PlanMatch
from assay.verify.planning.skills import read_plan, read_skill

__all__ = ["PlanMatch", "Tabletop", "TabletopWorld", "read_plan", "read_skill", "rever"]


@paper(
    "S008",
    "REVER",
    arxiv="2509.25852",
    seams=["tasks", "verify", "reward", "credit", "objective"],
    essentials={
        "skills are sentences with gaps": "test_skills_are_sentences_with_gaps",
        "order-preserving matching of a plan with the reference": "test_the_worked_plans",
        "parts of a skill count, where that is wanted": "test_the_worked_parts_of_skills",
        "form: tags, and a numbered list of different skills, all of them known": "test_what_is_in_form",
        "reward: form and content": "test_the_worked_rewards",
        "whole plan, next skill and completion share a form": "test_three_kinds_of_questions_about_a_table",
        "closed loop: the policy says whether a step is done; again, or a new plan": "test_the_closed_loop",
        "watched plans come further than open ones where steps fail": "test_the_setting",
        "it trains a model that sees": "test_it_trains",
    },
    choices=(
        "Dice, 2 M / (m + n), and weights of .1 for form and .9 for content are ours",
        "a line that is no skill counts as one that matches nothing",
        "two retries of a step, three plans",
        "a table with blocks, a tray and two boxes in place of recorded demonstrations and of a robot",
    ),
    lacks="what the paper divides the overlap by, its weights, the data set LEAP",
)
def rever(form: float = 0.1, content: float = 0.9) -> Method:
    """GRPO on plans: R_i = ``form`` format_i + ``content`` content_i of verifier ``plan_match``.

    ::

        [tasks]
        source = "tabletop"
        [method]
        name = "S008"

    The model is then planner and monitor in environment ``tabletop``, which ``assay eval`` plays with a recipe whose
    source and rollout ``multi_turn`` name it.

    Args:
        form, content: weights of the parts of :class:`~assay.verify.planning.plan_match.PlanMatch`.

    Source: REVER and RoboFarseer (arXiv 2509.25852), with a Qwen2.5-VL-7B.
    """
    return Method(
        reward=WeightedSum(
            {name: VerdictPart(name, kind="plan_match") for name in ("format", "content")},
            {"format": form, "content": content},
        ),
        credit=GRPO(),
        objective=ClippedSurrogate(aggregation="sequence_mean"),
    )


claims(
    Claim(
        paper="S008",
        text="Where three steps in ten fail, plans whose steps are watched, tried again and planned anew reach the "
        "goal more often than plans carried out blindly, though one in ten answers of who watches is wrong.",
        setting="watched_plans",
        evidence="construction",
        arms={"watched": {"monitor": "true", "mistaken": 0.1}, "blind": {"monitor": "none"}},
        better="watched",
        baseline="blind",
        measure="reached",
    )
)
