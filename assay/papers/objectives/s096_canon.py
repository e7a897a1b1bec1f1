"""S096: the group is cut in two by a metric; responses are compared with the other half, their own half, or both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.ops import broadcast, group_count, group_mean, outcome, row_mean

Metric = Literal["entropy", "length", "random"]
Mixing = Literal["fixed", "inter_first", "intra_first", "cosine_inter_first", "cosine_intra_first"]


@paper(
    "S096",
    "CANON",
    arxiv="2509.23962",
    seams=["credit", "objective"],
    essentials={
        "a group is cut in two halves by a metric of its responses, entropy or length": (
            "test_the_metric_counts_not_the_order"
        ),
        "a response is compared with the mean of the other half and with that of its own, mixed by mu": (
            "test_the_two_comparisons_by_hand"
        ),
        "without a presumed direction: equal halves mixed evenly are Dr. GRPO": (
            "test_equal_halves_mixed_evenly_are_dr_grpo"
        ),
        "alpha below 1 favours one direction (shorter, or of higher entropy)": "test_a_presumed_direction_by_hand",
        "mu may follow the batch's accuracy or a cosine with restarts": "test_schedules_by_the_mean_reward",
        "in training the half of the metric that pays wins sooner than against the group's mean": (
            "test_in_training_the_length_that_pays_is_found_sooner_than_by_dr_grpo"
        ),
    },
    choices=(
        "mu is 1, as in the authors' script; the paper tunes it to each task",
        "the odd response of a group is in the upper half; equal metrics are told apart by order",
        "sums of tokens are averaged over responses where max_length is not given",
    ),
)
def canon(
    metric: Metric = "entropy",
    mu: float = 1.0,
    mixing: Mixing = "fixed",
    alpha: float = 1.0,
    favour: Literal["low", "high"] | None = None,
    max_length: int | None = None,
) -> Method:
    """GRPO without std, its baseline conditioned on a metric: the mean of the half with the other trend of the metric.

        low, high: the floor(G/2) responses of a group with the least metric, and the rest; m_low, m_high mean rewards
        inter_i = R_i - m of the other half      intra_i = R_i - m of its own half
        A_i = mu inter_i + (1 - mu) intra_i

    Which direction of the metric pays is found out, not presumed: inter_i is positive on average for the half that
    earns more. With mu = 1/2 and halves of equal size it is the mean-centred reward (Dr. GRPO). Aggregated as a sum
    over tokens, the upper clip bound at 1.28.

    Args:
        metric: mean ``entropy`` per token of the policy, ``length`` in learnable tokens, or ``random`` halves.
        mu: with ``mixing`` "fixed", weight of the comparison between the halves.
        mixing: or 1 - mu is the batch's mean reward (``inter_first``), 1 less it (``intra_first``), or follows a cosine
            with restarts every 40 steps after 30 steps of warm-up, from 0.6 to 0 (``cosine_intra_first``), or from 0 to
            0.6 (``cosine_inter_first``).
        alpha: below 1, presume a direction: the favoured half gets R - alpha m of the other half, the other half
            alpha R - m of the favoured one.
        favour: that half: ``low`` (for length, which is then its default) or ``high`` (for entropy).
        max_length: divide by this many tokens, as Dr. GRPO does; without, sums of tokens are averaged over responses.

    Source: "Conditional Advantage Estimation" (arXiv 2509.23962) and its released code. Which mu the paper tuned to for
    each task is not known; 1 is that of its script.
    """
    aggregation: Literal["sequence_sum", "constant"] = "sequence_sum" if max_length is None else "constant"
    return Method(
        credit=ConditionalAdvantage(metric, mu, mixing, alpha, favour),
        objective=ClippedSurrogate(aggregation=aggregation, max_length=max_length, clip_high=0.28),
    )


@dataclass(frozen=True, slots=True)
class ConditionalAdvantage:
    """The advantages of :func:`canon`, over the active samples of the advantage group.

    Equal metrics are told apart by order. A sample without active siblings has an advantage of zero. The number of
    steps taken is its state (for the schedules, and for ``random``).

    Raises:
        UsageError: ``mu`` outside [0, 1], ``alpha`` outside (0, 1].
    """

    metric: Metric = "entropy"
    mu: float = 1.0
    mixing: Mixing = "fixed"
    alpha: float = 1.0
    favour: Literal["low", "high"] | None = None
    seed: int = 0
    _steps: list[int] = field(default_factory=lambda: [0], init=False, repr=False, compare=False)

    group_relative = True

    def __post_init__(self) -> None:
        if not 0 <= self.mu <= 1 or not 0 < self.alpha <= 1:
            raise UsageError(
                f"credit 'S096': needs mu in [0, 1] and alpha in (0, 1], not {self.mu:g} and {self.alpha:g}"
            )

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"policy_entropy"} if self.metric == "entropy" else ())

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": f"group half by {self.metric}", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards, active = outcome(batch), batch.active
        step, self._steps[0] = self._steps[0], self._steps[0] + 1
        high = self.halves(self.measure(batch, step), batch)
        upper, lower = (group_mean(rewards, batch.group, active & half) for half in (high, ~high))
        own, other = torch.where(high, upper, lower), torch.where(high, lower, upper)
        favour = self.favour or ("low" if self.metric == "length" else "high")
        favoured = high == (favour == "high")
        inter = torch.where(favoured, rewards - self.alpha * other, self.alpha * rewards - other)
        mu = self.weight(step, float(rewards[active].mean()) if bool(active.any()) else 0.0)
        mixed = mu * inter + (1 - mu) * (rewards - own)
        alone = group_count(batch.group, active, rewards.dtype) < 2
        return broadcast(torch.where(alone, 0, mixed), batch)

    def measure(self, batch: Batch, step: int) -> Float[Tensor, "N"]:
        """Return the metric of each response."""
        if self.metric == "entropy":
            return row_mean(batch.signals["policy_entropy"], batch.mask)[:, 0].to(batch.rewards)
        if self.metric == "length":
            return batch.lengths.to(batch.rewards)
        return torch.from_numpy(np.random.default_rng([self.seed, step]).random(len(batch))).to(batch.rewards)

    @staticmethod
    def halves(metric: Float[Tensor, "N"], batch: Batch) -> Bool[Tensor, "N"]:
        """Say of each sample whether it is in its group's upper half, which has the odd one."""
        high = torch.zeros_like(batch.active)
        for group in batch.group[batch.active].unique():
            rows = ((batch.group == group) & batch.active).nonzero()[:, 0]
            order = rows[metric[rows].argsort(stable=True)]
            high[order[len(rows) // 2 :]] = True
        return high

    def weight(self, step: int, accuracy: float) -> float:
        """Return mu of a step (0-based) whose mean reward is ``accuracy``."""
        if self.mixing == "fixed":
            return self.mu
        if self.mixing == "inter_first":
            return 1 - accuracy
        if self.mixing == "intra_first":
            return accuracy
        if self.mixing == "cosine_intra_first":
            return 1 - restarting_cosine(step, 0.6, 0.0)
        return restarting_cosine(step, 1.0, 0.4)

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self._steps[0]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._steps[0] = int(state["steps"])


def restarting_cosine(step: int, top: float, bottom: float, warmup: int = 30, cycle: int = 40) -> float:
    """Rise linearly to ``top`` in ``warmup`` steps, then fall to ``bottom`` along half a cosine again and again."""
    if step < warmup:
        return top * (step + 1) / warmup
    phase = (step - warmup) % cycle / cycle
    return bottom + (top - bottom) * (1 + math.cos(math.pi * phase)) / 2


DR_GRPO = {
    "name": "grpo",
    "credit": {"name": "grpo", "normalise": False},
    "objective": {"name": "clip", "aggregation": "sequence_sum", "clip_high": 0.28},
}

claims(
    (
        CLAIM := Claim(
            paper="S096",
            text="At equal rollouts, a baseline from the half of the group with the other trend of entropy gives a "
            "better policy than the mean of the whole group.",
            setting="tree",
            arms={"canon": {"name": "S096"}, "dr_grpo": DR_GRPO},
            better="canon",
            baseline="dr_grpo",
            measure="final",
            options={"tasks": 16, "right": 2, "prompts": 8, "steps": 60, "optimizer": "adam"},
            sweep={"lr": (0.1, 0.3, 1.0, 3.0, 10.0)},
        )
    ),
    replace(CLAIM, setting="unseen", options={"prompts": 4, "group": 16}, sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)}),
    Claim(
        paper="S096",
        name="mechanism",
        text="Where longer responses are right more often, comparing each half by length with the other "
        "finds that out sooner than the mean of the whole group does.",
        setting="lengths",
        arms={"canon": {"name": "S096", "credit": {"metric": "length"}}, "dr_grpo": DR_GRPO},
        better="canon",
        baseline="dr_grpo",
        measure="area",
        options={"steps": 150},
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
        tuning=(1000, 1001),
    ),
)
