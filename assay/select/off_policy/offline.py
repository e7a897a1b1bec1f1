"""Learning from steps on record: the policy learns from what is drawn of them, and not from what it has just played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.environments.control.recorded import Record, data_of
from assay.errors import RunError, UsageError
from assay.ops.implicit_value import CLIP, Form
from assay.registry import part
from assay.signals.base import Models
from assay.signals.transitions.columns import Columns, Drawn, steps_of
from assay.signals.transitions.dual import BoundedRecoilCritic, DualCritic, RecoilCritic, check_critic


class Recorded:
    """Weight 0 for what was played. It is kept beside the record, from step ``offline`` of the run on, and ``updates``
    times a step the policy learns from ``batch`` transitions that are drawn of both.

    A half of what is drawn is of demonstrations where ``half`` is true, as often as there are any.

    Args:
        data: steps on record, see :func:`assay.environments.control.recorded.data_of`; none to learn from play alone.
        offline: steps of the run in which what is played is looked at only.
        updates, batch, capacity: see above; ``capacity`` is what is kept of play.

    Raises:
        UsageError: a number out of range, or no data for ``offline``.
    """

    half: bool
    replays_alone = True
    """The policy learns from nothing but what it replays."""

    def __init__(self, data: Mapping[str, Any] | None, offline: int, updates: int, batch: int, capacity: int):
        if min(updates, batch) < 1 or offline < 0:
            raise UsageError(f"offline: updates {updates} and batch {batch} must be >= 1, offline {offline} >= 0")
        if data is None and offline:
            raise UsageError("offline: there is nothing on record to learn from; give data = {...}, or offline = 0")
        self.data, self.offline, self.updates, self.batch, self.capacity = data, offline, updates, batch, capacity
        self.steps = 0
        self._metrics: dict[str, float] = {}

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        return torch.zeros_like(batch.rewards)

    def check(self, policy: Any) -> None:
        """Raise UsageError for a policy that does not act by numbers."""
        if not hasattr(policy, "act"):
            raise UsageError("steps on record are learned from by a policy of numbers; set model.source = control")

    def start(self, models: Models) -> None:
        policy: Any = models.policy
        self.check(policy)
        self.policy = policy
        record = None if self.data is None else data_of(self.data)
        self.record = kept(record, policy.sizes)
        self.experts = kept(record and record.where(record.expert), policy.sizes)
        self.played = Columns(self.capacity, policy.sizes)
        self.begin(models)

    def begin(self, models: Models) -> None:
        """Make what else is learned."""

    def drawn(self, rng: np.random.Generator) -> Drawn:
        """Return transitions of an update: of the record and of what was played, each as likely."""
        half = self.batch // 2 if self.half and len(self.experts) else 0
        new = int(rng.binomial(self.batch - half, len(self.played) / (len(self.played) + len(self.record))))
        counts = ((self.experts, half), (self.record, self.batch - half - new), (self.played, new))
        return Drawn.joined([kept.draw(n, rng) for kept, n in counts if n]).to(self.policy.device)

    def replay(self, batch: Batch, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield a batch for each update."""
        steps = steps_of(batch)
        if steps is not None and self.steps >= self.offline:
            self.played.add(steps)
        self.steps += 1
        if not len(self.played) + len(self.record):
            raise RunError("offline: no step is on record, and none was played; play by method.rollout = vector")
        told: list[dict[str, float]] = []
        for _ in range(self.updates):
            drawn = self.drawn(rng)
            yield self.learned(drawn, rng, told)
            self.after()
        self._metrics = {name: float(np.mean([row[name] for row in told])) for name in told[0]}
        self._metrics["transitions"] = float(len(self.played) + len(self.record))

    def learned(self, drawn: Drawn, rng: np.random.Generator, told: list[dict[str, float]]) -> Batch:
        """Learn beside the policy from what was drawn, add what there is to tell of that, and return what the policy is
        to learn from."""
        raise NotImplementedError

    def after(self) -> None:
        """What is done once the policy has learned from it."""

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Metrics; its learning is done in :meth:`replay`, between the policy's updates."""
        return self._metrics

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "played": self.played.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
        self.played.load_state_dict(state["played"])


def kept(record: Record | None, sizes: tuple[int, int]) -> Columns:
    """Return all steps of a record, or room for one where there is none."""
    columns = Columns(max(1, len(record or ())), sizes)
    if record is not None:
        columns.add(record)
    return columns


@part("select", "dual_rl")
class DualRL(Recorded):
    """The policy imitates what is on record, each transition by a weight that a critic has for it.

    With objective ``reinforce`` that is -mean over transitions of w log pi(a | s), w = min(exp(temperature (Q - V)),
    100). The critic is :class:`~assay.signals.transitions.dual.DualCritic`, or with ``imitate``
    :class:`~assay.signals.transitions.dual.RecoilCritic`, which reads no reward and draws half of its transitions from
    demonstrations; with a ``top`` it is :class:`~assay.signals.transitions.dual.BoundedRecoilCritic`, and of what is
    drawn the other half alone is imitated.

    Args:
        data, offline, updates, batch, capacity: see :class:`Recorded`.
        form, weight, temperature, discount, rate, lr, hidden, clip: of the critic, see there.
        imitate, beta, top: see above; ``beta`` counts for nothing with a ``top``, which is above 0.

    Raises:
        UsageError: an option out of range; no demonstrations to imitate; a ``top`` and nothing to ``imitate``.

    Source: Dual RL (arXiv 2302.08560) and its authors' code.
    """

    def __init__(
        self,
        data: dict[str, Any] | None = None,
        offline: int = 0,
        updates: int = 1,
        batch: int = 256,
        capacity: int = 100_000,
        form: Form = "chi_square",
        weight: float = 0.7,
        temperature: float = 3.0,
        discount: float = 0.99,
        rate: float = 0.005,
        lr: float = 3e-4,
        hidden: Sequence[int] = (256, 256),
        clip: float = CLIP,
        imitate: bool = False,
        beta: float = 0.5,
        top: float | None = None,
    ):
        super().__init__(data, offline, updates, batch, capacity)
        if top is not None and (top <= 0 or not imitate or batch < 2):
            raise UsageError(
                f"select 'dual_rl': top {top:g} must be above 0, of imitate = true and a batch of 2 or more"
            )
        self.half, self.top = imitate, top
        self.options: dict[str, Any] = {
            "form": form,
            "weight": weight,
            "temperature": temperature,
            "discount": discount,
            "rate": rate,
            "lr": lr,
            "hidden": tuple(hidden),
            "clip": clip,
        }
        if imitate:
            self.options |= {"beta": beta} if top is None else {"top": top}
        check_critic(form, weight, temperature, discount, rate, beta)

    def begin(self, models: Models) -> None:
        if self.half and not len(self.experts):
            raise UsageError("select 'dual_rl': imitate needs demonstrations; give data with a mix of expert episodes")
        kind = DualCritic if not self.half else RecoilCritic if self.top is None else BoundedRecoilCritic
        self.critic = kind(self.policy.sizes, **self.options).to(self.policy.device)

    def learned(self, drawn: Drawn, rng: np.random.Generator, told: list[dict[str, float]]) -> Batch:
        fresh = None
        if self.half and self.top is None:
            rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=self.batch).tolist()]
            acted = self.policy.act(drawn.states.cpu().numpy(), rngs, 1.0)[1]
            fresh = torch.from_numpy(np.clip(acted, -1, 1)).to(drawn.states)
        weights, metrics = self.critic.update(drawn, fresh)
        told.append(metrics)
        batch = self.critic.imitated(drawn).batch(self.policy)
        batch.advantages = weights.to(batch.advantages).repeat_interleave(self.policy.per_step)[None]
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "critic": self.critic.kept()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.critic.keep(state["critic"])
