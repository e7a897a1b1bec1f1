"""S097: one outside solution per group, weighted by a mixture of what may have written it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.origins import written_by
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import IMPOSSIBLE, broadcast, group_mean, masked_mean, outcome
from assay.types import Origin


@paper(
    "S097",
    "RL-PLUS",
    arxiv="2508.00222",
    seams=["rollout", "credit", "objective"],
    essentials={
        "an outside solution takes the place of one of a group's own responses": (
            "test_the_solution_takes_the_place_of_one_response"
        ),
        "multiple importance sampling: its tokens' ratio is to a mixture of pi_old and an estimate of its author": (
            "test_ratio_and_weight_before_the_policy_moves"
        ),
        "that ratio stays bounded where pi_old is tiny": (
            "test_the_ratio_is_bounded_where_the_old_policy_all_but_excluded_a_token"
        ),
        "exploration-based advantage: A (1 - sg[pi])^focus turns the pull to tokens that the policy finds hard": (
            "test_the_worked_example"
        ),
        "own tokens have a plain ratio; nothing is clipped": "test_own_tokens_are_neither_clipped_nor_focused",
        "rewards of own responses and solution are centred together": "test_baselines",
        "in training a solution that the policy all but excludes is found": (
            "test_in_training_a_solution_is_learned_that_own_responses_never_reach"
        ),
    },
    choices=(
        "focus 0.5, entropy bonus 0.001, and no division by the deviation, as in the authors' code",
        "the author's distribution: 1 for every token, as in the authors' code; the paper writes a uniform one",
        "loss and entropy bonus are sums over tokens divided by responses and max_length; the authors' code leaves the "
        "first undivided by responses and averages the second, for each micro-batch",
    ),
)
def rl_plus(
    focus: float = 0.5,
    entropy_weight: float = 1e-3,
    max_length: int = 8192,
    own_baseline: bool = False,
    teacher: Any = None,
) -> Method:
    """GRPO in which one response of each group is the task's worked solution, or a teacher's, and nothing is clipped.

        own tokens:      l = -rho A,                   rho = pi / pi_old
        solution tokens: l = -r (1 - sg[pi])^focus A,  r = 2 pi / (pi_old + omega),  omega = (pi_old + 1) / 2
        A_i = R_i - mean_g R                            (not divided by a deviation)
        L = 1 / (B max_length) sum_it (l_it - entropy_weight H_it)

    Who wrote the solution is not known as a distribution: omega stands for it, half pi_old and half certainty, so that
    r <= 4 pi even where pi_old is tiny, and r keeps a gradient. (1 - sg[pi])^focus turns the pull to tokens that the
    policy finds hard. Without solutions it is GRPO without deviation and without clip.

    Args:
        focus: exponent of the weight of hard tokens, not negative.
        entropy_weight: of the entropy bonus.
        max_length: constant that the loss is divided by, besides the number of responses.
        own_baseline: take the mean reward over the policy's own responses only.
        teacher: an engine, or the specification of one, that writes the solutions: the first of its responses that the
            verifier passes, see :class:`~assay.rollout.taught.Taught`. Without it they are the tasks' own.

    Source: RL-PLUS (arXiv 2508.00222) and its authors' code, which is followed where the two differ (the paper divides
    A by the deviation and writes the uniform distribution in place of the 1 in omega).
    """
    return Method(
        credit=OwnMean() if own_baseline else GRPO(normalise=False),
        objective=MixtureRatio(
            aggregation="constant", max_length=max_length, entropy_weight=entropy_weight, focus=focus
        ),
        rollout="demonstration" if teacher is None else {"name": "taught", "teacher": teacher},
    )


@dataclass(frozen=True, slots=True)
class MixtureRatio(PolicyLoss):
    """The loss of :func:`rl_plus`: tokens of origin ``TEACHER`` are the solution's, all others own.

    pi_old on the solution's tokens is the policy before the step's first update (signal ``policy_logprobs``). Shared
    terms as in :class:`~assay.objectives.policy_loss.PolicyLoss`.

    Args:
        focus: see above.

    Raises:
        UsageError: ``focus`` negative.
    """

    focus: float = 0.5

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        if self.focus < 0:
            raise UsageError(f"objective 'S097': focus {self.focus:g} must not be negative")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"policy_logprobs", *(PolicyLoss.needs.__get__(self))})

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        theirs = r.mask & written_by(r.batch, Origin.TEACHER)
        old = torch.where(theirs, r.batch.signals["policy_logprobs"].to(r.logprobs.dtype), 0).clamp(min=IMPOSSIBLE)
        probability = r.logprobs.exp()
        ratio = mixture_ratio(probability, old.exp())
        # A probability may exceed 1 by a rounding error.
        hard = (1 - probability.detach()).clamp(min=0) ** self.focus
        loss = torch.where(theirs, -ratio * hard * r.advantages, -r.ratio * r.advantages)
        with torch.no_grad():
            metrics: dict[str, Any] = {"solution/tokens": masked_mean(theirs.to(ratio.dtype), r.mask)}
            if bool(theirs.any()):
                metrics["solution/ratio"] = masked_mean(ratio, theirs)
                metrics["solution/probability"] = masked_mean(probability, theirs)
        return loss, metrics

    def words(self) -> tuple[str, str]:
        return "token; of a solution, to a mixture", "none"


@dataclass(frozen=True, slots=True)
class OwnMean:
    """A_it = R_i - mean R over the active samples of the group that are not a teacher's from the first token on.

    In a group without such samples the baseline is 0.
    """

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "mean of own responses", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards, own = outcome(batch), ~written_by(batch, Origin.TEACHER)[:, :1].any(1)
        return broadcast(rewards - group_mean(rewards, batch.group, batch.active & own), batch)


def mixture_ratio(probability: Tensor, old: Tensor) -> Tensor:
    """r = 2 pi / (pi_old + omega) with omega = (pi_old + 1) / 2, all of them probabilities."""
    return 2 * probability / (old + 0.5 * (old + 1))


claims(
    Claim(
        paper="S097",
        text="Where right responses are rare, one worked solution per group, weighted by the mixture, solves more "
        "tasks in many attempts than learning from the policy's own responses alone.",
        setting="tree",
        unequal="one response in eight of the method is the worked solution, not sampled",
        arms={
            "rl-plus": {"name": "S097", "objective": {"max_length": 4}},
            "own": {
                "name": "grpo",
                "credit": {"normalise": False},
                "objective": {"aggregation": "constant", "max_length": 4},
            },
            "imitated": {
                "name": "grpo",
                "credit": {"normalise": False},
                "objective": {"name": "reinforce", "aggregation": "constant", "max_length": 4},
                "rollout": "demonstration",
            },
        },
        better="rl-plus",
        baseline="own",
        measure="pass@64",
        options={"tasks": 16, "right": 4, "hard": 3.0, "shown": True, "prompts": 8, "steps": 100},
        sweep={"lr": (30.0, 300.0, 3000.0)},
    ),
    Claim(
        paper="S097",
        text="Where right responses are rare, one worked solution per group, weighted by the mixture, solves more "
        "tasks in many attempts than learning from the policy's own responses alone.",
        setting="unseen",
        unequal="one response in eight of the method is the worked solution, not sampled",
        arms={
            "rl-plus": {"name": "S097", "objective": {"max_length": 3}},
            "own": {
                "name": "grpo",
                "credit": {"normalise": False},
                "objective": {"aggregation": "constant", "max_length": 3},
            },
            "imitated": {
                "name": "grpo",
                "credit": {"normalise": False},
                "objective": {"name": "reinforce", "aggregation": "constant", "max_length": 3},
                "rollout": "demonstration",
            },
        },
        better="rl-plus",
        baseline="own",
        measure="pass@8",
        options={"shown": True, "right": 1},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
    ),
)
