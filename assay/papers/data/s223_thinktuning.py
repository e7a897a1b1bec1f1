"""S223: a teacher of the same size goes on where some responses ended, and what it adds is learned with a weight."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.off_policy.advantage_shaped import AdvantageShaped
from assay.rollout.surgery.commented import ASK, Schedule


@paper(
    "S223",
    "ThinkTuning",
    arxiv="2508.07616",
    seams=["rollout", "verify", "objective"],
    essentials={
        "at least one response of a prompt, drawn at random from those that ended": "test_how_many_are_commented",
        "the teacher reads question and response, not the reference, and is greedy": "test_what_the_teacher_sees",
        "the teacher speaks in the first person and is shown four ways: to agree, to doubt, to consult, to check": (
            "test_what_the_teacher_is_shown"
        ),
        "a reply without reason and phrase leaves the response as it was": "test_malformed_comments",
        "attempt, reason, phrase and end are one response, judged anew": "test_the_augmented_response",
        "the weight by the advantage, and its exception": "test_the_worked_weights",
        "others: the clipped ratio to recomputed log-probabilities": "test_without_a_teacher_it_is_grpo",
        "the share falls, and the teacher is switched off": "test_the_schedule",
        "it acts in training": "test_a_run_is_commented",
        "what the teacher does is done without it": "test_the_teachers_habit_is_taken_on",
    },
    choices=(
        "shares 0.1 to 0.01 over a third of the run, off at 0.06, as in the released script",
        "the shift falls and rises with the advantage, as is meant; the released constant is an option",
        "the words that ask the teacher and its four examples; they are one text, of a conversation in the recipe",
        "the loss has its third bound, 3, after the teacher is off too; the recipe's drops it then",
    ),
)
def thinktuning(
    teacher: Any,
    first: float = 0.1,
    last: float = 0.01,
    schedule: Schedule = "linear",
    over: float = 1 / 3,
    least: float = 0.05,
    template: str = ASK,
    max_tokens: int = 512,
    shift: float = 1e-3,
    scale: float = 4.0,
    as_released: bool = False,
) -> Method:
    """GRPO on groups of which some responses go on with a teacher's comment.

        commented responses:  l = -A p / sg[p + shift clip(A / scale, -1, 1)]
        where A < 0 and p < 0.01, and others:  l = -min(rho A, clip(rho) A), at most -3 A where A < 0
        A_i = (R_i - mean R) / std R over the whole group

    Args:
        teacher: an engine, or a table that specifies one: the base model, with weights that do not change.
        first, last, schedule, over, least, template, max_tokens: see
            :class:`~assay.rollout.surgery.commented.Commented`.
        shift, scale, as_released: see :class:`~assay.objectives.off_policy.advantage_shaped.AdvantageShaped`.

    Source: ThinkTuning (arXiv 2508.07616) and its authors' recipe.
    """
    rollout = {
        "name": "commented",
        "teacher": teacher,
        "first": first,
        "last": last,
        "schedule": schedule,
        "over": over,
        "least": least,
        "template": template,
        "max_tokens": max_tokens,
    }
    objective = AdvantageShaped(
        shift=shift, scale=scale, as_released=as_released, dual_clip=3.0, correction="recompute"
    )
    return Method(rollout=rollout, credit=GRPO(), objective=objective)


claims(
    Claim(
        paper="S223",
        text="A policy some of whose responses a teacher went on with, checking them again, comes to check its "
        "answers by itself, also after the teacher is switched off; GRPO's does not.",
        setting="second_looks",
        arms={"thinktuning": {"name": "S223", "options": {"teacher": "here"}}, "grpo": {"name": "grpo"}},
        better="thinktuning",
        baseline="grpo",
        measure="checks",
        sweep={"lr": (3.0, 10.0, 30.0)},
    )
)
