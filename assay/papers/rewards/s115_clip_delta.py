"""S115: process rewards that cannot be collected by repeating easy steps."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reinforce_pp import ReinforcePlusPlus
from assay.method import Method
from assay.rewards.process.bounded_steps import Bound, BoundedSteps
from assay.signals.steps import Steps


@paper(
    "S115",
    "Clip and Delta",
    arxiv="2410.15115",
    seams=["reward", "credit", "policies"],
    essentials={
        "Clip: min(p_k - eta, 0), so that a step that is good enough earns nothing": "test_the_worked_scores",
        "Delta: p_k - p_{k+1}, so that the return from a step on is that step's own score": "test_returns_are_bounded",
        "both together: Delta of the clipped scores": "test_the_worked_scores",
        "repeating steps that score well does not pay": "test_filler_steps",
        "a step's reward stands on its last token, success on the response's last": "test_where_rewards_stand",
        "a process reward model scores the steps of a run": "test_a_run_is_paid_for_its_steps",
        "a policy does not learn to add useless steps, as it does from the sum of scores": (
            "test_a_policy_learns_fewer_useless_steps_than_from_the_sum"
        ),
    },
    choices=(
        "returns by token (REINFORCE++) in place of the paper's PPO with a critic, which credit = 'gae' brings",
        "eta is a number, 0.5; the paper's is the mean score of a training set's solutions, to be measured and given",
        "alpha = 0.02; a single step earns 0 under Delta, as the last one does",
    ),
)
def clip_delta(
    prm: Any = "verdict",
    steps: Steps = Steps(),  # noqa: B008  # frozen
    bound: Bound = "clip_delta",
    eta: float = 0.5,
    alpha: float = 0.02,
    outcome: float = 1.0,
) -> Method:
    """Returns by token in place of GRPO's one advantage, of the verdict and of bounded scores of the steps.

        clip:  c_k = min(p_k - eta, 0)
        delta: d_k = p_k - p_{k+1} (k < K-1),  d_{K-1} = p_{K-1},  d_K = 0;  clip_delta: delta of c
        r = alpha b_k on the last token of step k, b = c or d;  the verdict's score on the last token of all
        A_it = sum_{u >= t} r_iu, standardised over all tokens of the batch

    A sum of process scores grows with every step that scores well, and a policy learns to add such steps. Clipped, the
    sum is at most 0 and a good step is worth no more than none; of differences the sum from any step on is that step's
    own score. Rewards by token need a credit that reads them by token: ``reinforce++`` here; in the paper ``gae`` with
    a critic.

    Args:
        prm: scores steps, see :class:`assay.rewards.process.step_scores.StepScores`.
        steps: how responses are cut.
        bound: ``clip``, ``delta``, ``clip_delta``, or for comparison ``none`` and ``mean``.
        eta: the mean score of training solutions, so that most steps of right solutions cost nothing.
        alpha, outcome: weights of steps and verdict.

    Source: "On Designing Effective RL Reward at Training Time for LLM Reasoning" (arXiv 2410.15115); the values of eta
    and alpha are choices.
    """
    return Method(reward=BoundedSteps(prm, steps, bound, eta, alpha, outcome), credit=ReinforcePlusPlus())


ONE = {"by": "fixed", "size": 1}

claims(
    Claim(
        paper="S115",
        text="With scores of steps beside the verdict, a policy learns to add useless steps that score well if the "
        "scores are summed, and not if they are clipped and differences.",
        setting="steps",
        evidence="construction",
        arms={
            bound: {
                "name": "grpo",
                "credit": "reinforce++",
                "reward": {"name": "bounded_steps", "steps": ONE, "bound": bound, "eta": 0.8, "alpha": 0.5},
            }
            for bound in ("none", "clip", "delta", "clip_delta")
        },
        better="clip_delta",
        baseline="none",
        measure="concise",
        sweep={"lr": (0.3, 1.0, 3.0)},
    )
)
