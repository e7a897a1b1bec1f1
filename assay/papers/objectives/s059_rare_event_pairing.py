"""S059: two prompts are enough, if one is seldom solved and the other seldom failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.ops import broadcast, group_mean, group_std, outcome
from assay.select.unprobed import Unprobed

Norm = Literal["group", "mean", "pair"]


@paper(
    "S059",
    "Weighted GRPO",
    arxiv="2602.03452",
    seams=["curriculum", "reward", "credit", "select"],
    essentials={
        "prompts are probed, and a hard but solvable one goes with an easy but brittle one": (
            "test_the_rarest_success_goes_with_the_rarest_failure"
        ),
        "none is chosen that was always or never solved": ("test_no_prompt_is_chosen_that_was_always_or_never_solved"),
        "every update is on the pair alone": "test_training_moves_the_two_prompts_of_the_pair_alone",
        "rare successes and rare failures have great advantages": "test_rare_outcomes_are_amplified",
        "outcomes count 1 and -lambda before the division by the prompt's deviation": (
            "test_the_penalty_cancels_within_a_prompt_and_scales_without_division"
        ),
        "the usual choice by variance, to compare with": "test_the_usual_choice_is_by_variance",
    },
    choices=(
        "a prompt is hard with at most 2 of G responses right, easy with at most 2 wrong; 64 candidates are probed",
        "lambda is 1; the paper's is not known, and cancels in the division, which leaves the advantages GRPO's",
        "weights of the two prompts, 1, and other divisions are options of ours",
    ),
)
def rare_event_pairing(
    candidates: int = 64,
    most: int = 2,
    choose: Literal["pair", "variance"] = "pair",
    pairs: int = 1,
    pools: tuple[str, str] | None = None,
    penalty: float = 1.0,
    norm: Norm = "group",
    hard_weight: float = 1.0,
    easy_weight: float = 1.0,
) -> Method:
    """GRPO on one pair of prompts: a hard one that the policy solves now and then, an easy one that it fails at times.

        before training: probe candidates with G responses each, p their share of right ones
        q+: 0 < p <= most / G       q-: 1 - most / G <= p < 1       the update asks the pair, as often as fills it
        R_i = 1 if right, -penalty if wrong
        A_i = u(q) (R_i - mean_q R) / (std_q R + 1e-6)

    The deviation of a prompt amplifies what is rare: of 8 responses a single right one has A = 2.47 and the wrong ones
    -0.35, a single wrong one -2.47. Affine in the verdict, R changes nothing under that normalisation; ``penalty``
    matters with ``norm="mean"`` (no division) or ``"pair"`` (mean and deviation over both prompts, which destroys the
    amplification). Probing takes training steps of its own, which change no weight: select ``unprobed``.

    Args:
        candidates, most, choose, pairs, pools: of the choice, see :class:`~assay.curriculum.paired.Paired`; the paper
            takes hard prompts from one pool, AIME 2025, and easy ones from another, DeepScaleR.
        penalty: lambda, of a wrong response, not negative.
        norm: see above.
        hard_weight, easy_weight: u(q+) and u(q-).

    Source: "Beyond Variance: Prompt-Efficient RLVR via Rare-Event Amplification and Bidirectional Pairing"
    (arXiv 2602.03452), from notes on its text; u is an addition.
    """
    curriculum = {"name": "paired", "candidates": candidates, "most": most, "choose": choose, "pairs": pairs}
    if pools is not None:
        curriculum["pools"] = list(pools)
    return Method(
        curriculum=curriculum,
        reward=SignedOutcome(penalty),
        credit=PairWeighted(norm, hard_weight, easy_weight),
        select=Unprobed(),
    )


@dataclass(frozen=True, slots=True)
class SignedOutcome:
    """R_i = 1 for a right response, -``penalty`` for a wrong one; none for an abstention.

    Raises:
        UsageError: a negative penalty.
    """

    penalty: float = 1.0

    relabels = True

    def __post_init__(self) -> None:
        if self.penalty < 0:
            raise UsageError(f"reward 'S059': penalty {self.penalty:g} must not be negative")

    def __call__(self, batch: Batch) -> Reward:
        worth = {True: 1.0, False: -self.penalty, None: 0.0}
        values = torch.tensor([worth[v.passed] for v in batch.verdicts]).to(batch.rewards)
        return Reward(values, valid=torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool))


@dataclass(frozen=True, slots=True)
class PairWeighted:
    """A_it = u (R_i - mean R) / (std R + epsilon), see :func:`rare_event_pairing`.

    u is ``hard_weight`` or ``easy_weight`` by the task's ``meta["role"]``, 1 without one. With ``norm="pair"`` mean and
    deviation are over the prompts of equal ``meta["pair"]``, or without it over prompts 2k and 2k + 1 of the batch.
    """

    norm: Norm = "group"
    hard_weight: float = 1.0
    easy_weight: float = 1.0
    epsilon: float = 1e-6

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        scale = {"group": "group std", "mean": "none", "pair": "pair std"}[self.norm]
        return {"baseline": "pair mean" if self.norm == "pair" else "group mean", "normalisation": scale}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards, group = outcome(batch), batch.group
        if self.norm == "pair":
            told = [
                task.meta.get("pair", g // 2) for task, g in zip(batch.tasks, batch.prompt_group.tolist(), strict=True)
            ]
            group = torch.tensor(told, dtype=torch.int64)
        values = rewards - group_mean(rewards, group, batch.active)
        if self.norm != "mean":
            values = values / (group_std(rewards, group, batch.active) + self.epsilon)
        weight = {"hard": self.hard_weight, "easy": self.easy_weight}
        u = torch.tensor([weight.get(str(task.meta.get("role")), 1.0) for task in batch.tasks]).to(rewards)
        return broadcast(u * values, batch)


claims(
    CLAIM := Claim(
        paper="S059",
        text="Trained on two prompts alone, a policy does better on others if one is seldom solved and the other "
        "seldom failed than if both are solved half of the time.",
        setting="arithmetic",
        arms={
            "pair": {"name": "S059"},
            "variance": {"name": "S059", "curriculum": {"choose": "variance"}},
        },
        better="pair",
        baseline="variance",
        measure="after",
        sweep={"lr": (1e-4, 3e-4)},
    ),
    replace(
        CLAIM,
        setting="unseen",
        measure="final",
        options={"smoothing": 0.1},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
    ),
)
