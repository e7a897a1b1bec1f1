"""S033: a step of thinking is worth what it adds to the accuracy of an answer given right after it."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reinforce_pp import ReinforcePlusPlus
from assay.method import Method
from assay.rewards.process.step_gains import StepGains
from assay.signals.pattern_steps import PatternSteps
from assay.signals.steps import Steps

WORDS = (
    r"(?i:\b(?:but|wait|however|alternatively|hmm+|hold on|looking back|let me double-check|similarly|seems solid|"
    r"that's correct, but|that seems right))\b|\bSo\b"
)
"""Words that open a new thought."""


@paper(
    "S033",
    "VSRM",
    arxiv="2508.10293",
    seams=["rollout", "reward", "credit"],
    essentials={
        "thoughts are cut before the sentence with a word that opens a new one": (
            "test_a_new_thought_begins_after_the_sentence_before_its_word"
        ),
        "after each step thinking is ended by force and answers are sampled and judged": (
            "test_what_is_asked_after_each_step"
        ),
        "a step is worth the change in accuracy; one without effect a discounted share of the next change": (
            "test_the_worked_example"
        ),
        "steps after the last change earn nothing, those before a loss pay for it": (
            "test_checks_earn_nothing_and_those_before_a_loss_pay_for_it"
        ),
        "rewards by token are summed from each token on and whitened over the batch": (
            "test_advantages_are_whitened_returns"
        ),
        "right answers without checks are learned": "test_it_acts_in_training",
    },
    choices=(
        "REINFORCE++ rather than the paper's PPO; credit gae with a critic takes the same rewards",
        "a response without the form is worth 0 beside its verdict; about -10 in the authors' code",
        "a step's reward stands on its last token; on its first, and so with the steps before it, in the authors' code",
    ),
)
def vsrm(
    steps: Steps | PatternSteps = PatternSteps(pattern=WORDS, where="sentence", first=1000, apart=400),  # noqa: B008
    probes: int = 5,
    probe_tokens: int = 768,
    start: bool = False,
    discount: float = 0.7,
    lookahead: int = 4,
    threshold: float = 1e-5,
    weight: float = 1.0,
    unclosed: float = 0.0,
    end: str | None = None,
) -> Method:
    """Returns by token in place of GRPO's one advantage, of the verdict and of what each step changes in accuracy.

        A_k = mean score of ``probes`` answers sampled after steps 1 to k, thinking ended by force;  d_k = A_k - A_{k-1}
        r_k = d_k if |d_k| >= threshold, else discount^q d_{k+q}, q <= lookahead the least with |d_{k+q}| >= threshold,
              else 0;  on the last token of step k;  the verdict's score on the last token of the response
        A_it = sum_{u >= t} r_iu, standardised over all tokens of the batch

    A step without effect takes on part of the next change, for better or worse; checks after the last change earn
    nothing. Note that the rewards of a response add up to more where such steps put a gain off.

    Thoughts are cut after the sentence before a word that opens a new one, such as "wait" or "however". The answers are
    not learned from. Rewards by token need a credit that reads them by token: ``reinforce++`` here, or ``gae`` with a
    critic.

    Args:
        steps: how thoughts are cut; here not in the first 1000 characters, nor within 400 of the last cut.
        probes, probe_tokens: answers after each step, and their longest.
        start: probe before the first step too, so that it can earn something.
        discount, lookahead, threshold, weight, unclosed: see :class:`~assay.rewards.process.step_gains.StepGains`.
        end: ends thinking; ``</think>`` where that is a token, else nothing: an answer is then what follows the step.

    Source: VSRM (arXiv 2508.10293); numbers, words and lookahead from its implementation, which rewards a response
    without the form (closed thought, boxed answer) with about -10 (``unclosed`` is 0 here), and uses PPO.
    """
    probed: dict[str, Any] = {"probes": probes, "probe_tokens": probe_tokens, "start": start, "end": end}
    return Method(
        rollout={"name": "probed", "steps": steps, "forced": "{end}", "header": "", **probed},
        reward=StepGains(weight, 1.0, discount, lookahead, threshold, unclosed),
        credit=ReinforcePlusPlus(),
    )


ONE = {
    "steps": {"by": "fixed", "size": 1},
    "start": True,
    "end": "0",
    "judged": "response",
    "probes": 2,
    "probe_tokens": 1,
}

claims(
    Claim(
        paper="S033",
        text="With a reward for what each step changes in the accuracy of a forced answer, right answers come sooner "
        "without checks after the solution than with the outcome alone.",
        setting="overthinking",
        unequal="both are probed after every step of a response, and choose how many steps they take",
        arms={
            "outcome": {"name": "S033", "rollout": ONE, "reward": {"weight": 0.0}},
            "vsrm": {"name": "S033", "rollout": ONE},
        },
        better="vsrm",
        baseline="outcome",
        measure="prompt/area",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    )
)
