"""S159: after each response that is not good enough a hint, another try, and learning from that with and without it."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rollout.surgery.base import TrainUnder
from assay.rollout.surgery.hints import HINT
from assay.rollout.surgery.retried import WRITE


@paper(
    "S159",
    "DITTO",
    arxiv="2605.20506",
    seams=["verify", "rollout", "select", "credit"],
    essentials={
        "a hint after each response below the task's level of success": "test_who_tries_again",
        "written with the reference in sight, which it must not state": "test_hints_do_not_state_the_reference",
        "the second try is learned from twice, without the hint and with it": "test_three_samples",
        "two advantage groups: first tries with plain copies, hinted tries alone": "test_the_worked_example",
        "log-probabilities recomputed under the prompt that is trained: ratios begin at 1": "test_ratios_begin_at_one",
        "all right: plain GRPO, and nobody is asked": "test_without_hints_it_is_grpo",
        "nobody is asked in evaluations": "test_a_run_tries_again",
        "plain copies carry what hints bring into answers without them": "test_plain_copies_count",
    },
    choices=(
        "a second try alone in its group has advantage 0; in the authors' code it is its reward",
        "both losses are one, over the tokens of all samples",
        "a hint that states the reference as a word of its own is dropped; the authors leave that to the judge",
        "a second try is shown the hint alone; where likeness to a person is judged the authors show the reference "
        "too, as ``template`` can",
        "hints from the first step to the last; for two of the authors' tasks they end at step 90 or 100",
    ),
)
def ditto(
    hints: Any = "feedback",
    below: float = 1.0,
    train: TrainUnder = "both",
    template: str = HINT,
    write: str = WRITE,
    max_tokens: int = 512,
) -> Method:
    """GRPO on first tries, and on second ones under a hint, which are copied to the prompt without it.

        y0_i ~ pi(. | x);   y1_i ~ pi(. | x, h_i) where R(y0_i) < below
        group x: all y0 and the copies (x, y1);   group (x, hint): the (x + h, y1)
        A = (R - mean) / std in each group;   rho = pi(y | prompt) / pi_old(y | the same prompt)

    Args:
        hints, below, train, template, write, max_tokens: see :class:`~assay.rollout.surgery.retried.Retried`.

    Source: DITTO (arXiv 2605.20506) and its authors' code.
    """
    rollout = {
        "name": "retried",
        "hints": hints,
        "below": below,
        "train": train,
        "template": template,
        "write": write,
        "max_tokens": max_tokens,
    }
    objective = ClippedSurrogate(clip_low=0.2, clip_high=0.28, dual_clip=10.0, correction="recompute")
    return Method(rollout=rollout, credit=GRPO(), objective=objective)


claims(
    Claim(
        paper="S159",
        text="A policy that learns from second tries as if they had been written without their hints is right without "
        "hints more often, over training, than one that learns from them under their hints alone.",
        setting="hinted_chains",
        arms={
            "ditto": {"name": "S159"},
            "hinted": {"name": "S159", "options": {"train": "hinted"}},
        },
        better="ditto",
        baseline="hinted",
        measure="area",
        options={"graded": True},
        sweep={"lr": (5.0, 25.0, 125.0)},
    )
)
