"""AdamW for weights of low precision: float32 copies of them take the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

CHUNK = 2**26
"""Most elements whose gradients are widened at once, where torch cannot hold them in float32 from the start."""


def is_low(weight: Tensor) -> bool:
    """Whether a weight has fewer bits than float32."""
    return weight.dtype in (torch.bfloat16, torch.float16)


class KeepsPrecision(torch.optim.Optimizer):
    """An optimiser whose state comes back as it was saved; torch's would take on the precision of the weights."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As :meth:`torch.optim.Optimizer.load_state_dict`, on the weights' devices, in the state's own precision."""
        super().load_state_dict({**state_dict, "state": {}})
        saved = chain.from_iterable(g["params"] for g in state_dict["param_groups"])
        own = chain.from_iterable(g["params"] for g in self.param_groups)
        for index, weight in zip(saved, own, strict=True):
            if index in state_dict["state"]:
                self.state[weight] = {
                    k: v.to(weight.device, copy=True) if isinstance(v, Tensor) else v
                    for k, v in state_dict["state"][index].items()
                }


class MasterAdamW(KeepsPrecision):
    """AdamW (Loshchilov and Hutter, arXiv 1711.05101) whose steps are those of float32 weights.

    The state of a bfloat16 or float16 weight holds its ``master``, a float32 copy from before the first step; moments
    are float32. After a step the weight is the master rounded to nearest. Where torch allows a gradient of another
    precision than its weight (``Tensor.grad_dtype``), micro-batches add up in float32 too. Weights of float32 among the
    others are their own masters.

    Args:
        parameters: weights, or groups of them as torch's optimisers take them.
        lr: learning rate.
        betas: decay of the two moments.
        weight_decay: of groups that say nothing else.
        eps: added to the root of the second moment.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        eps: float = 1e-8,
    ):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "eps": eps})
        for group in self.param_groups:
            for weight in group["params"]:
                if is_low(weight) and hasattr(weight, "grad_dtype"):
                    weight.grad_dtype = torch.float32

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with the weights' gradients; a weight without one is left alone."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weights in _chunks(p for p in group["params"] if p.grad is not None):
                states = [self.state[w] or self._begin(w) for w in weights]
                masters = [s.get("master", w) for s, w in zip(states, weights, strict=True)]
                adamw(
                    masters,
                    [w.grad.to(m.dtype) for w, m in zip(weights, masters, strict=True) if w.grad is not None],
                    [s["exp_avg"] for s in states],
                    [s["exp_avg_sq"] for s in states],
                    [],
                    [s["step"] for s in states],
                    fused=True,
                    amsgrad=False,
                    beta1=group["betas"][0],
                    beta2=group["betas"][1],
                    lr=group["lr"],
                    weight_decay=group["weight_decay"],
                    eps=group["eps"],
                    maximize=False,
                )
                for weight, master in zip(weights, masters, strict=True):
                    if master is not weight:
                        weight.copy_(master)
        return loss

    def _begin(self, weight: Tensor) -> dict[str, Tensor]:
        state = self.state[weight]
        # The fused kernel reads the count on the weights' device.
        state["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
        master = weight
        if is_low(weight):
            master = state["master"] = weight.detach().float()
        state["exp_avg"] = torch.zeros_like(master, memory_format=torch.preserve_format)
        state["exp_avg_sq"] = torch.zeros_like(master, memory_format=torch.preserve_format)
        return state


def _chunks(weights: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Gather weights into lists of one precision and about :data:`CHUNK` elements."""
    chunk: list[Tensor] = []
    for weight in weights:
        full = sum(w.numel() for w in chunk) + weight.numel() > CHUNK
        if chunk and (full or chunk[-1].dtype != weight.dtype):
            yield chunk
            chunk = []
        chunk.append(weight)
    if chunk:
        yield chunk
