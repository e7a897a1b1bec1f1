"""Any objective, but only some entries of the weights may change."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.policies.base import Policy
from assay.policies.regions import Region, matrices, region
from assay.registry import build, part
from assay.signals.base import Models


@part("objective", "masked")
@dataclass(slots=True, eq=False, weakref_slot=True)
class Masked:
    """Another objective, whose updates are confined to a region of each weight matrix as it was when RL began.

    Outside the region gradients are zero before they reach the optimiser, hence before their norm is taken, and weight
    decay is undone before the weights are next read: every pass, evaluation and checkpoint sees them bit for bit as
    they were. That takes a copy of the weights. The region goes with the checkpoint.

    Source: the masked fine-tuning of "The Path Not Taken" (arXiv 2511.08567).

    Args:
        objective: an objective part.
        region: see :func:`assay.policies.regions.region`.
        share: of the entries of a matrix that the region is made of; of ``off_principal`` the rest.
        rank: of the approximation that ``principal`` entries are large in, as a share of the smaller side.
        others: what becomes of embeddings, biases and norms.

    Raises:
        UsageError: ``share`` or ``rank`` out of range.
    """

    objective: Any = "clip"
    region: Region = "off_principal"
    share: float = 0.5
    rank: float = 0.05
    others: Literal["frozen", "trained"] = "frozen"
    _masks: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)
    _parameters: dict[str, torch.nn.Parameter] = field(default_factory=dict, init=False, repr=False)
    _frozen: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or not 0 < self.rank <= 1:
            raise UsageError(
                f"objective 'masked': share must be in (0, 1) and rank in (0, 1], not {self.share:g} and {self.rank:g}"
            )
        self.objective = build("objective", self.objective)

    @property
    def members(self) -> list[Any]:
        return [self.objective]

    def __getattr__(self, name: str) -> Any:
        # What the inner objective says of itself holds of this one.
        if name in ("needs", "live", "reads", "whole_groups", "zero_advantage_is_idle", "summary", "max_length"):
            return getattr(self.objective, name)
        raise AttributeError(name)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        loss: Loss = self.objective(logprobs, batch)
        return loss

    def prepare(self, batch: Batch) -> None:
        """Undo what the last update did outside the region."""
        self._restore()
        getattr(self.objective, "prepare", lambda _: None)(batch)

    # The learner's part: the trainer starts it with the policy and keeps its state.

    def check(self, policy: Policy) -> None:
        """Raise UsageError for a policy that trains adapters."""
        if any(".lora_" in name for name, _ in policy.module.named_parameters()):
            raise UsageError(
                "objective 'masked': a region is of the model's own matrices, which adapters leave alone; take "
                "model.lora out, or another objective"
            )

    @torch.no_grad()
    def start(self, models: Models) -> None:
        """Find the region of every matrix, and watch over the gradients for as long as this objective lives."""
        self.check(models.policy)
        module = models.policy.module
        inside, generator = matrices(module), torch.Generator()
        if self.region == "random":
            generator.manual_seed(int(models.rng.integers(2**62)))
        for name, parameter in module.named_parameters():
            if name in inside and parameter.requires_grad:
                mask = region(parameter, self.region, self.share, self.rank, generator)
            elif parameter.requires_grad and self.others == "frozen":
                mask = torch.zeros((), dtype=torch.bool, device=parameter.device)
            else:
                continue
            self._masks[name], self._parameters[name] = mask, parameter
            self._frozen[name] = parameter.clone()
            _watch(self, name, parameter)

    def masked(self, name: str, gradient: Tensor) -> Tensor:
        """Return a gradient of the parameter ``name`` with zeros outside the region."""
        return torch.where(self._masks[name], gradient, 0)

    @torch.no_grad()
    def _restore(self) -> None:
        for name, parameter in self._parameters.items():
            parameter.copy_(torch.where(self._masks[name], parameter, self._frozen[name]))

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Leave the weights as they are to be seen after the step; metric: the share of them that may change."""
        self._restore()
        free = sum(int(m.expand_as(self._frozen[n]).sum()) for n, m in self._masks.items())
        watched = sum(p.numel() for p in self._parameters.values())
        return {"masked/free": free / max(watched, 1)}

    def state_dict(self) -> dict[str, Any]:
        """Return the masks, eight entries a byte."""
        return {n: torch.from_numpy(np.packbits(m.cpu().numpy())) for n, m in self._masks.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the masks; the weights outside them are those of the checkpoint, which :meth:`start` has seen."""
        for name, packed in state.items():
            mask = self._masks[name]
            bits = np.unpackbits(packed.numpy(), count=mask.numel()).astype(bool)
            self._masks[name] = torch.from_numpy(bits).reshape(mask.shape).to(mask.device)


def _watch(objective: Masked, name: str, parameter: torch.nn.Parameter) -> None:
    """Mask the gradients of a parameter until ``objective`` is gone, which the parameter does not keep alive."""
    known = weakref.ref(objective)

    def hook(gradient: Tensor) -> Tensor:
        alive = known()
        return gradient if alive is None else alive.masked(name, gradient)

    weakref.finalize(objective, parameter.register_hook(hook).remove)
