"""A scorer of steps that reads them off the hidden states of a language model."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.rewards.step_models.examples import StepExample
from assay.rewards.step_models.states import LAST, Stateful, states, width
from assay.rewards.step_models.training import Logits
from assay.signals.steps import token_ends
from assay.types import Episode, Task

Place = tuple[int, int]


@runtime_checkable
class Reader(Protocol):
    """A module that scores the steps of one response by its states."""

    def __call__(self, states: Float[Tensor, "T D"], steps: Sequence[Place]) -> tuple[Tensor, Tensor]:
        """Return z ``(K,)`` of steps, each from a token on and before another, and what it was read off ``(K, D)``."""
        ...

    def parameters(self) -> Any: ...

    def state_dict(self) -> dict[str, Any]: ...


class StepHead(torch.nn.Module):
    """z_k = w h + b of the state h after the last token of step k.

    Args:
        width: D, of a state.
    """

    def __init__(self, width: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, 1)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, states: Float[Tensor, "T D"], steps: Sequence[Place]) -> tuple[Tensor, Tensor]:
        ends = states[[end - 1 for _, end in steps]]
        return self.linear(ends)[:, 0], ends


class StatesPRM:
    """Scores the steps of a response by a small module on a language model's states, which stay as they are.

    Args:
        policy: the model below, of which nothing changes unless it is trained with a ``trunk_lr``.
        reader: see :class:`Reader`.
        layers: whose states are read, see :func:`~assay.rewards.step_models.states.states`.
        separator: stands between steps of which there is only the text.
        budget: tokens of a pass.
    """

    def __init__(
        self,
        policy: Stateful,
        reader: torch.nn.Module,
        layers: Sequence[str] = LAST,
        separator: str = "\n",
        budget: int = 8192,
    ):
        self.policy, self.layers, self.separator, self.budget = policy, tuple(layers), separator, budget
        self.reader = reader.to(next(policy.module.parameters()).device)
        self.learns = False
        self._kept: dict[bytes, Tensor] = {}

    @property
    def width(self) -> int:
        """Length of what the reader reads a score off."""
        probe = getattr(self.reader, "width", None)
        return width(self.policy, self.layers) if probe is None else int(probe)

    @torch.no_grad()
    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float]]:
        """Return 2 s(z) - 1 of each step of each response, in [-1, 1]."""
        return self.score_examples([StepExample(task, tuple(steps)) for task, steps in responses])

    @torch.no_grad()
    def score_examples(self, rows: Sequence[StepExample]) -> list[list[float]]:
        """The same of responses whose tokens are known."""
        self.train(False)
        return [(z / 2).tanh().tolist() for z, _ in self.read(rows)]

    def read(self, rows: Sequence[StepExample]) -> list[tuple[Tensor, Tensor]]:
        """See :class:`~assay.rewards.step_models.training.StepModel`."""
        placed = [self.tokens(row) for row in rows]
        return [self.reader(h, at) for h, (_, at) in zip(self._states([e for e, _ in placed]), placed, strict=True)]

    def train(self, learning: bool) -> None:
        self.reader.train(learning)
        self._kept = {}

    def views(self, rows: Sequence[StepExample]) -> list[Logits]:
        return [[z for z, _ in self.read(rows)]]

    def groups(self, lr: float, trunk_lr: float) -> list[dict[str, object]]:
        self.learns = trunk_lr > 0
        below = [p for p in self.policy.module.parameters() if p.requires_grad] if self.learns else []
        return [
            {"params": list(self.reader.parameters()), "lr": lr},
            *([{"params": below, "lr": trunk_lr}] if below else []),
        ]

    def parts(self, rows: Sequence[StepExample]) -> list[list[int]]:
        return [list(range(len(rows)))] if rows else []

    def save(self, folder: Path) -> None:
        """Write the reader, and the model below into ``policy``."""
        from safetensors.torch import save_file

        save_file({k: v.contiguous() for k, v in self.reader.state_dict().items()}, folder / "reader.safetensors")
        self.policy.save(folder / "policy")  # type: ignore[attr-defined]

    def tokens(self, row: StepExample) -> tuple[Episode, list[Place]]:
        """Return a response in tokens and the place of each step among them, its end-of-sequence token left out.

        Raises:
            UsageError: there is the text alone, and the policy is no language model.
        """
        if row.episode is not None:
            own = [(s.start, s.end) for s in row.episode.spans if s.kind == "step"]
            if len(own) == len(row.steps):
                # After that token a model has never gone on, so that its state there says little.
                stops = getattr(self.policy, "stop_ids", ())
                if own and own[-1][1] == len(row.episode.tokens) > own[-1][0] + 1 and row.episode.tokens[-1] in stops:
                    own[-1] = (own[-1][0], own[-1][1] - 1)
                return row.episode, own
        if (encode := getattr(self.policy, "encode_response", None)) is None:
            raise UsageError("a policy that is no language model scores steps whose tokens are known, not texts")
        pieces = [s if s.endswith("\n") else s + self.separator for s in row.steps[:-1]] + list(row.steps[-1:])
        # What is nothing but its end has that to be read off.
        found = encode("".join(pieces), end=not any(pieces))
        ends = token_ends(found.tolist(), self.policy.decode)  # type: ignore[attr-defined]
        borders = [0]
        for length in np.cumsum([len(p) for p in pieces]).tolist():
            # A step has a token of its own to be read off, or that of the step before it.
            end = min(bisect_left(range(len(found)), length, key=ends) + 1, len(found))
            borders.append(max(end, 1))
        places = [(min(a, b - 1), b) for a, b in pairwise(borders)]
        prompt = self.policy.encode(row.task.prompt)  # type: ignore[attr-defined]
        return Episode(prompt, found, np.ones(len(found), dtype=bool), None, "".join(pieces), "stop"), places

    def _states(self, episodes: Sequence[Episode]) -> list[Tensor]:
        """States of responses; while a frozen model's reader learns they are computed once."""
        if self.learns:
            return states(self.policy, episodes, self.budget, self.layers)
        keep = self.reader.training
        keys = [e.prompt.tobytes() + b"|" + e.tokens.tobytes() for e in episodes]
        new = {k: e for k, e in zip(keys, episodes, strict=True) if k not in self._kept}
        with torch.no_grad():
            found = dict(zip(new, states(self.policy, list(new.values()), self.budget, self.layers), strict=True))
        if keep:
            self._kept |= found
        return [found[k] if k in found else self._kept[k] for k in keys]
