"""Samples of a flow of which some steps are noisy, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.engines.flow.sampling import FlowSampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import SingleTurn
from assay.types import Ask, Group, Sampler


@part("rollout", "denoise")
@dataclass(frozen=True, slots=True)
class Denoise:
    """Draws ``ask.n`` samples with a flow in ``rollout.max_tokens`` steps; those of a window are noisy, and learned.

    Args:
        sampling: how many steps, and how much heat.
        early: in place of ``end``: the ``trained`` noisy steps begin within this share of all steps.
        begin, end, trained, branch, noise, sampler: see :class:`~assay.engines.flow.sampling.FlowSampling`.

    Raises:
        UsageError: the window has no room for the noisy steps; ``early`` is no share, or stands beside ``end``.
    """

    sampling: Sampling
    begin: int = 0
    end: int | None = None
    trained: int | None = None
    branch: int = 1
    noise: float | None = None
    sampler: Sampler | None = None
    early: float | None = None

    def __post_init__(self) -> None:
        if self.early is not None and not (0 <= self.early <= 1 and self.end is None):
            raise UsageError("rollout 'denoise': early is a share of the steps, 0 to 1, in place of end")
        self.how.window()

    @property
    def how(self) -> FlowSampling:
        """The sampling of every request."""
        end = self.end
        if self.early is not None:
            end = int(self.early * self.sampling.max_tokens) + (self.trained or 1)
        return FlowSampling(
            self.sampling.max_tokens,
            self.sampling.temperature,
            begin=self.begin,
            end=end,
            trained=self.trained,
            branch=self.branch,
            noise=self.noise,
            sampler=self.sampler,
        )

    def check(self, policy: object) -> None:
        """Raise UsageError for a policy that is no flow."""
        check_draws(policy, "denoise")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return SingleTurn(self.how).collect(asks, engine, rng)


def check_draws(policy: object, name: str) -> None:
    """Raise UsageError for a policy that does not draw, which rollout ``name`` wants."""
    if not getattr(policy, "draws", False):
        raise UsageError(f"rollout {name!r} draws with a flow; set model.source=flow")
