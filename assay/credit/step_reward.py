"""What steps earned, compared and spread over their tokens, beside what the response as a whole earned."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.turns import Kind, Singleton, normalise
from assay.registry import build, part
from assay.returns import returns_to_go
from assay.rewards.process.summed import step_ends, sum_by_step
from assay.signals.steps import Steps

Place = Literal["step_end", "broadcast", "suffix_sum"]
Within = Literal["response", "group", "batch"]
UNKNOWN = 1 << 62


@part("credit", "step_reward")
@dataclass(slots=True)
class StepReward:
    """A_it = O_i + alpha P_it, or with ``convex`` (1 - alpha) O_i + alpha P_it.

    O_i is another credit of the responses' own rewards R_i alone. P comes of what steps earned: r_ik is the sum of the
    rewards placed on the tokens of step k, and ``place`` takes it to tokens t:

    - ``step_end``: r_ik on the last learnable token of step k, 0 on others;
    - ``broadcast``: r_ik on every token of step k;
    - ``suffix_sum``: the sum of r_il over all steps l that end at t or later.

    Values are compared by ``kind`` within the ``response``, its ``group`` or the ``batch``: with ``unit = "step"`` the
    r_ik of all steps, before they are placed; with ``unit = "token"`` what stands on all learnable tokens, afterwards.
    A step counts once, or as often as it has tokens. With ``merged`` there is no O: A = P of alpha r_ik + R_i (R_i on
    each step under ``broadcast``, else on the last), or of what is placed, + R_i (on the last token alone under
    ``step_end``).

    A response whose reward has the term ``scored`` at 0 has no steps: it counts in no statistics and its P is 0. Where
    no step of the batch counts, A = O. Tokens outside steps belong to none, and what is placed there is not read;
    steps without a learnable token count for nothing.

    With ``final`` alpha decays: weight (final / weight)^(n / N) after n steps, ``final`` from n = N on; n is in
    the checkpoint.

    Source: process supervision of DeepSeekMath (arXiv 2402.03300), section 4.1.3: ``suffix_sum`` within the ``group``,
    without O. By others: CAPO (2508.02298) merges, broadcasts and compares tokens; RL Tango (2505.15034) adds decaying
    suffix sums. Of turns in place of steps see ``turn_group``; a leave-one-out baseline per token or step has
    ``step_rloo``, which with steps of one token, ``baseline = "step"`` and ``silence_ends = false`` is the credit of
    PRIME (2502.01456).

    Args:
        steps: how responses are cut; as in the reward.
        place, unit, within: see above.
        kind, ddof, epsilon, singleton: of the comparison, see :func:`assay.ops.turns.normalise`.
        outcome: the credit O (name, table or part); ``None`` for O = 0.
        weight: alpha, at least 0; in [0, 1] with ``convex``.
        convex: see above.
        final: alpha in the end, above 0 and at most ``weight``; ``None`` keeps it as it is.
        over: N; the run's steps if left out.
        merged: see above.

    Raises:
        UsageError: ``weight``, ``final`` or ``over`` out of range; with ``merged``, which has no O, ``convex`` or an
            ``outcome``.
    """

    steps: Steps = field(default_factory=Steps)
    place: Place = "broadcast"
    unit: Literal["step", "token"] = "step"
    within: Within = "group"
    kind: Kind = "center_std"
    ddof: int = 1
    epsilon: float = 1e-6
    singleton: Singleton = "zero"
    outcome: Any = "grpo"
    weight: float = 1.0
    convex: bool = False
    final: float | None = None
    over: int | None = None
    merged: bool = False
    _done: int = field(default=0, init=False, repr=False, compare=False)
    _run: int = field(default=UNKNOWN, init=False, repr=False, compare=False)

    level = "token"

    def __post_init__(self) -> None:
        if self.weight < 0 or (self.convex and self.weight > 1):
            bound = "in [0, 1] with convex" if self.convex else "at least 0"
            raise UsageError(f"credit 'step_reward': weight {self.weight:g} must be {bound}")
        if self.final is not None and not 0 < self.final <= self.weight:
            raise UsageError(
                f"credit 'step_reward': final {self.final:g} must be above 0 and at most weight {self.weight:g}"
            )
        if self.over is not None and self.over < 1:
            raise UsageError(f"credit 'step_reward': over {self.over} must be at least 1")
        if self.merged and (self.convex or self.outcome not in ("grpo", None)):
            raise UsageError("credit 'step_reward': with merged there is no credit of the outcome; leave out both")
        self.outcome = None if self.merged or self.outcome is None else build("credit", self.outcome)

    @property
    def members(self) -> list[Any]:
        return [] if self.outcome is None else [self.outcome]

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.steps, *getattr(self.outcome, "needs", ())})

    @property
    def group_relative(self) -> bool:
        return (self.within == "group" and self.kind != "none") or getattr(self.outcome, "group_relative", False)

    @property
    def summary(self) -> dict[str, str]:
        scale = {"center_std": "std", "median_mad": "median deviation"}.get(self.kind, "none")
        of = "none" if self.kind == "none" else f"{self.unit}s of the {self.within}"
        return {"baseline": of, "normalisation": scale}

    @property
    def alpha(self) -> float:
        """The weight of steps as it is now."""
        if self.final is None:
            return self.weight
        share = min(self._done / (self.over or self._run), 1.0)
        return self.weight * math.exp(share * math.log(self.final / self.weight))

    def planned(self, steps: int) -> None:
        """Take in how many steps the run has."""
        self._run = max(steps, 1)

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        alpha, self._done = self.alpha, self._done + 1
        own = torch.zeros_like(batch.advantages)
        if self.outcome is not None:
            own = self.outcome(replace(batch, token_rewards=None))
        mask = batch.mask & batch.active[:, None]
        values, known = step_values(batch)
        if not self.merged and not bool(known.any()):
            return own
        pool = {"group": batch.group, "batch": torch.zeros_like(batch.group), "response": torch.arange(len(batch))}
        key = pool[self.within]
        if self.merged:
            values = alpha * values
        if self.unit == "step":
            values = self._compared(self._joined(values, known, batch), known, key)
        spread = placed(values, known, batch, self.place)
        if self.unit == "token":
            where = mask if self.merged else mask & stepped(batch)[:, None]
            spread = self._compared(self._joined(spread, where, batch), where, key)
        if self.merged:
            return torch.where(mask, spread, 0)
        return torch.where(mask, (1 - alpha if self.convex else 1.0) * own + alpha * spread, 0)

    def _compared(
        self, x: Float[Tensor, "N M"], where: Bool[Tensor, "N M"], key: Int[Tensor, "N"]
    ) -> Float[Tensor, "N M"]:
        """Compare the cells in ``where`` with those of rows of the same key; 0 elsewhere."""
        keys = key[:, None].expand_as(x)[where]
        count = torch.ones(len(keys), dtype=torch.bool)
        found = normalise(x[where], keys, count, self.kind, self.ddof, self.epsilon, self.singleton)
        return torch.zeros_like(x).masked_scatter(where, found)

    def _joined(self, x: Float[Tensor, "N M"], where: Bool[Tensor, "N M"], batch: Batch) -> Float[Tensor, "N M"]:
        """With the responses' own rewards on all cells in ``where``, or on the last, where these are merged."""
        if not self.merged:
            return x
        there = torch.arange(where.shape[1])
        last = there == torch.where(where, there, -1).amax(-1, keepdim=True)
        every = self.place == "broadcast" or (self.unit == "token" and self.place == "suffix_sum")
        return x + torch.where(where & (last | every), batch.rewards[:, None], 0)

    def state_dict(self) -> dict[str, Any]:
        return {"done": self._done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._done = int(state["done"])


def stepped(batch: Batch) -> Bool[Tensor, "N"]:
    """Active samples whose steps have rewards: all but those whose reward has the term ``scored`` at 0."""
    told = batch.reward_terms.get("scored")
    return batch.active if told is None else batch.active & (told != 0)


def step_values(batch: Batch) -> tuple[Float[Tensor, "N K"], Bool[Tensor, "N K"]]:
    """Return what was placed on each step's learnable tokens, and which steps count, see :class:`StepReward`."""
    steps = batch.signals["steps"]
    placed_ = torch.zeros_like(batch.advantages) if batch.token_rewards is None else batch.token_rewards
    values = sum_by_step(torch.where(batch.mask, placed_, 0), steps)
    known = sum_by_step(batch.mask.to(values.dtype), steps) > 0
    known = known & stepped(batch)[:, None]
    return torch.where(known, values, 0), known


def placed(
    values: Float[Tensor, "N K"], known: Bool[Tensor, "N K"], batch: Batch, place: Place
) -> Float[Tensor, "N T"]:
    """Return values of steps as they stand on learnable tokens, see :class:`StepReward`; 0 elsewhere."""
    steps = batch.signals["steps"]
    here = batch.mask & (steps >= 0)
    own = torch.where(here, torch.where(known, values, 0).gather(1, steps.clamp(min=0)), 0)
    if place == "broadcast":
        return own
    ends = torch.where(step_ends(steps, batch.mask), own, 0)
    return ends if place == "step_end" else returns_to_go(ends, batch.mask)
