"""AdamW whose moments take a byte each: torchao's, as a run needs it. Importing this needs torchao."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import torch
import torchao.optim
from torch import Tensor
from torchao.optim.subclass_8bit import OptimState8bit

from assay.learning.master import KeepsPrecision

MOMENTS = {"exp_avg": True, "exp_avg_sq": False}
"""The moments, and whether they have a sign."""


class AdamW8bit(KeepsPrecision, torchao.optim.AdamW8bit):
    """AdamW with blockwise quantised moments (Dettmers et al., arXiv 2110.02861); steps are computed in float32.

    Each block of 256 numbers has a scale of its own, so a moment takes 1 + 4/256 bytes. Weights of fewer than 4096
    elements, or of a size that blocks do not divide, have float32 moments. A bfloat16 weight is rounded up or down at
    random, in proportion, by torch's generator. The step is compiled once for each shape of weight (a C++ compiler on
    a CPU, Triton on a GPU). The state dict holds plain tensors, ``exp_avg.codes`` and ``exp_avg.scale``, so that
    reading it takes no torchao.

    Args:
        parameters: weights of float32 or bfloat16, or groups of them as torch's optimisers take them.
        lr: learning rate; a number, which may change between steps.
        betas: decay of the two moments.
    """

    def __init__(self, parameters: Iterable[Any], lr: float, betas: tuple[float, float] = (0.9, 0.999)):
        options = {"lr": lr, "betas": betas, "weight_decay": 0.0, "bf16_stochastic_round": True}
        super().__init__(parameters, **options)  # type: ignore[arg-type]
        for group in self.param_groups:
            group["lr"] = lr

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with the weights' gradients; a weight without one is left alone."""
        # As a number, a learning rate that changes would be compiled in anew at each step.
        rates = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), dtype=torch.float32)
        try:
            return super().step(closure)
        finally:
            for group, rate in zip(self.param_groups, rates, strict=True):
                group["lr"] = rate

    def _new_buffer(self, p: Tensor, signed: bool) -> Tensor:
        buffer = super()._new_buffer(p, signed)
        # In bfloat16 a second moment stands still: it moves by a thousandth of what there is to add.
        return buffer.float() if buffer.dtype == torch.bfloat16 and not _quantised(buffer) else buffer

    def state_dict(self) -> dict[str, Any]:
        """As torch's, of plain tensors."""
        state = super().state_dict()
        return {**state, "state": {index: _plain(values) for index, values in state["state"].items()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what :meth:`state_dict` gave."""
        weights = chain.from_iterable(group["params"] for group in self.param_groups)
        indices = chain.from_iterable(group["params"] for group in state_dict["param_groups"])
        of = dict(zip(indices, weights, strict=True))
        state = {index: self._rebuilt(of[index], values) for index, values in state_dict["state"].items()}
        super().load_state_dict({**state_dict, "state": state})

    def _rebuilt(self, weight: Tensor, values: dict[str, Any]) -> dict[str, Any]:
        state = {k: v for k, v in values.items() if "." not in k}
        for name, signed in MOMENTS.items():
            if f"{name}.codes" in values:
                state[name] = self._new_buffer(weight, signed)
                state[name].codes.copy_(values[f"{name}.codes"])
                state[name].scale.copy_(values[f"{name}.scale"])
        return state


def _quantised(moment: Tensor) -> bool:
    return isinstance(getattr(moment, "_local_tensor", moment), OptimState8bit)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, OptimState8bit):
            state |= {f"{name}.codes": value.codes, f"{name}.scale": value.scale}
        else:
            state[name] = value
    return state
