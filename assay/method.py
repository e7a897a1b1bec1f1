"""A method is data: one part per seam."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from assay.batch import Batch
from assay.credit.base import Credit
from assay.credit.grpo import GRPO
from assay.objectives.base import Objective
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build
from assay.rewards.base import RewardPart
from assay.rewards.verdict import VerdictReward
from assay.select.base import Select
from assay.select.everything import All

SEAMS = ("reward", "credit", "select", "objective")


@dataclass(frozen=True, slots=True)
class Method:
    """What the trainer does with judged responses, and how it asks for them. The default is GRPO.

    ``curriculum`` and ``rollout`` are kept as specifications (a name, or a table with options), because they are made
    with what only a run knows: its task stream and its sampling settings.
    """

    reward: RewardPart = field(default_factory=VerdictReward)
    credit: Credit = field(default_factory=GRPO)
    select: Select = field(default_factory=All)
    objective: Objective = field(default_factory=ClippedSurrogate)
    curriculum: Any = "uniform"
    rollout: Any = "single_turn"

    @property
    def needs(self) -> frozenset[str]:
        """Every detached signal some part reads."""
        return frozenset(n for seam in SEAMS for n in getattr(getattr(self, seam), "needs", ()))

    @property
    def live(self) -> frozenset[str]:
        """Every quantity with a gradient that the objective reads."""
        return frozenset(getattr(self.objective, "live", ()))

    @property
    def group_relative(self) -> bool:
        """Whether an advantage compares a sample with its siblings, so that a group of one says nothing."""
        return bool(getattr(self.credit, "group_relative", False))

    def value(self, batch: Batch) -> Batch:
        """Fill in rewards, weights and advantages of a judged batch, and its totals; changes and returns ``batch``."""
        reward = self.reward(batch)
        batch.rewards, batch.token_rewards, batch.reward_terms = reward.values, reward.tokens, reward.terms
        if reward.valid is not None:
            batch.valid = reward.valid
        batch.weights = self.select(batch)
        batch.advantages = self.credit(batch)
        batch.totals = batch.count()
        return batch

    def state_dict(self) -> dict[str, Any]:
        """State of every stateful part, by seam."""
        parts = {seam: getattr(self, seam) for seam in SEAMS}
        return {seam: p.state_dict() for seam, p in parts.items() if hasattr(p, "state_dict")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for seam, part_state in state.items():
            getattr(self, seam).load_state_dict(part_state)


def make_method(name: str = "grpo", **parts: Any) -> Method:
    """Return the method called ``name`` with the given seams replaced.

    Args:
        name: ``"grpo"`` or the id of a paper.
        parts: per seam a name, a table with options, or a part; ``None`` keeps the method's own.
    """
    if name == "grpo":
        method = Method()
    else:
        from assay import papers

        method = papers.make(name)
    made = {seam: build(seam, spec) if seam in SEAMS else spec for seam, spec in parts.items() if spec is not None}
    return replace(method, **made)
