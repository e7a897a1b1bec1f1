"""S031: self-distillation from what is said of one's own responses: the policy reads them again with hindsight."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.second_view import Distilled
from assay.ops.divergence import Rest
from assay.rollout.reread.prompts import FEEDBACK, SOLUTION, TEMPLATE, Hindsight
from assay.select.shown import Shown
from assay.signals.reread.second_view import Teacher, Tokens, second_view


@paper(
    "S031",
    "SDPO",
    arxiv="2601.20802",
    seams=["select", "objective", "inference"],
    essentials={
        "a sibling's solution is shown, the first of the group and never the response itself": (
            "test_whose_solution_is_shown"
        ),
        "feedback is shown where there is no solution, thinking is stripped": "test_what_the_teacher_reads",
        "the student's likeliest tokens and a tail under both views": "test_a_tail_bucket_by_hand",
        "forward, reverse and Jensen-Shannon divergences": "test_divergences_by_hand",
        "the gradient on the logits is that of the divergence": "test_the_gradient_is_that_of_the_divergence",
        "the weight of an older policy's token is capped": "test_weights_of_an_older_policy_are_capped",
        "an averaged teacher, updated once a step": "test_the_averaged_teacher_follows_after_every_step",
        "a teacher in a trust region: logits between the first policy's and the current one's": (
            "test_the_trust_region_is_between_two_policies_logits"
        ),
        "responses with nothing to show do not count": "test_responses_with_nothing_to_show_do_not_count",
        "at test time a single hard task until the first success, a step on what was said of each batch of attempts": (
            "test_a_hard_task_until_the_first_success"
        ),
        "it trains a language model, and goes on from a checkpoint": "test_it_trains_a_language_model",
    },
    choices=(
        "the templates",
        "the student's likeliest tokens are those before the step's first update",
        "feedback on a response that is a solution is not shown",
    ),
)
def sdpo(
    k: int = 100,
    alpha: float = 0.5,
    rest: Rest = "bucket",
    weight_cap: float | None = 2.0,
    teacher: Teacher = "averaged",
    rate: float = 0.05,
    share: float = 0.05,
    tokens: Tokens = "likeliest",
    template: str = TEMPLATE,
    solution: str = SOLUTION,
    feedback: str = FEEDBACK,
    when: Literal["alone", "also"] = "alone",
    threshold: float = 0.5,
    own: bool = False,
) -> Method:
    """Every response is read again by a teacher who sees a sibling's solution, or what the verifier said of it.

        L = 1/|M| sum_{(i, t) in M} w_it D_alpha(pi(. | x_i, y_i<t) || sg q(. | x_i + hindsight, y_i<t))

    M are the tokens of responses that there is something to show of. The teacher q is a running average of the policy.
    D_alpha is on the student's ``k`` likeliest tokens and the rest as one more. Rewards say only which responses are
    solutions; there is no baseline, no clip and no divergence from a reference. At test time strategy ``until_solved``
    takes such steps on one task until an attempt is right.

    Args:
        k: tokens.
        alpha: 1/2 for Jensen-Shannon, 1 for the reverse divergence, as where feedback is rich, 0 for the forward.
        rest: ``bucket``, or ``renormalise`` the k probabilities.
        weight_cap: of w = pi / pi_old.
        teacher: ``averaged``, ``trust_region``, ``current`` or ``initial``.
        rate: of the average, per step.
        share: of the current policy's logits in ``trust_region``.
        tokens: ``likeliest``; or ``own``, the sampled token alone, with alpha 1.
        template, solution, feedback, when, threshold, own: what is shown, see
            :class:`assay.rollout.reread.prompts.Hindsight`.

    Source: SDPO (arXiv 2601.20802), equations 1 and 3, and its released configuration.
    """
    hindsight = Hindsight(template, solution, feedback, when, threshold, own)
    view = second_view(hindsight, teacher, k, tokens, share, rate)
    return Method(select=Shown(view), objective=Distilled(view, alpha, rest, weight_cap))


REMARKS: dict[str, Any] = {"template": "{question} {shown}", "feedback": "{feedback}", "solution": "right {solution}"}
"""How remarks are written in setting ``feedback``."""

claims(
    Claim(
        paper="S031",
        text="Where nearly every response is wrong and the verifier names the wrong decision, self-distillation with "
        "hindsight learns what GRPO, told only that it is wrong, does not.",
        setting="feedback",
        arms={
            "grpo": {"name": "grpo"},
            "sdpo": {"name": "S031", "options": {**REMARKS, "alpha": 1.0, "k": 20}},
        },
        better="sdpo",
        baseline="grpo",
        measure="area",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    ),
)
