"""S016: the verifier is a noisy channel; two ways to undo its errors in the policy gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reinforce import Reinforce
from assay.credit.rloo import RLOO
from assay.method import Method
from assay.rewards.outcome.appeals import Appeals
from assay.rewards.outcome.noise import NoiseCorrected


@paper(
    "S016",
    "PGBC and PGFC",
    arxiv="2510.00915",
    seams=["reward", "credit"],
    essentials={
        "backward correction: (V - rho0) / (1 - rho0 - rho1), whose mean given the truth is the truth": (
            "test_conditional_means_are_the_truth_and_a_multiple_of_it"
        ),
        "forward correction: weights rho1 and rho1 - 1, which need the rate of false negatives alone": (
            "test_worked_numbers"
        ),
        "backward: the expected update is the clean gradient, where the raw verdict prefers the wrong arm": (
            "test_rates_of_the_check_that_decided_make_the_gradient_right_where_the_raw_verdict_prefers_the_wrong_arm"
        ),
        "forward: the expected update is along the clean gradient": (
            "test_forward_points_along_the_gradient_when_rates_are_shared"
        ),
        "appeals: a language model rechecks rejected responses and the rate is estimated online": (
            "test_appeals_estimate_the_rate_of_false_negatives"
        ),
        "both enter a group relative pipeline without being undone by its standardisation": (
            "test_standardisation_undoes_the_correction_and_the_mean_alone_leaves_a_factor"
        ),
    },
    choices=(
        "the scale of the advantages is 1, one of those the paper allows; 1 - rho1 would fit the clean gradient's",
        "rates without an audit: 0.1 and 0.2, the paper's synthetic channel; measured ones are taken as at most 0.49",
        "appeals: a rate for each category of tasks, the paper has one; it starts as the first batch's",
        "appeals: the judge is any engine, shown question, reference and the response's end; the paper has TinyV",
    ),
)
def noisy_verifier(
    correction: Literal["backward", "forward"] = "forward",
    false_positive: float | None = None,
    false_negative: float = 0.2,
    by: Mapping[str, tuple[float, float]] | None = None,
    record: str | None = None,
    judge: Any = None,
    share: float = 0.1,
    decay: float = 0.9,
) -> Method:
    """GRPO with the verdict V in {0, 1} corrected for the rates at which the verifier errs, and no division by std.

        rho0 = P(V=1 | wrong), rho1 = P(V=0 | right)
        backward (PGBC): R = (V - rho0) / (1 - rho0 - rho1),       A_i = R_i - mean_{j != i} R_j
        forward (PGFC):  R = rho1 if V = 1, rho1 - 1 if V = 0,      A_i = R_i

    E[R | truth] is the truth for ``backward``, which keeps any score-function estimator unbiased, and (1 - rho0 - rho1)
    (truth - 1) for ``forward``: a positive multiple of the truth less a constant, with less variance, and rho1 is
    all it needs. GRPO's standardisation would undo both: within a group whose samples share their rates they are affine
    in V. Where all samples share their rates, ``backward`` is the uncorrected gradient times a constant; it changes the
    direction where rates differ between prompts, categories or checks of a composed verifier.

    Args:
        correction: which of the two.
        false_positive, false_negative: rho0 and rho1; without ``false_positive`` 0.1, or 0 with a ``judge``.
        by: (rho0, rho1) by name of a check, task category or kind.
        record: file that an audit of the verifier left: its measured rates, overall and by category.
        judge: an engine (or its specification) that rechecks rejected responses, from which rho1 is estimated while
            training; accepted ones count as right.
        share, decay: probability that a rejected response is rechecked; of the estimate's memory per step.

    Source: "Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers" (arXiv 2510.00915, v4,
    appendix B). The default rates are those of a synthetic channel: give measured ones.
    """
    if false_positive is None:
        false_positive = 0.1 if judge is None else 0.0
    reward = NoiseCorrected(
        correction=correction,
        false_positive=false_positive,
        false_negative=false_negative,
        by=by or {},
        record=record,
        appeals=None if judge is None else Appeals(judge, share=share, decay=decay),
    )
    return Method(reward=reward, credit=RLOO() if correction == "backward" else Reinforce())


claims(
    Claim(
        paper="S016",
        text="Where the verifier misses half of the right answers of the better arm, corrected verdicts lead to a "
        "better policy than those it gives.",
        setting="noisy_bandit",
        evidence="construction",
        arms={
            "backward": {
                "name": "S016",
                "reward": {"correction": "backward", "by": (RATES := {"arm 0": (0.0, 0.5), "arm 1": (0.0, 0.0)})},
                "credit": "rloo",
            },
            "forward": {"name": "S016", "reward": {"by": RATES}},
            "uncorrected": {"name": "grpo", "credit": "rloo"},
            "grpo": {"name": "grpo"},
        },
        better="backward",
        baseline="uncorrected",
        measure="final",
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
    )
)
