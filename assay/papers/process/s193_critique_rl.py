"""S193: a critic learns to judge first, then to help, without forgetting to judge."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.rloo import RLOO
from assay.method import Method
from assay.rewards.judges.critique_refined import TEMPLATE, CritiqueRefined, Refined
from assay.rewards.spec import reward_of


@paper(
    "S193",
    "Critique-RL",
    arxiv="2510.24320",
    seams=["verify", "reward", "credit"],
    essentials={
        "the critique ends in a verdict on the solution, which is compared with what it is": (
            "test_the_line_that_is_read"
        ),
        "stage I: 1 for a right judgement, -1 for a wrong one or none": "test_stage_one_pays_the_judgement",
        "stage II: a frozen actor refines by the critique, and what comes of it pays": "test_the_worked_example",
        "refine, delta and correct": "test_the_three_modes",
        "a wrong judgement earns -1 whatever the refinement, a right one 0.2 more": (
            "test_a_wrong_judgement_is_not_refined"
        ),
        "leave-one-out over the critiques of one solution, the divergence in the reward": "test_leave_one_out",
        "solutions mended and spoiled are told apart": "test_the_worked_example",
        "both stages in one run, with critiques of stored solutions": "test_it_trains_on_stored_solutions",
    },
    choices=(
        "the divergence is from what the run began with; of the critic after stage I in a second run from there",
        "a critique without a reward leaves the update where the actor failed",
        "the words of the actor's prompt, and that it is one message",
        "critiques are compared with their divergence in the reward, and advantages are left as they are; the released "
        "code takes the divergence from each token on off afterwards, and whitens over the batch",
    ),
)
def critique_rl(
    actor: Any = None,
    first: int = 500,
    mode: Refined = "refine",
    bonus: float = 0.2,
    max_tokens: int = 1024,
    verify: Any = "math",
    template: str = TEMPLATE,
    kl_weight: float = 0.01,
) -> Method:
    """RLOO of a critic, by its judgement for ``first`` steps and by what a frozen actor makes of its critiques then.

        I:  R = d;   II: R = -1 where d = -1, else R_ref + bonus;   - kl_weight log pi / pi_ref of each token
        d = 1 if "Correctness of the final answer: Correct" or "Wrong" is what the solution is, else -1

    Tasks are those of source ``critiques``, (question, solution) -> True or False, with ``template =
    assay.verify.critique.LINE_TEMPLATE`` or another that asks for the line (or a box); ``rollout.group`` is the number
    of critiques of one solution (4 in the paper).

    Args:
        actor, first, mode, bonus, max_tokens, verify, template: see
            :class:`assay.rewards.judges.critique_refined.CritiqueRefined`.
        kl_weight: of the divergence in the reward.

    Source: Critique-RL (arXiv 2510.24320) and its implementation.
    """
    critique = CritiqueRefined(actor, first, mode, bonus, max_tokens, verify, template)
    reward = reward_of([critique, {"name": "kl", "weight": kl_weight}]) if kl_weight else critique
    return Method(reward=reward, credit=RLOO())


claims(
    Claim(
        paper="S193",
        text="A critic that first learns to judge, and is held to it, tells right from wrong better than one that is "
        "paid for refinements alone.",
        setting="critic",
        arms={
            "refinement alone": {"name": "S193", "options": {"first": 0, "bonus": 0.0}, "judged": False},
            "stage II alone": {"name": "S193", "options": {"first": 0}},
            "both stages": {"name": "S193", "options": {"first": 75}},
        },
        better="both stages",
        baseline="refinement alone",
        measure="balanced",
        sweep={"lr": (1.0, 3.0, 10.0)},
    )
)
