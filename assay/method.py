"""A method is data: one part per seam."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from assay.batch import Batch
from assay.credit.base import Credit
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.objectives.base import Objective
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build, call
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


def make_method(name: str | Method = "grpo", **parts: Any) -> Method:
    """Return a method with the given seams replaced.

    Args:
        name: ``"grpo"``, the id of a paper, or a method already made.
        parts: per seam a name, a table with ``name`` and options, a table without ``name`` that changes options of the
            method's own part, or a part; ``None`` keeps the method's own.

    Raises:
        UsageError: unknown method, part or option.
    """
    method = name if isinstance(name, Method) else _named(name)
    for seam, spec in parts.items():
        if spec is None:
            continue
        if isinstance(spec, Mapping) and "name" not in spec:
            spec = _adjusted(seam, getattr(method, seam), spec)  # noqa: PLW2901
        method = replace(method, **{seam: build(seam, spec) if seam in SEAMS else spec})
    return method


def _named(name: str) -> Method:
    from assay import papers

    if name == "grpo":
        return Method()
    try:
        return papers.make(name)
    except UsageError:
        if difflib.get_close_matches(name.lower(), ["grpo"], cutoff=0.7):
            raise UsageError(f"no method is called {name!r}; did you mean 'grpo'?") from None
        raise


def _adjusted(seam: str, part: Any, options: Mapping[str, Any]) -> Any:
    """Return ``part``, made or as a specification, with some options changed."""
    if isinstance(part, str):
        return {"name": part, **options}
    if isinstance(part, Mapping):
        return {**part, **options}
    if not is_dataclass(part) or isinstance(part, type):
        raise UsageError(f"method.{seam} needs a name: the options of {type(part).__name__} can only be set together")
    own = {f.name: getattr(part, f.name) for f in fields(part) if f.init}
    return call(type(part), options, f"{seam} {type(part).__name__}", own)
