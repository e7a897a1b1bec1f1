"""How far a video's motion is from Newton's laws, as a reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.ops.motion import Proxy, newton_loss
from assay.policies.flow.samples import video
from assay.registry import part
from assay.rewards.judged import judged


@part("reward", "newton")
@dataclass(frozen=True, slots=True)
class NewtonReward:
    """R_i = -(L_kin + ``weight`` L_mass) of a video, for policy gradients; objective ``newton`` goes straight through.

    A response that is no video like the real one has no motion, and is worth ``broken``.

    Args:
        weight, proxy, against, filters: see :class:`~assay.objectives.drawings.newton.Newton`.
        broken: see above.

    Raises:
        UsageError: a weight or filters below 0.
        RunError: a task without a solution, of which there is no real video.

    Source: NewtonRewards (arXiv 2512.00425).
    """

    weight: float = 30.0
    proxy: Proxy = "moment"
    against: Literal["real", "first"] = "real"
    filters: int = 8
    broken: float = -100.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf") or self.filters < 0:
            raise UsageError("reward 'newton': weight and filters must be 0 or more")

    def __call__(self, batch: Batch) -> Reward:
        kinematic, mass = torch.zeros(len(batch)), torch.zeros(len(batch))
        readable = torch.zeros(len(batch), dtype=torch.bool)
        for row, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            real = None if task.solution is None else video(task.solution)
            if real is None or len(real) < 4:
                raise RunError(
                    f"reward 'newton': task {task.id} has no real video of at least 4 frames as its solution"
                )
            drawn = video(episode.text)
            if drawn is not None and drawn.shape == real.shape:
                like = torch.from_numpy(real)[None] if self.against == "real" else None
                found = newton_loss(torch.from_numpy(drawn)[None], like, self.proxy, self.filters)
                kinematic[row], mass[row], readable[row] = found[0][0], found[1][0], True
        values = torch.where(readable, -(kinematic + self.weight * mass), self.broken).to(batch.rewards.dtype)
        return Reward(values, valid=judged(batch), terms={"kinematic": -kinematic, "mass": -mass})
