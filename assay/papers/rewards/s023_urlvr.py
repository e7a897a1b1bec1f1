"""S023: rewards without references sharpen what a policy believes, right or wrong; and how to see it collapse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.base import RewardPart
from assay.rewards.likelihood.intrinsic import Certainty, Frequency
from assay.rewards.likelihood.self_verdict import SelfVerdict
from assay.rewards.outcome.majority import MajorityVote
from assay.rewards.outcome.vote import Equal
from assay.signals.answer_tokens import AnswerTokens
from assay.verify.answer.extract import Fallback, Rule

Intrinsic = Literal[
    "majority",
    "frequency",
    "other_wordings",
    "self_certainty",
    "token_entropy",
    "trajectory_entropy",
    "probability",
    "disparity",
    "self_verification",
]


@paper(
    "S023",
    "unsupervised RLVR",
    arxiv="2603.08660",
    seams=["verify", "reward", "evaluate"],
    essentials={
        "certainty as reward: self-certainty, entropies, probability": "test_certainties_against_the_policy_itself",
        "certainty of the answer alone: the gap between the two likeliest tokens": (
            "test_the_disparity_is_of_the_answers_tokens_alone"
        ),
        "agreement as reward: the majority's answer, an answer's frequency": (
            "test_the_majority_and_what_the_log_says_of_it"
        ),
        "the policy's own verdict as reward": (
            "rewards/test_self_verdict.py::test_it_asks_the_policy_after_each_response"
        ),
        "each step takes the majority's odds up by e^(1 / beta), to certainty": "test_sharpening_by_the_worked_numbers",
        "the step of collapse, by the accuracy of pseudo-rewards": "test_collapse_step",
        "a policy whose most likely answer is wrong is led away from the right one": (
            "test_a_wrong_majority_is_learned_until_it_collapses"
        ),
    },
    choices=(
        "the accuracy of pseudo-rewards reads references, where there are any; nothing else does",
        "the policy's own verdict is its yes or no in one word, by their probabilities, not a check that it writes",
    ),
)
def urlvr(
    reward: Intrinsic = "majority",
    equal: Equal = "same",
    rules: tuple[Rule, ...] | None = None,
    fallback: Fallback = "line",
    kl_weight: float = 0.0,
) -> Method:
    """GRPO without references: the policy's own answers, or its certainty, are the reward.

        majority:           R_i = 1[answer_i is the most common of its group]
        frequency:          R_i = share of the group with the same answer
        other_wordings:     as majority, the responses to the question's other wordings voting
        self_certainty:     mean_t KL(uniform || pi_t) + log V        token_entropy: -mean_t H(pi_t)
        trajectory_entropy: mean_t log pi(o_t)                        probability:   prod_t pi(o_t)
        disparity:          mean over the answer's tokens of the gap between the two greatest probabilities
        self_verification:  1[pi says yes rather than no when it is asked whether o_i is right]

    All of them sharpen: with the majority's reward and a divergence of weight beta, a step to the optimum takes the
    chance p of the majority's answer to p e^(1/beta) / (p e^(1/beta) + 1 - p) (:func:`sharpened`), and so to 1, whether
    it is right or not. Where tasks have references they are not read, but the log compares: ``majority_ratio``,
    ``label_right`` and ``reward_right``, whose first fall below 1% is the model collapse step
    (:func:`collapse_step`). A majority ratio that stays above 0.99 is the sign of collapse that needs no references.

    Args:
        reward: see above.
        equal, rules, fallback: of votes, see :class:`assay.rewards.outcome.vote.Ballot`; ``rules`` also say which
            tokens are the answer's, else the task's verifier does.
        kl_weight: of the divergence from the reference policy.

    Source: "How Far Can Unsupervised RLVR Scale LLM Training?" (arXiv 2603.08660).
    """
    part: RewardPart
    if reward == "frequency":
        part = Frequency(rules, fallback, equal)
    elif reward == "self_verification":
        part = SelfVerdict()
    elif reward == "majority" or reward == "other_wordings":
        part = MajorityVote("own" if reward == "majority" else "others", rules, fallback, equal)
    else:
        part = Certainty(reward, AnswerTokens(rules))
    rollout = "paraphrased" if reward == "other_wordings" else "single_turn"
    return Method(reward=part, objective=ClippedSurrogate(kl_weight=kl_weight), rollout=rollout)


def sharpened(p: float, beta: float, steps: int = 1) -> list[float]:
    """Return the chance of the majority's answer after each of ``steps`` optimal steps, see :func:`urlvr`.

    Args:
        p: at the start, in (0, 1).
        beta: weight of the divergence, above 0.
        steps: at least 0.

    Raises:
        UsageError: ``p`` or ``beta`` out of range.
    """
    if not 0 < p < 1 or beta <= 0:
        raise UsageError(f"sharpened: needs p in (0, 1) and beta above 0, not {p:g} and {beta:g}")
    odds = math.log(p) - math.log1p(-p)
    # Each step adds 1 / beta to the log-odds.
    return [_sigmoid(odds + k / beta) for k in range(1, steps + 1)]


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def collapse_step(reward_right: Sequence[float], below: float = 0.01) -> int | None:
    """Return the first step (from 0) at which the pseudo-rewards' accuracy is under ``below``; ``None`` if none is.

    The later, the better the model's prior for reinforcement learning.
    """
    return next((k for k, x in enumerate(reward_right) if x < below), None)


FOOLED = [math.log(p) for p in (0.3, 0.5, 0.1, 0.1)]

claims(
    Claim(
        paper="S023",
        text="From a policy whose most likely answer is wrong, its majority's reward leads to fewer right answers than "
        "the policy gives at the start, or true rewards reach.",
        setting="choices",
        arms={"true": {"name": "grpo"}, "majority": {"name": "S023"}},
        better="true",
        baseline="majority",
        measure="right",
        options={
            "choices": [[[1.0, True, {}]], *([[[1.0, False, {}]]] * 3)],
            "logits": FOOLED,
            "group": 16,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
