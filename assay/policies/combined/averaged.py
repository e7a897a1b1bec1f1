"""A copy of a policy that follows it slowly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from assay.errors import RunError
from assay.policies.base import Policy


@dataclass(slots=True)
class AveragedCopy:
    """Weights phi beside a policy's theta, a copy of them at first; :meth:`follow` moves them.

    Averages of weights of lower precision are kept in float32: rounded after each step they would stay where they are,
    as a step is less than such a weight's last place.

    Attributes:
        steps: how often it was told that the policy took a step.
    """

    steps: int = 0
    _policy: Policy | None = field(default=None, repr=False)
    _averages: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def policy(self) -> Policy:
        """The copy.

        Raises:
            RunError: it has not been started.
        """
        if self._policy is None:
            raise RunError("an averaged copy of the policy has not been started: it learns in a run")
        return self._policy

    def start(self, policy: Policy) -> None:
        """Copy a policy."""
        self._policy = policy.twin()
        self._policy.module.requires_grad_(False)
        # Of float32 and wider it is the weight itself, which then moves with its average.
        self._averages = [p.detach().to(torch.promote_types(p.dtype, torch.float32)) for p in self._weights()]
        self.steps = 0

    @torch.no_grad()
    def follow(self, policy: Policy, rate: float, every: int) -> None:
        """Be told of a step of the policy: after every ``every`` of them phi <- (1 - rate) phi + rate theta."""
        self.steps += 1
        if self.steps % every == 0:
            for phi, average, theta in zip(self._weights(), self._averages, policy.module.parameters(), strict=True):
                average.lerp_(theta.to(average), rate)
                phi.copy_(average)

    def _weights(self) -> Iterable[Tensor]:
        return self.policy.module.parameters()

    def _apart(self) -> list[Tensor]:
        """The averages that are kept apart from the weights they round to."""
        return [a for a, p in zip(self._averages, self._weights(), strict=True) if a.dtype != p.dtype]

    def state_dict(self) -> dict[str, Any]:
        return {"model": self.policy.module.state_dict(), "averages": self._apart(), "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.policy.module.load_state_dict(state["model"])
        for average, saved in zip(self._apart(), state["averages"], strict=True):
            average.copy_(saved)
        self.steps = state["steps"]
