"""S066: a generator and a verifier of its steps, both trained by RL, in turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.scaled.class_balanced import ClassBalanced
from assay.credit.step_reward import StepReward
from assay.method import Method
from assay.method.partner import Partner, Turns
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.process.partner_steps import PartnerSteps
from assay.rewards.spec import reward_of
from assay.signals.block_steps import BlockSteps
from assay.signals.partner_marks import PartnerMarks
from assay.signals.steps import Steps
from assay.tasks.solutions.verifications import Verifications
from assay.verify.verification import TEMPLATE, Form, VerificationVerdict

FORM_WEIGHT = 0.8


@paper(
    "S066",
    "Tango",
    arxiv="2505.15034",
    seams=["verify", "reward", "credit", "policies"],
    essentials={
        "a second language model, the verifier, with weights, optimiser and reference of its own, in turns": (
            "test_whose_turn_it_is"
        ),
        "the verifier earns 1 for the right final verdict and 0.8 for its form; no step has a label": (
            "test_what_a_verification_earns"
        ),
        "the rarer class of solutions weighs more in the verifier's loss, by running counts": "test_class_weights",
        "one answer and 5 verifications in the verifier's turn, 5 answers of one each in the generator's": (
            "test_both_learn_in_their_turns_and_not_in_each_others"
        ),
        "step verdicts by K, compared over the group's steps and summed from each on, mixed with the outcome": (
            "test_the_worked_example"
        ),
        "the mix decays over the generator's own updates": "test_the_mix_decays_over_the_generators_updates",
        "a verification of another number of steps gives no step rewards": (
            "test_marks_that_do_not_fit_leave_the_outcome"
        ),
        "the verifier sees the solution as it was written, with its answer": "test_the_verifier_sees_the_answer",
        "the verifier begins as the base model, after no warm-up of the generator's": (
            "test_the_verifier_begins_as_the_base_model"
        ),
        "killed in the middle of a cycle, it goes on bit for bit": "test_killed_in_the_middle_of_a_cycle",
    },
    choices=(
        "the words of the verifier's question; a compact form of single letters for small models",
        "a verification is held to the number of steps of every solution that has any, also of one without its answer "
        "in a box",
        "the generator's own format is not rewarded: its warm-up teaches it",
    ),
)
def tango(
    steps: Steps = BlockSteps(),  # noqa: B008  # frozen
    template: str = TEMPLATE,
    form: Form = "tagged",
    weight: float = 0.1,
    final: float = 1e-3,
    warm_up: int = 40,
    every: int = 3,
    updates: int = 1,
    verifications: int = 5,
    verifier: Mapping[str, Any] | None = None,
    verifier_tokens: int = 4096,
    verifier_lr: float | None = None,
    balanced: bool = True,
    decay: float = 0.8,
    kl_weight: float = 1e-3,
    entropy_weight: float = 1e-3,
) -> Method:
    """GRPO of a generator whose steps a verifier marks, and of that verifier by its final verdicts, in turns.

        generator: A_it = (1 - a) A_i^outcome + a sum_{steps k of i that end at t or later} norm(v_ik / K_i)
                   a = max(final, weight exp(-n ln(weight / final) / N)) after n of the generator's N updates
        verifier:  R = 1[final verdict = verdict] + 0.8 form,  advantages times c(y), y whether the solution is right

    The verdict of the outcome is the ground truth's; the verifier's final verdict is no reward of the generator's. The
    first ``warm_up`` steps of the run are the verifier's, then ``every`` of the generator's and ``updates`` of the
    verifier's in turn. ``rollout.group`` is that of the generator (5 in the paper).

    Args:
        steps: how solutions are cut: blocks ``<step>...</step>``, or any other.
        template, form: what the verifier is asked, and how its reply is read, see
            :class:`assay.tasks.solutions.verifications.Verifications` and :func:`assay.verify.verification.read`.
        weight, final: a, at first and in the end.
        warm_up, every, updates: see above.
        verifications: of each solution in a step of the verifier's.
        verifier: changes to the run's ``[model]``, such as ``{source = ...}``.
        verifier_tokens, verifier_lr: of the verifier; the generator's rate where that is left out.
        balanced, decay: see :class:`assay.credit.scaled.class_balanced.ClassBalanced`.
        kl_weight, entropy_weight: of both objectives.

    Source: RL Tango (arXiv 2505.15034) and its authors' code.
    """
    marks = PartnerMarks(steps, Verifications(template), form, verifier_tokens)
    objective = ClippedSurrogate(kl_weight=kl_weight, entropy_weight=entropy_weight)
    judging = Method(
        reward=reward_of(["verdict", {"name": "part", "part": "form", "missing": 0.0, "weight": FORM_WEIGHT}]),
        credit=ClassBalanced("grpo", decay) if balanced else Method().credit,
        objective=objective,
    )
    partner = Partner(
        judging,
        marks.tasks,
        VerificationVerdict(form),
        Turns(warm_up, every, updates),
        group=verifications,
        model=verifier,
        max_tokens=verifier_tokens,
        lr=verifier_lr,
    )
    end = final if final < weight else None  # a weight that is no more does not decay
    credit = StepReward(
        steps, "suffix_sum", singleton="keep_raw", outcome="grpo", weight=weight, convex=True, final=end
    )
    return Method(reward=PartnerSteps(marks), credit=credit, objective=objective, partner=partner)


claims(
    Claim(
        paper="S066",
        text="Class weights keep a verifier of mostly wrong solutions from calling everything wrong.",
        setting="verifier",
        arms={
            "plain": {"name": "grpo"},
            "class weights": {"name": "grpo", "credit": {"name": "class_balanced"}},
        },
        better="class weights",
        baseline="plain",
        measure="recall",
        sweep={"lr": (0.3, 1.0, 3.0)},
        evidence="mechanism",
    )
)
