"""A scorer that reads a solution twice, once with its steps in reverse, and puts both scores together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.rewards.step_models.examples import StepExample
from assay.rewards.step_models.training import Logits
from assay.types import Task


class Gate(torch.nn.Module):
    """g_k = sigmoid(W relu(V [h_k forwards, h_k backwards])), the weight of the score that was read forwards.

    States are read and not changed: no gradient goes through the gate into what made them.

    Args:
        width: of a state, and of the layer between. It begins at g = 1/2.
    """

    def __init__(self, width: int):
        super().__init__()
        self.inner = torch.nn.Linear(2 * width, width)
        self.outer = torch.nn.Linear(width, 1)
        torch.nn.init.zeros_(self.outer.weight)
        torch.nn.init.zeros_(self.outer.bias)

    def forward(self, forwards: Float[Tensor, "K D"], backwards: Float[Tensor, "K D"]) -> Float[Tensor, "K"]:
        """Return g."""
        return self.outer(self.inner(torch.cat([forwards, backwards], -1).detach()).relu())[:, 0].sigmoid()


def fused(
    forwards: Float[Tensor, "K"], backwards: Float[Tensor, "K"], gate: Float[Tensor, "K"] | float = 0.5
) -> Float[Tensor, "K"]:
    """Return z = g z forwards + (1 - g) z backwards, of the same steps; what is sure of a step is its sigmoid."""
    return gate * forwards + (1 - gate) * backwards


class BothWays:
    """Reads each solution with its steps in order and in reverse, with the same weights, and fuses the scores.

    Read in reverse, the score of step k has seen the question and steps K to k: what contradicts a step may come after
    it. Without a gate each way of reading has the loss of its own on the same labels; with one, the fused score has it.

    Args:
        model: a scorer of steps, see :class:`~assay.rewards.step_models.training.StepModel`.
        gate: ``None`` for the mean of both.

    Source: BiPRM (arXiv 2508.01682) and its authors' code; the mean is its first version, the gate its second.
    """

    def __init__(self, model: Any, gate: Gate | None = None):
        self.model, self.gate = model, gate

    @torch.no_grad()
    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float]]:
        """Return 2 p - 1 of each step of each response, in [-1, 1]."""
        self.train(False)
        rows = [StepExample(task, tuple(steps)) for task, steps in responses]
        return [(z / 2).tanh().tolist() for z, _ in self.read(rows)]

    def read(self, rows: Sequence[StepExample]) -> list[tuple[Tensor, Tensor]]:
        """See :class:`~assay.rewards.step_models.training.StepModel`."""
        found = self.model.read([*rows, *(row.reversed for row in rows)])
        out = []
        for (z, h), (back, behind) in zip(found[: len(rows)], found[len(rows) :], strict=True):
            gate = 0.5 if self.gate is None else self.gate(h, behind.flip(0))
            out.append((fused(z, back.flip(0), gate), torch.cat([h, behind.flip(0)], -1)))
        return out

    def train(self, learning: bool) -> None:
        self.model.train(learning)

    def views(self, rows: Sequence[StepExample]) -> list[Logits]:
        if self.gate is not None:
            return [[z for z, _ in self.read(rows)]]
        back = self.model.views([row.reversed for row in rows])
        return [*self.model.views(rows), *([z.flip(0) for z in view] for view in back)]

    def groups(self, lr: float, trunk_lr: float) -> list[dict[str, object]]:
        own = [] if self.gate is None else [{"params": list(self.gate.parameters()), "lr": lr}]
        return [*self.model.groups(lr, trunk_lr), *own]

    def parts(self, rows: Sequence[StepExample]) -> list[list[int]]:
        found: list[list[int]] = self.model.parts(rows)
        return found

    def save(self, folder: Path) -> None:
        """Write the model, and the gate beside it."""
        from safetensors.torch import save_file

        self.model.save(folder)
        if self.gate is not None:
            save_file(self.gate.state_dict(), folder / "gate.safetensors")
