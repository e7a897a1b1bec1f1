"""S200: which tricks matter, each a switch of its own; and Lite PPO, the two that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.standardised import Over, Standardised
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.select.everything import All
from assay.select.overlong import OverlongFilter

Loss = Literal["token", "sequence"]


@paper(
    "S200",
    "Lite PPO",
    arxiv="2508.08221",
    seams=["credit", "select", "objective"],
    essentials={
        "Lite PPO's advantage: reward less the group's mean, by the deviation of the whole batch": (
            "test_the_worked_example"
        ),
        "Lite PPO's loss is a mean over the batch's tokens, on PPO's symmetric clip, without critic or divergence": (
            "test_the_token_loss_weighs_tokens_and_the_sequence_loss_responses"
        ),
        "where rewards are concentrated the group's deviation blows up and the batch's does not": (
            "test_an_easy_group_is_not_blown_up"
        ),
        "every trick is a switch of its own: normalisation, clip-higher, aggregation, overlong filtering": (
            "test_every_switch_moves_one_thing"
        ),
        "the whole matrix of tricks can be run": "test_the_matrix_of_ablations",
        "in training the two tricks alone make right answers likely": "test_in_training_lite_ppo_learns",
    },
    choices=(
        "clip range 0.2; the deviation is the unbiased one of the raw rewards, plus 1e-8",
        "advantages are not bounded (2 in the ROLL framework's recipe) unless bound is given",
    ),
)
def lite_ppo(
    mean: Over = "group",
    std: Over = "batch",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    loss: Loss = "token",
    overlong_filter: bool = False,
    bound: float | None = None,
) -> Method:
    """GRPO divided by the deviation of the whole batch's rewards instead of the group's; every studied trick a switch.

        A_i = (R_i - mean_g R) / (std_batch R + 1e-8)
        L = -(1 / sum_i T_i) sum_it min(rho_it A_i, clip(rho_it, 1 - clip_low, 1 + clip_high) A_i),  no KL

    A group where nearly all agree has a tiny deviation of its own, by which GRPO blows its few others up; the batch's
    deviation does not shrink with it: |A| <= (max R - min R) (1 - 1/G) / std_batch.

    What the paper reports of the switches: the group's mean holds under either scale of rewards; without spread in the
    rewards (easy data) take the batch's deviation or none; a higher ``clip_high`` helps aligned models, small ones up
    to 0.32, 8B ones to about 0.28, and base models not; the token loss suits base models, the sequence loss aligned
    ones; leaving out truncated responses helps at limits of about 8k tokens and little at 20k.
    :func:`ablations` makes the methods of a whole matrix of switches.

    Args:
        mean, std: over the ``group``, the ``batch``, or ``none``.
        clip_low, clip_high: half-widths of the clip range.
        loss: mean over all tokens, or over responses of their means.
        overlong_filter: leave truncated responses out of the update.
        bound: advantages are clipped to [-bound, bound] (2 in the ROLL framework's recipe); ``None``: not.

    Source: "Tricks or Traps?" (arXiv 2508.08221).
    """
    aggregation: Literal["token_mean", "sequence_mean"] = "token_mean" if loss == "token" else "sequence_mean"
    return Method(
        credit=BoundedStandardised(mean, std, bound=bound),
        select=OverlongFilter() if overlong_filter else All(),
        objective=ClippedSurrogate(aggregation=aggregation, clip_low=clip_low, clip_high=clip_high),
    )


@dataclass(frozen=True, slots=True)
class BoundedStandardised(Standardised):
    """As ``standardised``, clipped to [-bound, bound].

    Raises:
        UsageError: ``bound`` not above 0.
    """

    bound: float | None = None

    def __post_init__(self) -> None:
        if self.bound is not None and self.bound <= 0:
            raise UsageError(f"credit 'S200': bound {self.bound:g} must be above 0")

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        advantages = Standardised.__call__(self, batch)
        return advantages if self.bound is None else advantages.clamp(-self.bound, self.bound)


SWITCHES: dict[str, tuple[Any, ...]] = {
    "mean": ("group", "batch"),
    "std": ("group", "batch", "none"),
    "clip_high": (0.2, 0.24, 0.28, 0.32),
    "loss": ("token", "sequence"),
    "overlong_filter": (False, True),
}
"""What the paper varies."""


def ablations(switches: Mapping[str, Sequence[Any]] | None = None) -> dict[str, Method]:
    """Return every combination of the given settings as a method, by a name such as ``mean=group std=batch``.

    Args:
        switches: values to try per argument of :func:`lite_ppo`, default :data:`SWITCHES` (96 methods); what is not
            listed keeps its default.

    Raises:
        UsageError: an unknown switch or value.
    """
    from assay.registry import call

    chosen = SWITCHES if switches is None else switches
    methods = {}
    for values in product(*chosen.values()):
        options = dict(zip(chosen, values, strict=True))
        methods[" ".join(f"{k}={v}" for k, v in options.items())] = call(lite_ppo, options, "Lite PPO")
    return methods


claims(
    (
        CLAIM := Claim(
            paper="S200",
            text="On easy tasks, where rewards are concentrated, dividing by the batch's deviation learns faster than "
            "dividing by the group's.",
            setting="tree",
            arms={"batch": {"name": "S200"}, "group": {"name": "S200", "credit": {"scale": "group"}}},
            better="batch",
            baseline="group",
            measure="area",
            options={"tasks": 8, "depth": 3, "right": 44, "prompts": 8, "steps": 60},
            sweep={"lr": (10.0, 30.0, 100.0, 300.0, 1000.0)},
        )
    ),
    replace(CLAIM, setting="unseen", options={"right": 32}, sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)}),
)
