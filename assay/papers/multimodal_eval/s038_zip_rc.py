"""S038: predict reward and remaining length at every token, and spend samples where they are worth their tokens."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.inference.sampling.adaptive import Adaptive


@paper(
    "S038",
    "ZIP-RC",
    arxiv="2512.01457",
    seams=["inference", "evaluate"],
    essentials={
        "a joint distribution of final reward and remaining length, in the paper's bins": (
            "test_outcomes_are_numbered_by_reward_and_remaining_length"
        ),
        "trained at every token on what followed": "test_a_head_learns_how_often_each_outcome_follows",
        "a second stage, whose labels are the rewards that the first expects near the end": (
            "test_the_second_stage_learns_from_expected_rewards"
        ),
        "outputs trained together with the policy, which a divergence from the original holds": (
            "inference/test_joint_tuning.py::"
            "test_a_tuned_model_predicts_what_its_frozen_states_do_not_and_stays_what_it_was"
        ),
        "utility of a set of samples: expected maximum reward, less compute and waiting": (
            "test_utilities_of_two_samples"
        ),
        "what is not worth its tokens is left, and another begun": (
            "test_what_is_begun_badly_is_left_and_another_begun"
        ),
        "what is left is paused, and taken up again where it is worth most": (
            "test_a_beginning_that_waits_is_taken_up_again"
        ),
        "beginnings that are worth it branch": "test_beginnings_that_are_worth_it_branch",
    },
    choices=(
        "outputs: rows of their own beside the vocabulary's, where the authors take those of unused tokens",
        "search for the set of largest utility: the best addition, one by one, then removals",
        "branches: from where beginnings stand and from the prompt, not from places that they have passed",
        "rates and epochs of the training",
        "decisions every 64 tokens, two copies of a beginning and 16 at a time at most",
        "a token costs 1e-4 of a reward, all of it as compute; waiting has a share of 1 - a",
        "answer: the whole response of largest expected reward",
    ),
)
def zip_rc(
    head: Any,
    sampling: Sampling | None = None,
    beta: float = 1e-4,
    a: float = 1.0,
    every: int = 64,
    copies: int = 2,
    width: int = 16,
) -> Adaptive:
    """Sampling steered by a joint prediction of final reward V and remaining length L, read off the model's states.

        P(r, l | x, y_<=t) = softmax over (reward bins x length bins) of a head on h_t
        train: cross entropy at every t with the outcome (reward, T - t); then again with the reward replaced by the
               mean that the first head expects over the last 512 positions
        act:   U(A) = E[max_i V_i] - beta (a E[sum_i L_i] + (1 - a) E[max_i L_i]);  continue, branch and begin what
               makes U largest, the rest waits;  E[max] by the product of distribution functions

    Two ways to train: :class:`~assay.inference.heads.joint_training.JointTraining`, a head of its own on a frozen
    policy, whose samples and likelihoods do not change; and :class:`~assay.inference.heads.joint_tuning.JointTuning`,
    reserved logits trained together with the policy, which a divergence from the original holds. ``assay train-head``
    does the one, with ``--tune`` the other. Names the inference part ``adaptive``, and scorer ``joint`` for expected
    rewards alone.

    Args:
        head: a :class:`~assay.inference.heads.joint.JointHead`, or the file of one.
        sampling, beta, a, every, copies, width: see :class:`~assay.inference.sampling.adaptive.Adaptive`.

    Source: ZIP-RC (arXiv 2512.01457) and its authors' code, for the bins and the training; the search for A by greedy
    additions is a choice.
    """
    return Adaptive(head, sampling or Sampling(), beta, a, every, copies, width)


claims(
    Claim(
        paper="S038",
        text="At equal mean tokens, samples that are continued, branched, begun and dropped by predicted reward and "
        "length contain the right answer more often than a fixed number of them.",
        setting="detours",
        arms={
            "adaptive": {"name": "adaptive", "every": 1, "beta": 0.01, "copies": 2},
            "without branching": {"name": "adaptive", "every": 1, "beta": 0.01, "copies": 1},
            "best of 4": {"name": "best_of_n", "samples": 4},
        },
        better="adaptive",
        baseline="best of 4",
        measure="above",
    )
)
