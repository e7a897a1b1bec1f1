"""Rewards spread over [0, 1] from the band that they have lately been in."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.ops import group_count
from assay.registry import part
from assay.rewards.shaping.transforms import Bent
from assay.rewards.wrapped import terms_of, valid_in


@part("reward", "running_range")
class RunningRange(Bent):
    """R_i = sigmoid(slope (r_i - t) / (hi - lo)), t, lo and hi being quantiles of the last ``memory`` rewards.

    For scores of a model that all lie in a narrow band, such as cosines from 0.85 to 0.95: differences about the
    threshold t are stretched to the range of other terms, those far from it pressed together. The batch at hand counts,
    and within it the map is the same for all prompts, so that order is kept. Where hi - lo is below ``epsilon``, lo and
    hi are the least and greatest of the prompt's group, and t is between them; where these are as close, R_i = 1/2. The
    rewards remembered are in the checkpoint.

    Args:
        inner: the reward r.
        threshold, low, high: which quantiles t, lo and hi are.
        slope: above 0.
        memory: rewards remembered, 2 or more.
        epsilon: above 0.

    Raises:
        UsageError: an option out of range.
        RunError: a reward that is not finite; says whose.
    """

    def __init__(
        self,
        inner: Any = "verdict",
        threshold: float = 0.5,
        low: float = 0.05,
        high: float = 0.95,
        slope: float = 10.0,
        memory: int = 2048,
        epsilon: float = 1e-6,
    ):
        if not 0 <= low < high <= 1 or not 0 <= threshold <= 1 or memory < 2 or min(slope, epsilon) <= 0:
            raise UsageError(
                f"reward 'running_range': 0 <= low {low:g} < high {high:g} <= 1 must hold, threshold {threshold:g} be "
                f"in [0, 1], memory {memory} 2 or more, and slope {slope:g} and epsilon {epsilon:g} above 0"
            )
        super().__init__(inner)
        self.quantiles, self.slope, self.epsilon = (threshold, low, high), slope, epsilon
        self.seen: deque[float] = deque(maxlen=memory)

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        raw, valid = found["raw"], valid_in(found, batch)
        for i in (valid & ~raw.values.isfinite()).nonzero()[:, 0].tolist():
            raise RunError(
                f"reward 'running_range': row {i} (task {batch.tasks[i].id}) has the reward {float(raw.values[i])}"
            )
        self.seen.extend(raw.values[valid].tolist())
        values = self.spread(raw.values, batch, valid)
        return Reward(values, raw.tokens, valid, {**terms_of(found), "spread": values})

    def spread(self, values: Float[Tensor, "N"], batch: Batch, valid: Bool[Tensor, "N"]) -> Float[Tensor, "N"]:
        """Return what the values become, by the rewards remembered."""
        if not self.seen:
            return torch.full_like(values, 0.5)
        middle, low, high = np.quantile(np.fromiter(self.seen, dtype=np.float64), self.quantiles).tolist()
        if high - low >= self.epsilon:
            return torch.sigmoid(self.slope * (values - middle) / (high - low))
        least, most = extremes(values, batch, valid)
        wide = most - least >= self.epsilon
        share = (values - (least + most) / 2) / torch.where(wide, most - least, 1)
        return torch.where(wide, torch.sigmoid(self.slope * share), 0.5)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": list(self.seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seen.clear()
        self.seen.extend(float(x) for x in state["seen"])


def extremes(
    values: Float[Tensor, "N"], batch: Batch, valid: Bool[Tensor, "N"]
) -> tuple[Float[Tensor, "N"], Float[Tensor, "N"]]:
    """Return the least and the greatest valid value of each sample's prompt group; zeros where none is valid."""
    groups = batch.prompt_group
    size = int(groups.max()) + 1 if len(groups) else 0
    none = group_count(groups, valid, values.dtype) == 0
    ends = []
    for reduce, empty in (("amin", torch.inf), ("amax", -torch.inf)):
        start = torch.full((size,), empty, dtype=values.dtype, device=values.device)
        found = start.scatter_reduce(0, groups, torch.where(valid, values, empty), reduce)[groups]
        ends.append(torch.where(none, 0, found))
    return ends[0], ends[1]
