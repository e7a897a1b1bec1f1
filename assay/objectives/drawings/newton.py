"""Learns videos whose motion obeys Newton, straight through the steps that draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import RunError, UsageError
from assay.ops.motion import Proxy, newton_loss
from assay.policies.flow.samples import read
from assay.registry import part


@part("objective", "newton")
@dataclass(frozen=True, slots=True)
class Newton:
    """L = L_kin + ``weight`` L_mass of the samples, differentiated through their last ``steps`` denoising steps.

    L_kin is 0 where acceleration is constant, see :func:`assay.ops.motion.kinematic_loss`. It goes with the square of
    the motion, so that alone it is also met by less of it, or by an object that fades; L_mass keeps the object.

    Args:
        weight: w.
        steps: k of the live quantity ``sample@k``; these steps have no noise.
        proxy: what velocity is read from.
        against: what must look alike: the task's ``real`` video, its solution, or the sample's own ``first`` frame.
        filters: random features of an object's looks, beside its light.

    Raises:
        UsageError: an option out of range; before the first update, samples that are no videos of at least 4 frames.
        RunError: a task without a solution, of which there is no real video.

    Source: NewtonRewards (arXiv 2512.00425).
    """

    weight: float = 30.0
    steps: int = 1
    proxy: Proxy = "moment"
    against: Literal["real", "first"] = "real"
    filters: int = 8

    reads = "nothing"
    ignores_rewards = True

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf") or self.steps < 1 or self.filters < 0:
            raise UsageError("objective 'newton': weight and filters must be 0 or more, steps at least 1")

    @property
    def live(self) -> frozenset[str]:
        return frozenset({f"sample@{self.steps}"})

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        shape = _shape(batch)
        samples = batch.live[f"sample@{self.steps}"].reshape(len(batch), *shape)
        real = _real(batch, shape).to(samples) if self.against == "real" else None
        kinematic, mass = newton_loss(samples, real, self.proxy, self.filters)
        count = batch.totals.sequences if batch.totals is not None else float(batch.active.sum())
        own = batch.active
        value = (kinematic + self.weight * mass)[own].sum() / max(count, 1) + 0 * logprobs.sum()
        metrics = {"kinematic": kinematic[own].mean(), "mass": mass[own].mean()} if bool(own.any()) else {}
        return Loss(value, {name: float(x.detach()) for name, x in metrics.items()})


def _shape(batch: Batch) -> tuple[int, ...]:
    drawing = batch.episodes[0].drawing
    shape = () if drawing is None else drawing.states.shape[1:]
    if len(shape) != 4 or shape[0] < 4:
        raise UsageError(
            "objective 'newton' learns from drawn videos of at least 4 frames, not from samples of shape "
            f"{list(shape)}; set model.flow.shape"
        )
    return shape


def _real(batch: Batch, shape: tuple[int, ...]) -> Tensor:
    texts = [task.solution for task in batch.tasks]
    for task, text in zip(batch.tasks, texts, strict=True):
        if text is None:
            raise RunError(f"objective 'newton': task {task.id} has no real video as its solution; set against='first'")
    return torch.from_numpy(np.stack([read(text or "", shape) for text in texts]))
