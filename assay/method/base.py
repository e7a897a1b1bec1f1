"""A method is data: one part per seam."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from assay.batch import Batch
from assay.credit.base import Credit
from assay.credit.grpo import GRPO
from assay.method.checked import blamed, checked_advantages, checked_reward, checked_weights
from assay.method.partner import Partner
from assay.objectives.base import Objective
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.base import RewardPart
from assay.rewards.outcome.verdict import VerdictReward
from assay.select.base import Select
from assay.select.everything import All
from assay.signals.base import Learner, Signal

SEAMS = ("reward", "credit", "select", "objective")


@dataclass(frozen=True, slots=True)
class Method:
    """What the trainer does with judged responses, and how it asks for them. The default is GRPO.

    ``curriculum`` and ``rollout`` are kept as specifications (a name, or a table with options), because they are made
    with what only a run knows: its task stream and its sampling settings. With a ``partner`` a second policy is trained
    in turns with the first.
    """

    reward: RewardPart = field(default_factory=VerdictReward)
    credit: Credit = field(default_factory=GRPO)
    select: Select = field(default_factory=All)
    objective: Objective = field(default_factory=ClippedSurrogate)
    curriculum: Any = "uniform"
    rollout: Any = "single_turn"
    partner: Partner | None = None

    @property
    def parts(self) -> dict[str, Any]:
        """Every part by its seam, and the members of those made of several, as ``reward.0``."""
        out = {}
        for seam in SEAMS:
            out[seam] = part = getattr(self, seam)
            out |= {f"{seam}.{i}": member for i, member in enumerate(getattr(part, "members", ()))}
        return out

    @property
    def needs(self) -> frozenset[str | Signal]:
        """Every detached signal some part reads, by name or as an object that computes it."""
        return frozenset(n for seam in SEAMS for n in getattr(getattr(self, seam), "needs", ()))

    @property
    def learners(self) -> list[Learner]:
        """Every part, and every signal that a part reads, with parameters of its own."""
        signals = sorted((n for n in self.needs if not isinstance(n, str)), key=lambda n: n.name)
        found = [x for x in (*self.parts.values(), *signals) if hasattr(x, "learn")]
        return list({id(x): x for x in found}.values())

    @property
    def early(self) -> list[Learner]:
        """The learners whose turn comes before the policy's."""
        return [x for x in self.learners if getattr(x, "turn", "after") == "before"]

    @property
    def live(self) -> frozenset[str]:
        """Every quantity with a gradient that the objective reads."""
        return frozenset(getattr(self.objective, "live", ()))

    @property
    def group_relative(self) -> bool:
        """Whether advantages compare a sample with its siblings, and are read: a group of one then says nothing."""
        read = getattr(self.objective, "reads", "tokens") != "nothing"
        return read and bool(getattr(self.credit, "group_relative", False))

    def value(self, batch: Batch) -> Batch:
        """Fill in rewards, weights and advantages of a judged batch, and its totals; changes and returns ``batch``."""
        return self.compare(self.worth(batch))

    def worth(self, batch: Batch) -> Batch:
        """The first half of :meth:`value`: rewards."""
        with blamed("reward", self.reward):
            reward = checked_reward(self.reward, self.reward(batch), batch)
        batch.rewards, batch.token_rewards, batch.reward_terms = reward.values, reward.tokens, reward.terms
        if reward.valid is not None:
            batch.valid = reward.valid
        return batch

    def compare(self, batch: Batch) -> Batch:
        """The second half of :meth:`value`: weights, advantages and totals of a batch with rewards."""
        with blamed("select", self.select):
            batch.weights = checked_weights(self.select, self.select(batch), batch)
        batch.advantages = self._credited(batch)
        batch.totals = batch.count()
        return batch

    def _credited(self, batch: Batch) -> Tensor:
        with blamed("credit", self.credit):
            return checked_advantages(self.credit, self.credit(batch), batch)

    def revalue(self, batch: Batch, signals: Collection[str]) -> Batch:
        """Rewards, if they read any of ``signals``, and advantages anew, of the samples as they were selected."""
        if set(signals) & {getattr(n, "name", n) for n in getattr(self.reward, "needs", ())}:
            self.worth(batch)
        batch.advantages = self._credited(batch)
        batch.totals = batch.count()
        return batch

    def state_dict(self) -> dict[str, Any]:
        """State of every stateful part that is no learner, which the trainer keeps by itself."""
        return {key: p.state_dict() for key, p in self.parts.items() if _remembers(p)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for key, part in self.parts.items():
            if _remembers(part):
                part.load_state_dict(state[key])


def _remembers(part: Any) -> bool:
    return hasattr(part, "state_dict") and not hasattr(part, "learn")
