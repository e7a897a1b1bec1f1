"""S141: rewards as the log-probability of being better than a reference, so that their sum is a conjunction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.types import Task

KEPT = 65_536
"""Tasks whose levels are remembered; those seen longest ago are forgotten."""


@paper(
    "S141",
    "LSC",
    arxiv="2402.00742",
    seams=["reward", "credit", "objective"],
    essentials={
        "u = log sigmoid(r - r_ref), whose slope fades above the reference": "test_by_hand",
        "prompts below their reference pull harder than those above it: no division by a prompt's deviation": (
            "test_a_prompt_below_its_level_pulls_harder_than_one_above"
        ),
        "the sum over properties: the log-probability of being good in all of them": (
            "test_two_properties_are_a_conjunction"
        ),
        "r_ref of a prompt: the 85th percentile of rewards of the base policy's samples": (
            "test_where_levels_come_from"
        ),
        "r_ref of a property: the reward of a canned refusal": "test_a_canned_refusal_is_the_level_of_its_property",
        "only differences from the reference count": ("test_shifting_reward_and_reference_together_changes_nothing"),
        "RLHF with a divergence from the base policy": "test_the_objective_has_its_divergence",
        "in training: good in both properties wins over very good in one": (
            "test_it_learns_what_is_good_in_both_where_a_sum_learns_what_is_very_good_in_one"
        ),
    },
    choices=(
        "the prompt's mean is the baseline, where the paper's PPO has a critic",
        "the divergence's weight: 0, for the paper sweeps it",
        "where no level is stored, the quantile of the first group sampled for the prompt",
        "scale, a divisor of r - r_ref: 1",
    ),
)
def log_sigmoid_centred(
    terms: Mapping[str, Any] | None = None,
    references: Mapping[str, float] | None = None,
    quantile: float = 0.85,
    scale: float = 1.0,
    kl_weight: float = 0.0,
) -> Method:
    """GRPO without its division, every reward passed through a log-sigmoid centred at a reference level of its prompt.

        R_i = sum_k u_ik,   u_ik = log sigmoid((r_ik - c_k(q)) / scale),   A_i = R_i - mean R

    With Bradley-Terry rewards u_k is the log-probability that the response is better than one at the level c_k in
    property k, and the sum that it is better in all of them. Far above the level u gains almost nothing, (slope
    1 - sigmoid(r - c)), so that effort goes to prompts and properties that are still below it. Divided by the deviation
    of a prompt's rewards all prompts would pull alike, and two-valued verdicts would teach what they do untransformed.
    Adding a constant to r_k and c_k changes nothing.

    Args:
        terms: reward parts by name; by default the verdict's score, whose differences are small: take a scale of about
            0.1 then.
        references: levels c_k of every prompt, e.g. the reward of a canned refusal. Before them goes
            ``task.meta["reward_reference"]``, a number or a mapping by name, see :func:`with_levels`. Where there is
            neither, c_k(q) is this quantile of the rewards of the first group sampled for the prompt, and stays so.
        quantile: in [0, 1], see :func:`level`.
        scale: above 0; of r in units of Bradley-Terry rewards.
        kl_weight: beta of the paper's E[R] - beta KL.

    Source: "Transforming and Combining Rewards for Aligning Large Language Models" (arXiv 2402.00742). To take a level
    from the first group of a prompt, where none is stored, is a choice.
    """
    return Method(
        reward=CentredRewards(terms, references, quantile, scale),
        credit=GRPO(normalise=False),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


class CentredRewards(Around):
    """R_i = sum_k log sigmoid((r_ik - c_k(q)) / scale), see :func:`log_sigmoid_centred`.

    Terms: each r_k under its name, and u_k as ``name/centred``. Levels taken from first groups are in the checkpoint.

    Args:
        terms, references, quantile, scale: see there.

    Raises:
        UsageError: no terms, a level for none of them, quantile or scale out of range.
        RunError: a stored level that is no finite number; says of which task.
    """

    def __init__(
        self,
        terms: Mapping[str, Any] | None = None,
        references: Mapping[str, float] | None = None,
        quantile: float = 0.85,
        scale: float = 1.0,
    ):
        terms = {"verdict": "verdict"} if terms is None else terms
        if not terms:
            raise UsageError("reward 'S141' needs terms")
        if unknown := sorted(set(references or {}) - set(terms)):
            raise UsageError(f"reward 'S141' has a reference for {unknown[0]!r} but no such term")
        if not 0 <= quantile <= 1 or scale <= 0:
            raise UsageError(f"reward 'S141': quantile {quantile:g} is in [0, 1] and scale {scale:g} above 0")
        super().__init__(terms)
        self.references, self.quantile, self.scale = dict(references or {}), quantile, scale
        self.first: dict[str, dict[str, float]] = {}

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        valid = valid_in(found, batch)
        values, logged = torch.zeros_like(batch.rewards), terms_of(found)
        for name, reward in found.items():
            centred = (reward.values - self.levels(name, reward.values, valid, batch)) / self.scale
            logged[f"{name}/centred"] = torch.nn.functional.logsigmoid(centred)
            values = values + logged[f"{name}/centred"]
        while len(self.first) > KEPT:
            del self.first[next(iter(self.first))]
        return Reward(values, valid=valid, terms=logged)

    def levels(self, name: str, rewards: Float[Tensor, "N"], valid: Tensor, batch: Batch) -> Float[Tensor, "N"]:
        """Return c_k of each sample's prompt."""
        out = torch.zeros_like(rewards)
        for group in batch.prompt_group.unique().tolist():
            rows = (batch.prompt_group == group).nonzero()[:, 0]
            task = batch.tasks[int(rows[0])]
            stored = task.meta.get("reward_reference")
            stored = stored.get(name) if isinstance(stored, Mapping) else stored
            stored = self.references.get(name) if stored is None else stored
            if stored is None:
                seen = self.first.pop(task.id, {})
                usable = rewards[rows[valid[rows]]].tolist()
                if name not in seen and usable:
                    seen = {**seen, name: level(usable, self.quantile)}
                if seen:
                    self.first[task.id] = seen
                stored = seen.get(name, 0.0)
            if not isinstance(stored, int | float) or not math.isfinite(stored):
                raise RunError(f"task {task.id}: the reference level {stored!r} of {name!r} is no finite number")
            out[rows] = float(stored)
        return out

    def state_dict(self) -> dict[str, Any]:
        return {"first": [[task, dict(levels)] for task, levels in self.first.items()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.first = {task: dict(levels) for task, levels in state["first"]}


def level(rewards: Sequence[float], quantile: float = 0.85) -> float:
    """Return the quantile of rewards of responses by the policy that training starts from, between ranks linearly.

    Raises:
        UsageError: no rewards, or a quantile outside [0, 1].
    """
    if not rewards or not 0 <= quantile <= 1:
        raise UsageError(f"a level needs rewards and a quantile in [0, 1], not {len(rewards)} and {quantile:g}")
    return float(torch.quantile(torch.tensor(list(rewards), dtype=torch.float64), quantile))


def with_levels(task: Task, rewards: Mapping[str, Sequence[float]], quantile: float = 0.85) -> Task:
    """Return ``task`` with the levels of its prompt, by term, from rewards of samples of the starting policy."""
    levels = {name: level(values, quantile) for name, values in rewards.items()}
    return replace(task, meta={**task.meta, "reward_reference": levels})


TERMS = {name: {"name": "part", "part": name} for name in ("helpful", "harmless")}

claims(
    Claim(
        paper="S141",
        text="Where one response is very good in one property and bad in another, and one is good enough in both, the "
        "sum of rewards chooses the first and the sum of centred log-sigmoids the second.",
        setting="choices",
        evidence="construction",
        arms={
            "raw": {
                "name": "grpo",
                "reward": {"name": "weighted", "terms": TERMS},
                "credit": {"name": "grpo", "normalise": False},
            },
            "centred": {
                "name": "S141",
                "reward": {"name": "S141", "terms": TERMS, "references": {"helpful": 0.0, "harmless": 0.0}},
            },
        },
        better="centred",
        baseline="raw",
        measure="right",
        options={
            # Right is what beats the reference in both; the others' raw sums are greater.
            "choices": [
                [[1.0, True, {"helpful": 2.0, "harmless": 2.0}]],
                [[1.0, False, {"helpful": 7.0, "harmless": -2.0}]],
                [[1.0, False, {"helpful": -2.0, "harmless": 7.0}]],
            ],
            "steps": 100,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
