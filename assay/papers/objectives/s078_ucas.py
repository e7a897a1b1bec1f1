"""S078: uncertain right responses and confident wrong ones count for more, confident tokens for a little less."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import Method
from assay.ops import group_mean, group_std


@paper(
    "S078",
    "UCAS",
    arxiv="2510.10649",
    seams=["credit"],
    essentials={
        "a response's confidence: the mean divergence of uniform from the policy's distributions, from raw logits": (
            "test_self_certainty_by_hand_and_through_the_policy"
        ),
        "response level: uncertain right answers and confident wrong ones count for more, beta+ 0.25, beta- 0.35": (
            "test_the_worked_example"
        ),
        "token level: a penalty of 0.05 times the token's logit, scaled to [0, 1] over the batch": (
            "test_equal_logits_are_in_the_middle_and_padding_does_not_count"
        ),
        "the penalty never makes a right answer's advantage negative": (
            "test_a_right_response_is_not_pushed_below_zero_and_a_wrong_one_is_pushed_further"
        ),
        "with all weights 0 it is GRPO": "test_without_its_weights_it_is_grpo",
        "the policy is moved by the shaped advantages": "test_an_update_moves_the_logits_by_the_shaped_advantages",
    },
    choices=(
        "confidence is the mean over tokens, as the paper says; its code sums, which also counts length",
        "logits that are all equal are scaled to 0.5",
        "a group of equal rewards has the token penalty alone",
    ),
)
def ucas(
    right: float = 0.25,
    wrong: float = 0.35,
    token: float = 0.05,
    confidence: Literal["mean", "sum"] = "mean",
    normalise: bool = True,
) -> Method:
    """GRPO with advantages scaled by how sure the policy was of the response, less a penalty on tokens it was sure of.

        C_i = mean_t KL(uniform || p_it),    c_i = (C_i - mean_g C) / std_g C
        A'_i = A_i exp(-right c_i) if A_i > 0,  A_i exp(wrong c_i) otherwise
        A_it = A'_i - token n_it;  at least 0 where A'_i > 0

    p_it is the policy's distribution before temperature; n_it the logit z of the sampled token, scaled to [0, 1] by the
    least and the greatest of the batch. A group whose rewards are all equal has A' = 0 and keeps the token penalty
    alone, which makes it less sure of itself. With all three weights 0 it is GRPO.

    Args:
        right, wrong: beta+ and beta-, weights of the confidence, not negative.
        token: gamma, greatest penalty of a token, not negative.
        confidence: ``mean`` over the response's tokens; ``sum``, as the released code has it, which also counts length.
        normalise: divide A by the group's standard deviation.

    Source: "Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping" (arXiv 2510.10649).
    """
    return Method(credit=UncertaintyShaped(right, wrong, token, confidence, normalise))


@dataclass(frozen=True, slots=True)
class UncertaintyShaped:
    """The advantages of :func:`ucas`; confidences are compared among the group's active samples with learnable tokens.

    Raises:
        UsageError: a weight is negative.
    """

    right: float = 0.25
    wrong: float = 0.35
    token: float = 0.05
    confidence: Literal["mean", "sum"] = "mean"
    normalise: bool = True
    epsilon: float = 1e-6

    needs = frozenset({"policy_self_certainty", "policy_logit"})
    level = "token"
    group_relative = True

    def __post_init__(self) -> None:
        if min(self.right, self.wrong, self.token) < 0:
            raise UsageError("credit 'S078': right, wrong and token must not be negative")

    @property
    def summary(self) -> dict[str, str]:
        scale = "group std" if self.normalise else "none"
        return {"baseline": "group mean, by confidence", "normalisation": scale}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        plain = GRPO(self.normalise)(batch)
        mask = batch.mask & batch.active[:, None]
        certainty = torch.where(mask, batch.signals["policy_self_certainty"], 0).sum(-1)
        if self.confidence == "mean":
            certainty = certainty / batch.lengths.clamp(min=1)
        counted = mask.any(-1)
        c = certainty - group_mean(certainty, batch.group, counted)
        c = c / (group_std(certainty, batch.group, counted) + self.epsilon)
        shaped = plain * torch.where(plain > 0, torch.exp(-self.right * c[:, None]), torch.exp(self.wrong * c[:, None]))
        lowered = shaped - self.token * unit_range(batch.signals["policy_logit"], mask)
        return torch.where(mask, torch.where(shaped > 0, lowered.clamp(min=0), lowered), 0)


def unit_range(x: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]) -> Float[Tensor, "N T"]:
    """Scale ``x`` over ``mask`` to [0, 1] by its least and greatest value; 0.5 where all are equal."""
    if not bool(mask.any()):
        return torch.zeros_like(x)
    least, most = x[mask].min(), x[mask].max()
    if torch.isclose(least, most):
        return torch.full_like(x, 0.5)
    return (x - least) / (most - least)


claims(
    CLAIM := Claim(
        paper="S078",
        text="At equal rollouts, advantages shaped by the policy's confidence give a better policy than GRPO.",
        setting="tree",
        arms={"ucas": {"name": "S078"}, "grpo": {"name": "grpo"}},
        better="ucas",
        baseline="grpo",
        measure="final",
        options={"tasks": 16, "right": 2, "prompts": 8, "steps": 60, "optimizer": "adam"},
        sweep={"lr": (0.1, 0.3, 1.0, 3.0, 10.0)},
    ),
    replace(CLAIM, setting="unseen", sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)}, options={}),
)
