"""What rewards made from other rewards share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.rewards.spec import reward_of
from assay.types import Task

TAKEN = frozenset({"mean", "std"})


class Around:
    """A reward made from other rewards, by name. Their terms stay in the log, as ``name/term`` where there are many.

    Args:
        members: what :func:`assay.rewards.spec.reward_of` takes, by name.

    Raises:
        UsageError: a name that the log uses for the reward as a whole.
    """

    def __init__(self, members: Mapping[str, Any]):
        for name in TAKEN & set(members):
            raise UsageError(f"a term of a reward cannot be called {name!r}, which is the log's name for their sum's")
        self.inner = {name: reward_of(spec) for name, spec in members.items()}

    @property
    def members(self) -> list[Any]:
        return list(self.inner.values())

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset(n for part in self.members for n in getattr(part, "needs", ()))

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for part in self.members:
            getattr(part, "check_tasks", lambda _: None)(tasks)

    def found(self, batch: Batch) -> dict[str, Reward]:
        """Return the reward of each member."""
        return {name: part(batch) for name, part in self.inner.items()}


def terms_of(found: Mapping[str, Reward]) -> dict[str, Any]:
    """Return every member's terms; its value under its own name where it has but one."""
    out: dict[str, Any] = {}
    for name, reward in found.items():
        if len(reward.terms) > 1:
            out |= {f"{name}/{term}": values for term, values in reward.terms.items()}
        out[name] = reward.values
    return out


def valid_in(found: Mapping[str, Reward], batch: Batch) -> Any:
    """Samples for which every member could tell a reward."""
    valid = batch.valid.clone()
    for reward in found.values():
        if reward.valid is not None:
            valid = valid & reward.valid
    return valid
