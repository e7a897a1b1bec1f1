"""What policies of numbers have in common: steps are read from episodes' paths, and told of by their tokens."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies.base import PolicyOutput
from assay.policies.control.config import ControlConfig
from assay.types import Prompt

Self = TypeVar("Self", bound="ControlPolicy")

FILE, ABOUT = "model.safetensors", "control.json"


class ControlPolicy(ABC):
    """A policy whose state is a vector and whose action is one: ``per_step`` decisions, and as many tokens, a step.

    Args:
        config: what it decides, and by which layers.
        sizes: S numbers of a state and A of an action.
        device: of its parameters.
    """

    quantities: frozenset[str] = frozenset({"entropy"})
    engine = "control"
    """Which engine stands for it."""
    context = 2**31
    """Tokens of an episode: as many as a world goes on for."""
    adapter: Any = None

    def __init__(self, config: ControlConfig, sizes: tuple[int, int], device: torch.device):
        self.config, self.sizes, self.device = config, sizes, device
        self.module: torch.nn.Module = self.made().to(device)

    # What a kind of it is

    @property
    @abstractmethod
    def per_step(self) -> int:
        """Decisions of a step."""

    @abstractmethod
    def made(self) -> torch.nn.Module:
        """Return the networks, at their start."""

    @abstractmethod
    def chance(self, rng: np.random.Generator) -> np.ndarray:
        """Draw what a step's decisions depend on beside the state."""

    @abstractmethod
    def decide(
        self, states: Float[Tensor, "M S"], chance: np.ndarray, temperature: float
    ) -> tuple[Int[Tensor, "M P"], Float[Tensor, "M A"], Float[Tensor, "M P"]]:
        """Return tokens, actions and log-probabilities of a step in each state; the likeliest at temperature 0, whose
        log-probabilities are those at temperature 1."""

    @abstractmethod
    def read(
        self,
        states: Float[Tensor, "M S"],
        actions: Float[Tensor, "M A"],
        tokens: Int[Tensor, "M P"],
        live: Collection[str],
        temperature: float,
    ) -> tuple[Float[Tensor, "M P"], dict[str, Tensor]]:
        """Return log-probabilities of steps' decisions, and named quantities ``(M, P, ...)``."""

    def tokens_of(self, actions: np.ndarray) -> np.ndarray:
        """Return the tokens ``(M, P)`` that actions ``(M, A)`` in [-1, 1] are decided by."""
        return np.zeros((len(actions), self.per_step), dtype=np.int64)

    # The policy protocol

    @property
    def model(self) -> torch.nn.Module:
        return self.module

    @property
    def width(self) -> int:
        return self.config.hidden[-1]

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Nothing: what a task says is no part of the state."""
        return np.zeros(0, dtype=np.int64)

    @torch.no_grad()
    def act(
        self, states: np.ndarray, rngs: Sequence[np.random.Generator], temperature: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a step in each state ``(M, S)``: tokens ``(M, P)``, actions ``(M, A)``, log-probabilities ``(M, P)``.

        Args:
            rngs: what each is drawn with, so that it depends on no other.
        """
        chance = np.stack([self.chance(rng) for rng in rngs])
        tokens, actions, logprobs = self.decide(torch.from_numpy(states).to(self.device), chance, temperature)
        return tokens.cpu().numpy(), actions.cpu().numpy(), logprobs.cpu().numpy()

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """See :class:`assay.policies.base.Policy`.

        Raises:
            UsageError: an episode has no path, or it is another policy's.
        """
        paths = [e.path for e in batch.episodes]
        if any(path is None for path in paths):
            raise UsageError("a policy of numbers learns from steps; play them with method.rollout = vector")
        states, actions = (
            torch.from_numpy(np.concatenate([getattr(path, name) for path in paths])).to(self.device)
            for name in ("states", "actions")
        )
        tokens = torch.from_numpy(np.concatenate([e.tokens for e in batch.episodes])).to(self.device)
        if (states.shape[1], actions.shape[1]) != self.sizes or len(tokens) != len(states) * self.per_step:
            raise UsageError(
                f"steps of {states.shape[1]} numbers seen, {actions.shape[1]} decided and "
                f"{len(tokens) / max(len(states), 1):g} tokens are not this policy's, of {self.sizes} and "
                f"{self.per_step}"
            )
        logprobs, found = self.read(states, actions, tokens.view(-1, self.per_step), live, temperature)
        lengths = torch.tensor([len(e.tokens) for e in batch.episodes], device=self.device)
        inside = (torch.arange(batch.tokens.shape[1], device=self.device) < lengths[:, None]).nonzero(as_tuple=True)

        def spread(x: Tensor) -> Tensor:
            flat = x.flatten(0, 1)
            return flat.new_zeros(len(batch), batch.tokens.shape[1], *flat.shape[1:]).index_put(inside, flat)

        return PolicyOutput(spread(logprobs), {name: spread(x) for name, x in found.items()})

    def continuations(self, *arguments: Any, **options: Any) -> Float[Tensor, "N K A"]:
        return self._speechless("continuations")

    def continuation_ranks(self, *arguments: Any, **options: Any) -> Int[Tensor, "N K A"]:
        return self._speechless("ranks of continuations")

    def candidates(self, *arguments: Any, **options: Any) -> Int[Tensor, "N T n"]:
        return self._speechless("candidates")

    def likeliest(self, *arguments: Any, **options: Any) -> Int[Tensor, "N T n"]:
        return self._speechless("likeliest tokens")

    def _speechless(self, what: str) -> NoReturn:
        raise UsageError(f"a part asks for {what}, which a policy of numbers does not give; take one that speaks")

    def micro_batches(self, batch: Batch, budget: int) -> list[Int[Tensor, "M"]]:
        """Rows in their order, as many together as have ``budget`` tokens, at least one."""
        parts: list[list[int]] = []
        spent = budget
        for row, episode in enumerate(batch.episodes):
            if not parts or spent + len(episode.tokens) > budget:
                parts.append([])
                spent = 0
            parts[-1].append(row)
            spent += len(episode.tokens)
        return [torch.tensor(part) for part in parts]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        save_file({k: v.contiguous() for k, v in self.module.state_dict().items()}, folder / FILE)
        about = {"config": self.config.model_dump(), "sizes": self.sizes}
        (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")

    def load_weights(self, folder: Path) -> None:
        self.module.load_state_dict(load_file(folder / FILE, device=str(self.device)))

    def twin(self: Self) -> Self:
        other = type(self)(self.config, self.sizes, self.device)
        other.module.load_state_dict(deepcopy(self.module.state_dict()))
        return other

    def frozen(self: Self, folder: Path) -> Self:
        other = self.twin()
        other.load_weights(folder)
        other.module.requires_grad_(False)
        return other
