"""S100: questions from a knowledge graph, a cold start, RL in two stages, the second on what is failed repeatedly."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.curriculum.mined import Mined
from assay.method import Method
from assay.objectives.policy_gradient import PolicyGradient
from assay.rewards.outcome.graded import Graded
from assay.select.unprobed import Unprobed
from assay.tasks.graph_questions import GraphQuestions

__all__ = ["GraphQuestions", "Mined", "fleming_r1"]


@paper(
    "S100",
    "Fleming-R1",
    arxiv="2509.15279",
    seams=["tasks", "curriculum", "reward", "credit", "select", "objective"],
    essentials={
        "questions about a masked entity of a connected part of a graph, with others of its type": (
            "test_a_question_has_one_answer_and_does_not_name_it"
        ),
        "rare entities are asked of more often": "test_rare_entities_are_asked_of_more_often",
        "A = r - mean(r), without a deviation": "test_the_worked_example",
        "correctness and form alone are rewarded": "test_correctness_and_form_are_rewarded",
        "the first stage ends on a plateau": "test_the_recipe_goes_through_its_stages",
        "items that are failed repeatedly become the priority, and are mined anew in each iteration": (
            "test_what_is_failed_repeatedly_is_mined"
        ),
        "failures of the first stage count": "test_the_recipe_goes_through_its_stages",
        "more responses to a prompt in the second stage": "test_the_recipe_goes_through_its_stages",
    },
    choices=(
        "an item is hard if 2 of the latest 3 looks at it had no right response; three of four tasks are hard ones",
        "entities are drawn with weight 1 / degree; form is worth 0.1",
        "the first stage asks all questions; the paper keeps those that a model calls difficult for the second",
        "questions and cold-start traces are written by a template, not by a model",
    ),
    lacks="a recipe at small size: the encyclopaedia's graph, refined traces of a teacher and its check of labels are "
    "not here",
)
def fleming_r1(
    pool: int = 64,
    steps: int = 20,
    looks: int = 3,
    threshold: int = 2,
    hard: float = 0.75,
    form: float = 0.1,
) -> Method:
    """REINFORCE with a group baseline on what is failed repeatedly; the last stage of ``assay train fleming``.

        L = -mean_i A_i log pi(y_i | x);   A_i = r_i - mean(r);   r = 1[right] + form 1[boxed]

    The first stage has ``curriculum = "uniform"`` and ends on a plateau of the reward; the second tries a pool of tasks
    again and again, and draws ``hard`` of each step from those without a right response in ``threshold`` of the latest
    ``looks``, those of the first stage counted.

    Args:
        pool, steps, looks, threshold, hard: see :class:`~assay.curriculum.mined.Mined`.
        form: what a box is worth.

    Source: Fleming-R1 (arXiv 2509.15279). Thresholds and proportions are not given.
    """
    return Method(
        reward=Graded(right=1 + form, wrong=form, unmarked=0.0, marks=("boxed",), unmarked_right=1.0),
        credit=GRPO(normalise=False),
        select=Unprobed(),
        objective=PolicyGradient(aggregation="sequence_sum"),
        curriculum={
            "name": "mined",
            "pool": pool,
            "steps": steps,
            "looks": looks,
            "threshold": threshold,
            "hard": hard,
        },
    )


ARM = {"name": "S100", "reward": "verdict"}

claims(
    Claim(
        paper="S100",
        text="At equal rollouts, asking mostly what was failed repeatedly solves more of the hard problems than asking "
        "all alike.",
        setting="problems",
        arms={
            "all": {**ARM, "curriculum": "uniform"},
            "mined": {**ARM, "options": {"pool": 18, "steps": 5}},
        },
        better="mined",
        baseline="all",
        measure="hard/area",
        options={
            "kinds": ((6, 1.0, 0.0, 2.0), (6, 1.0, 0.0, -1.0), (6, 1.0, 0.0, -3.0)),
            "steps": 30,
            "rollouts": 3600,
        },
        sweep={"lr": (1.0, 3.0, 10.0)},
        unequal="training ends with the step that passes 3,600 responses, and the measure is a mean over them",
    )
)
