"""The value of saying something: critics of whole turns, learned off-policy beside the policy that speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Engine, Request, Sampling
from assay.engines.tokens import Tokens
from assay.errors import RunError, UsageError
from assay.signals.base import Models
from assay.signals.transitions.replay import Replay, Transition, transitions_of
from assay.signals.transitions.twins import TokenEncoder, Twins, head
from assay.types import Episode


class UtteranceCritic:
    """Twin critics (:class:`~assay.signals.transitions.twins.Twins`) of states, all tokens so far, and turns.

    Every update draws transitions of all policies so far and samples a turn anew in each of their states, from the
    policy as it is.

    Args:
        discount, rate: of the critics, see there.
        lr: of AdamW.
        batch: transitions of an update.
        capacity: transitions that are kept.
        width: of the encoder; hidden layers are twice as wide.
        max_tokens: of a turn that is sampled.
        baseline: whether a value of the turn's beginnings, v(s, a_<h), is learned too, see :meth:`token_values`.
        max_grad_norm: L2 norm that gradients are scaled down to.

    Raises:
        UsageError: ``batch`` or ``max_tokens`` below 1.
    """

    def __init__(
        self,
        discount: float = 0.95,
        rate: float = 0.1,
        lr: float = 1e-3,
        batch: int = 256,
        capacity: int = 100_000,
        width: int = 64,
        max_tokens: int = 64,
        baseline: bool = False,
        max_grad_norm: float = 1.0,
    ):
        if min(batch, max_tokens) < 1:
            raise UsageError(f"utterance critic: batch {batch} and max_tokens {max_tokens} must be at least 1")
        self.discount, self.rate, self.lr, self.batch, self.width = discount, rate, lr, batch, width
        self.max_tokens, self.baseline, self.max_grad_norm = max_tokens, baseline, max_grad_norm
        self.replay = Replay(capacity)

    def start(self, models: Models) -> None:
        first = next(models.policy.module.parameters())
        self.twins = Twins(TokenEncoder(self.width), 2 * self.width, self.discount, self.rate).to(first.device)
        self.beginnings = torch.nn.ModuleList([TokenEncoder(self.width), head(self.width, 2 * self.width)])
        self.beginnings.to(first.device)
        trained = [*self.twins.fast.parameters(), *self.beginnings.parameters()]
        self.optimizer = torch.optim.AdamW(trained, lr=self.lr, weight_decay=0.0)
        self.models = models

    @property
    def engine(self) -> Engine:
        """Who samples turns anew.

        Raises:
            RunError: the run has no engine to do so.
        """
        if self.models.engine is None:
            raise RunError("utterances are sampled anew in every update, and this run has no engine to do so")
        return self.models.engine

    def add(self, batch: Batch) -> None:
        """Keep a batch's turns with what they earned."""
        self.replay.add(transitions_of(batch))

    def said(self, states: Sequence[np.ndarray], rng: np.random.Generator) -> list[Episode]:
        """Return a turn of the policy as it is in each of ``states``."""
        sampling = Sampling(self.max_tokens, self.models.temperature)
        seeds = rng.integers(2**63, size=len(states)).tolist()
        asked = [Request(Tokens(state), 1, sampling, seed) for state, seed in zip(states, seeds, strict=True)]
        return [episode for [episode] in self.engine.generate(asked)]

    def update(self, rng: np.random.Generator) -> float:
        """Take one step on fresh transitions with turns sampled anew; return the loss."""
        drawn = self.replay.draw(self.batch, rng)
        states = [t.state for t in drawn]
        fresh = self.said(states, rng)
        loss = self.loss(drawn, [e.tokens for e in fresh])
        self._step(loss)
        self.twins.follow()
        return float(loss.detach())

    def loss(self, drawn: Sequence[Transition], fresh: Sequence[np.ndarray]) -> Float[Tensor, ""]:
        device = next(self.twins.parameters()).device
        rewards = torch.tensor([t.reward for t in drawn], device=device)
        done = torch.tensor([t.done for t in drawn], device=device)
        columns = ([t.state for t in drawn], [t.action for t in drawn], rewards, [t.after for t in drawn], done)
        return self.twins.loss(*columns, fresh)

    def token_values(self, states: Sequence[np.ndarray], turns: Sequence[Episode]) -> Float[Tensor, "M T"]:
        """Return v(s, a_<h) before each token of each turn, 0 beyond its end."""
        width = max(len(e.tokens) for e in turns)
        before = [
            np.concatenate([s, e.tokens[:h]]) for s, e in zip(states, turns, strict=True) for h in range(len(e.tokens))
        ]
        encoder, out = self.beginnings
        values = out(encoder(before))[:, 0]
        rows = torch.split(values, [len(e.tokens) for e in turns])
        return torch.stack([torch.nn.functional.pad(row, (0, width - len(row))) for row in rows])

    def fit_tokens(
        self, states: Sequence[np.ndarray], turns: Sequence[Episode], advantages: Float[Tensor, "M"]
    ) -> Float[Tensor, "M T"]:
        """Return A - v(s, a_<h) of every token, and take a step on (A - v)^2."""
        values = self.token_values(states, turns)
        there = torch.arange(values.shape[1]) < torch.tensor([len(e.tokens) for e in turns])[:, None]
        gap = torch.where(there.to(values.device), advantages[:, None].to(values) - values, 0)
        self._step((gap**2).sum() / there.sum())
        return gap.detach()

    def _step(self, loss: Float[Tensor, ""]) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
        self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        return {
            "twins": self.twins.state_dict(),
            "beginnings": self.beginnings.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "replay": self.replay.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.twins.load_state_dict(state["twins"])
        self.beginnings.load_state_dict(state["beginnings"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.replay.load_state_dict(state["replay"])
