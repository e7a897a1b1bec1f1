"""S165: the outcome's advantage, and beside it what each segment adds to the probability of the right answer."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.credit.segment_gain import SegmentGain
from assay.method import Method
from assay.signals.entropy_steps import EntropySteps
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.steps import Steps


@paper(
    "S165",
    "GRPO-VPS",
    arxiv="2604.20659",
    seams=["credit"],
    essentials={
        "a response is cut where its tokens' entropy is high, about four such tokens a segment": (
            "test_segments_hold_equal_numbers_of_candidates"
        ),
        "C_k: the policy's probability of the right answer after segment k, C_0 before any": (
            "test_the_probes_in_a_language_model"
        ),
        "A = R - mean R + 1.2 (C_k - C_k-1), without a standard deviation": "test_the_worked_example",
        "the process rewards of a response add up to C_M - C_0": (
            "test_the_differences_add_up_to_what_the_reasoning_adds"
        ),
        "groups that are all right or all wrong learn from the process": "test_the_worked_example",
        "the policy gradient is the outcome's and that of the process rewards": (
            "test_the_expected_gradient_is_that_of_outcome_and_process"
        ),
    },
    choices=(
        "the share of tokens that count as of high entropy: a fifth",
        "the probability of the whole reference; option by = 'avg_prob' takes the mean over its tokens",
        "the answer is probed between <answer> tags, or where the task's verifier reads it",
    ),
)
def grpo_vps(
    alpha: float = 1.2,
    steps: EntropySteps | Steps = EntropySteps(),  # noqa: B008  # frozen
    by: Literal["prob", "avg_prob"] = "prob",
    open: str | None = None,
    close: str = "</answer>",
) -> Method:
    """GRPO without division by the standard deviation, and a process term from the policy itself.

        A_it = R_i - mean_g R + alpha (C_k - C_{k-1})   for tokens t of segment k,   C_k = pi(y* | x, z_<=k)

    y* is the reference, written after segment k between ``open`` and ``close``; C is a constant. Segments begin at
    tokens of high entropy, each with about four of them. Groups whose responses are all right, or all wrong, still
    learn from the differences. They add up to C_M - C_0 over a response. All probes of a response are one pass.

    Args:
        alpha: 0 is GRPO without the division.
        steps: how responses are cut, see :class:`~assay.signals.entropy_steps.EntropySteps`; a table with ``by`` cuts
            by text or length.
        by: C: the probability of the whole reference (for short ones), or the mean over its tokens.
        open, close: what answers stand between; without ``open``, where the task's verifier reads them.

    Source: GRPO-VPS (arXiv 2604.20659). The share of tokens of high entropy, a fifth, is a choice.
    """
    likelihood = ReferenceLikelihood("steps", open, close, required=False, steps=steps, name="segment_likelihood")
    return Method(credit=SegmentGain(GRPO(normalise=False), alpha, by, likelihood))


claims(
    Claim(
        paper="S165",
        text="With credit for what each step adds to the probability of the reference, right answers come sooner than "
        "with the outcome alone.",
        setting="references",
        options={"branching": 3, "depth": 3, "length": 2},
        arms={
            "outcome": {"name": "grpo", "credit": {"name": "grpo", "normalise": False}},
            "vps": {
                "name": "S165",
                "credit": {
                    "name": "segment_gain",
                    "likelihood": {
                        "after": "steps",
                        "open": "=",
                        "close": "",
                        "required": False,
                        "steps": {"by": "fixed", "size": 1},
                        "name": "segment_likelihood",
                    },
                },
            },
        },
        better="vps",
        baseline="outcome",
        measure="right/area",
        sweep={"lr": (0.3, 1.0, 3.0)},
    )
)
