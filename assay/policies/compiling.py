"""Decoder layers through ``torch.compile``, where gradients are wanted."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch

from assay.errors import UsageError
from assay.policies.attention import packed
from assay.policies.logprobs import compiled


def compile_layers(model: Any) -> int:
    """Let every decoder layer of a transformers model run compiled in passes with a gradient; return how many do.

    Norms, rotations, activations and residual sums become few kernels; matrix products and attention stay calls to
    theirs. One compilation serves all layers of a class and passes of any length. Passes without a gradient (sampling,
    signals) run as before: they come in too many shapes.

    Raises:
        UsageError: torch cannot compile here.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer

    _check_compiler(next(model.parameters()).device)
    # What a layout does is gathers and library calls: there is nothing to fuse.
    packed.register(opaque=True)
    layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
    for layer in layers:
        layer.forward = MethodType(_forward, layer)
    return len(layers)


def _forward(self: Any, *arguments: Any, **options: Any) -> Any:
    forward = type(self).forward
    return (compiled(forward) if torch.is_grad_enabled() else forward)(self, *arguments, **options)


def _check_compiler(device: torch.device) -> None:
    try:
        compiled(_trial)(torch.zeros(2, device=device))
    except Exception as error:  # compilers raise whatever they trip over
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(f"model.compile: torch.compile does not work here (no C++ compiler?): {lines[0]}") from error


def _trial(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1
