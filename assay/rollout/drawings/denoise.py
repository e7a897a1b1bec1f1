"""Samples of a flow of which some steps are noisy, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.engines.flow.sampling import FlowSampling
from assay.errors import UsageError
from assay.ops.denoising import Sampler
from assay.registry import part
from assay.rollout.single_turn import SingleTurn
from assay.types import Ask, Group


@part("rollout", "denoise")
@dataclass(frozen=True, slots=True)
class Denoise:
    """Draws ``ask.n`` samples with a flow in ``rollout.max_tokens`` steps; those of a window are noisy, and learned.

    Args:
        sampling: how many steps, and how much heat.
        begin, end, trained, branch, noise, sampler: see :class:`~assay.engines.flow.sampling.FlowSampling`.

    Raises:
        UsageError: the window has no room for the noisy steps.
    """

    sampling: Sampling
    begin: int = 0
    end: int | None = None
    trained: int | None = None
    branch: int = 1
    noise: float | None = None
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        self.how.window()

    @property
    def how(self) -> FlowSampling:
        """The sampling of every request."""
        return FlowSampling(
            self.sampling.max_tokens,
            self.sampling.temperature,
            begin=self.begin,
            end=self.end,
            trained=self.trained,
            branch=self.branch,
            noise=self.noise,
            sampler=self.sampler,
        )

    def check(self, policy: object) -> None:
        """Raise UsageError for a policy that is no flow."""
        if getattr(policy, "engine", "") != "flow":
            raise UsageError("rollout 'denoise' draws with a flow; set model.source=flow")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return SingleTurn(self.how).collect(asks, engine, rng)
