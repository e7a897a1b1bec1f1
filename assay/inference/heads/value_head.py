"""A head on the model's hidden states that says, after every token, how likely a right answer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.inference.scoring.base import Score
from assay.policies.base import Policy
from assay.registry import part
from assay.rewards.step_models.states import states, width
from assay.types import Episode, Task


def read_head(path: str | Path, kind: Literal["joint", "value"]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the weights and the metadata in a head's file.

    Raises:
        UsageError: it is not there, cannot be read, or holds something else than a head of that kind.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise UsageError(f"no {kind} head in {path}: there is no such file; assay train-head writes one")
    try:
        with safe_open(path, framework="pt") as file:
            meta = dict(file.metadata() or {})
            weights = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UsageError(f"{path} cannot be read as a {kind} head: {' '.join(str(error).split())}") from error
    found = "joint" if "edges" in meta else "value"
    if set(weights) != {"linear.weight", "linear.bias"} or (found == "value" and weights["linear.bias"].shape != (1,)):
        raise UsageError(f"{path} holds no head that assay train-head wrote")
    if found != kind:
        raise UsageError(f"{path} holds a {found} head, not the {kind} head that is read here")
    return weights, meta


def check_width(linear: torch.nn.Linear, policy: Policy) -> None:
    """Raise UsageError for a head on states of another length than the policy's."""
    if linear.in_features != width(policy):
        raise UsageError(
            f"this head reads states of {linear.in_features} numbers and the model's have {width(policy)}: it belongs "
            "to another model; train one on this model with assay train-head"
        )


class ValueHead(torch.nn.Module):
    """V_t = sigmoid(w h_t + b), in (0, 1), of hidden states ``(..., D)``.

    Args:
        width: D, see :func:`~assay.rewards.step_models.states.width`.
    """

    def __init__(self, width: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, 1)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Float[Tensor, "... D"]) -> Float[Tensor, "..."]:
        return self.linear(hidden)[..., 0].sigmoid()

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        from safetensors.torch import save_file

        save_file(self.state_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> ValueHead:
        """Read what :meth:`save` wrote; raise UsageError where it is not there."""
        weights, _ = read_head(path, "value")
        head = cls(weights["linear.weight"].shape[1])
        head.load_state_dict(weights)
        return head


@part("scorer", "value")
@dataclass(frozen=True)
class ByValueHead:
    """The value after the last token of a response or of its beginning, by a head on a policy's hidden states.

    The states of the policy that made the response are there already, so that it costs no tokens; another one has to
    read prompt and response.

    Args:
        head: a :class:`ValueHead`, or the file of one.
        policy: the value model's own; ``None`` for the engine's.
    """

    head: ValueHead | str
    policy: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.head, ValueHead):
            object.__setattr__(self, "head", ValueHead.load(self.head))

    @torch.no_grad()
    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        policy = getattr(engine, "policy", None) if self.policy is None else self.policy
        if policy is None:
            raise UsageError("scorer 'value' reads the policy itself, which this engine does not give")
        assert isinstance(self.head, ValueHead)
        check_width(self.head.linear, policy)
        found = states(policy, [e for _, e in pairs])
        costs = [0 if self.policy is None else len(e.prompt) + len(e.tokens) for _, e in pairs]
        head = self.head.to(found[0].device) if found else self.head
        values = [float(head(h[-1])) if len(h) else None for h in found]
        return [Score(v, c) for v, c in zip(values, costs, strict=True)]

    def most(self, task: Task, response: Episode | int, engine: Engine | None) -> int:
        if self.policy is None:
            return 0
        if isinstance(response, int):
            return len(self.policy.encode(task.prompt)) + response
        return len(response.prompt) + len(response.tokens)
