"""Turns sampled anew where any earlier policy has been, learned from by a critic of turns: an actor and its critic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.signals.transitions.utterance import UtteranceCritic
from assay.types import Ask, Group, Task, Verdict


@part("select", "archer")
class Archer:
    """Weight 0 for what was played, whose turns go to the critic; what is learned from is said anew.

    After each step's episodes are in, the critic (:class:`~assay.signals.transitions.utterance.UtteranceCritic`) takes
    ``critic_updates`` steps. Then, from step ``warm_up`` on, ``actor_updates`` times: states s are drawn from all that
    were visited so far, the policy speaks in each, and is updated with

        A = min(Q_1, Q_2)(s, a~) - min(V_1, V_2)(s)

    on every token of a~, less v(s, a_<h) with ``baseline``. With objective ``reinforce`` and aggregation
    ``sequence_sum`` that is -mean A sum_h log pi(a~_h | s, a~_<h).

    Args:
        critic_updates, actor_updates: per step.
        warm_up: steps in which the critic alone learns.
        rows: states of an actor update.
        discount, rate, lr, batch, capacity, width, max_tokens, baseline: of the critic.

    Raises:
        UsageError: a number out of range.

    Source: ArCHer (arXiv 2402.19446) and its authors' code.
    """

    speaks = True
    """It samples between updates, from the policy as it is then."""
    replays_alone = True
    """The policy learns from nothing but what it replays."""

    def __init__(
        self,
        critic_updates: int = 50,
        actor_updates: int = 3,
        warm_up: int = 20,
        rows: int = 256,
        discount: float = 0.95,
        rate: float = 0.1,
        lr: float = 1e-3,
        batch: int = 256,
        capacity: int = 100_000,
        width: int = 64,
        max_tokens: int = 64,
        baseline: bool = False,
    ):
        if min(critic_updates, actor_updates, rows) < 1 or warm_up < 0:
            raise UsageError("select 'archer': critic_updates, actor_updates and rows must be >= 1, warm_up >= 0")
        self.critic_updates, self.actor_updates, self.warm_up, self.rows = critic_updates, actor_updates, warm_up, rows
        self.critic = UtteranceCritic(discount, rate, lr, batch, capacity, width, max_tokens, baseline)
        self.steps = 0
        self._metrics: dict[str, float] = {}

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        return torch.zeros_like(batch.rewards)

    def start(self, models: Models) -> None:
        self.critic.start(models)

    def replay(self, batch: Batch, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield a batch for each update of the actor, once the critic has learned from what is new."""
        self.critic.add(batch)
        if not len(self.critic.replay):
            return
        losses = [self.critic.update(rng) for _ in range(self.critic_updates)]
        self._metrics = {"critic/loss": float(np.mean(losses)), "critic/transitions": float(len(self.critic.replay))}
        self.steps += 1
        if self.steps <= self.warm_up:
            return
        for _ in range(self.actor_updates):
            made = self.spoken(rng, batch.rewards.dtype)
            if made is not None:
                yield made

    def spoken(self, rng: np.random.Generator, dtype: torch.dtype) -> Batch | None:
        """Return turns said anew in states that were visited, with their advantages."""
        states = [t.state for t in self.critic.replay.draw(self.rows, rng)]
        turns = self.critic.said(states, rng)
        told = [i for i, e in enumerate(turns) if len(e.tokens) and e.stop != "error"]
        if not told:
            return None
        states, turns = [states[i] for i in told], [turns[i] for i in told]
        advantages = self.critic.twins.advantage(states, [e.tokens for e in turns])
        groups = [Group(Ask(Task("said", ""), 1), (e,), (Verdict.right(),)) for e in turns]
        made = Batch.from_groups(groups, dtype)
        if self.critic.baseline:
            each = self.critic.fit_tokens(states, turns, advantages)
        else:
            each = advantages[:, None].expand(made.mask.shape)
        made.advantages = torch.where(made.mask, each.to(made.advantages), 0)
        self._metrics["advantage/mean"] = float(advantages.mean())
        return made

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Metrics; its learning is done in :meth:`replay`, between the actor's updates."""
        return self._metrics

    def state_dict(self) -> dict[str, Any]:
        return {"critic": self.critic.state_dict(), "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.critic.load_state_dict(state["critic"])
        self.steps = state["steps"]
