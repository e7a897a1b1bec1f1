"""S037: the exact gradient of the probability of the reference answer, without a verifier."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reasoning import ReasoningOnly
from assay.credit.rloo import RLOO
from assay.method import Method
from assay.objectives.reference import ReferenceGradient
from assay.rewards.likelihood.reference import LikelihoodReward
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.reasoning import Sections

Coefficient = Literal["gradient", "advantage", "one"]


@paper(
    "S037",
    "VeriFree",
    arxiv="2505.21493",
    seams=["reward", "credit", "objective"],
    essentials={
        "R_i is the probability of y* after the response's own reasoning, its closing tokens included": (
            "test_the_reward_is_the_probability_of_the_reference_after_the_reasoning"
        ),
        "each response is held against the mean of its siblings (leave-one-out)": "test_the_second_terms_coefficient",
        "the gradient is that of E_z[pi(y* | x, z)], by a second term R_i grad log pi(y* | x, z_i)": (
            "test_the_gradient_is_that_of_the_probability_of_the_reference"
        ),
        "the gradient varies less than that of a verifier of sampled answers": (
            "test_it_varies_less_than_a_verifier_of_sampled_answers"
        ),
        "what is learned of a response is its reasoning, not the answer that it gives": (
            "test_nothing_is_learned_from_the_answer_a_response_gives"
        ),
        "a response without an answer, or cut off before its end, is worth nothing": (
            "test_a_response_that_is_cut_off_is_worth_nothing"
        ),
        "training makes the reference answer likelier, no verdict read": "test_a_run_makes_the_reference_likelier",
    },
    choices=(
        "without open the answer is where the task's verifier reads it; the paper opens it with a tag and boxes y*",
        "closed = true: the tokens of the closing tag count for the probability of y*, as in the authors' code",
        "of several opening tags the last counts, where the authors' code takes the first",
    ),
)
def verifree(
    open: str | None = None,
    close: str = "</answer>",
    closed: bool = True,
    coefficient: Coefficient = "gradient",
    weight: float = 1.0,
) -> Method:
    """GRPO with the probability of the reference answer after the response's reasoning in place of a verifier.

        R_i = exp(sum_j l_ij),  l_ij = log pi(y*_j | x, z_i, y*_<j),   A_i = R_i - mean_{j != i} R_j
        L = 1/B sum_i [ -A_i sum_{t in z} log pi(z_it) - weight R_i sum_j log pi(y*_j | x, z_i, y*_<j) ]

    A and R are constants. That is the exact gradient of E_z[pi(y* | x, z)], the expected reward of a verifier that
    takes y* alone for right, with less variance than if the answer were sampled too. z ends with the opening of
    the answer; the answer a response gives itself is not learned from. A response that opens none, or that a limit cuts
    off before it is closed, has R = 0. Sums over tokens, no length in the denominator, no ratio, no clip, no
    divergence: one update per batch.

    Args:
        open, close: what answers stand between; y* is put in after ``open``, which is taken as it is written here.
            Without ``open`` y* takes the place of the answer that the task's verifier reads.
        closed: the likelihood includes the tokens of ``close``.
        coefficient: of the second term: ``gradient`` R_i, ``advantage`` A_i, ``one`` 1.
        weight: of the second term.

    Source: VeriFree (arXiv 2505.21493) and its implementation, which takes all that stands after "<answer" for y*.
    """
    likelihood = ReferenceLikelihood("reasoning", open, close, closed, unfinished=False)
    return Method(
        reward=LikelihoodReward("prob", likelihood),
        credit=ReasoningOnly(RLOO(), Sections(open, close, unfinished=False)),
        objective=ReferenceGradient(by="prob", coefficient=coefficient, weight=weight, likelihood=likelihood),
    )


LIKELIHOOD = {"open": "=", "close": ""}

claims(
    Claim(
        paper="S037",
        text="Where one string alone is right, the likelihood of the reference with its exact gradient leads to right "
        "answers sooner than a verifier of sampled ones, at equal responses.",
        setting="references",
        arms={
            "verifier": {
                "name": "grpo",
                "credit": "rloo",
                "objective": {"name": "reinforce", "aggregation": "sequence_sum"},
            },
            "verifree": {
                "name": "S037",
                "reward": {"name": "likelihood", "likelihood": LIKELIHOOD},
                "credit": {"name": "reasoning", "inner": "rloo", "sections": LIKELIHOOD},
                "objective": {"name": "reference", "likelihood": LIKELIHOOD},
            },
        },
        better="verifree",
        baseline="verifier",
        measure="right/area",
        sweep={"lr": (0.3, 1.0, 3.0)},
    )
)
