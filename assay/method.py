"""A method is data: one part per seam."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from assay.batch import Batch
from assay.credit.base import Credit
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.fit import check_parts
from assay.objectives.base import Objective
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build, call
from assay.rewards.base import RewardPart
from assay.rewards.spec import reward_of
from assay.rewards.verdict import VerdictReward
from assay.select.base import Select
from assay.select.everything import All
from assay.signals.base import Learner, Signal

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
    def live(self) -> frozenset[str]:
        """Every quantity with a gradient that the objective reads."""
        return frozenset(getattr(self.objective, "live", ()))

    @property
    def group_relative(self) -> bool:
        """Whether an advantage compares a sample with its siblings, so that a group of one says nothing."""
        return bool(getattr(self.credit, "group_relative", False))

    def value(self, batch: Batch) -> Batch:
        """Fill in rewards, weights and advantages of a judged batch, and its totals; changes and returns ``batch``."""
        return self.compare(self.worth(batch))

    def worth(self, batch: Batch) -> Batch:
        """The first half of :meth:`value`: rewards."""
        reward = self.reward(batch)
        batch.rewards, batch.token_rewards, batch.reward_terms = reward.values, reward.tokens, reward.terms
        if reward.valid is not None:
            batch.valid = reward.valid
        return batch

    def compare(self, batch: Batch) -> Batch:
        """The second half of :meth:`value`: weights, advantages and totals of a batch with rewards."""
        batch.weights = self.select(batch)
        batch.advantages = self.credit(batch)
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


def make_method(name: str | Method = "grpo", options: Mapping[str, Any] | None = None, **parts: Any) -> Method:
    """Return a method with the given seams replaced.

    Args:
        name: ``"grpo"``, the id of a paper, or a method already made.
        options: of the paper's method.
        parts: per seam a name, a table with ``name`` and options, a table without ``name`` that changes options of the
            method's own part, the id of a paper for what it puts there, or a part; ``None`` keeps the method's own.

    Raises:
        UsageError: unknown method, part or option; a part that would undo or ignore another, see :mod:`assay.fit`.
    """
    if isinstance(name, Method) and options:
        raise UsageError(f"method.options ({', '.join(options)}) are for a method named by its id, not for one made")
    given = {seam: spec for seam, spec in parts.items() if spec is not None}
    before = method = name if isinstance(name, Method) else _named(name, _required(name, options or {}, given))
    for seam, spec in given.items():
        if isinstance(spec, Mapping) and "name" not in spec and not (seam == "reward" and "function" in spec):
            spec = _adjusted(seam, getattr(method, seam), spec)  # noqa: PLW2901
        method = replace(method, **{seam: _made(seam, spec)})
    wanted = getattr(method.credit, "rollout", None)
    if wanted is not None and method.rollout == "single_turn" and "rollout" not in given:
        method = replace(method, rollout=wanted)
    check_parts(method, before, given.keys())
    return method


def _made(seam: str, spec: Any) -> Any:
    """Return the part that ``spec`` describes; the id of a paper stands for what that paper puts at ``seam``."""
    from assay import papers

    options = {} if isinstance(spec, str) else {**spec} if isinstance(spec, Mapping) else None
    if options is not None:
        name = spec if isinstance(spec, str) else options.pop("name", None)
        if isinstance(name, str) and re.fullmatch(r"[sS]\d{3}", name):
            row = papers.find(name)
            if row.factory is not None and seam not in row.seams:
                raise UsageError(f"{row.id} ({row.name}) brings no {seam}; it changes {', '.join(row.seams)}")
            return getattr(papers.make(name, **options), seam)
    if seam == "reward":
        return reward_of(spec)
    return build(seam, spec) if seam in SEAMS else spec


def _required(name: str, options: Mapping[str, Any], parts: dict[str, Any]) -> Mapping[str, Any]:
    """Return the options of a paper's method, with those it cannot do without that stand in a part's table instead.

    They are taken out of ``parts``: ``method = "S075"`` with ``reward = {judge = ...}`` is S075 with that judge.
    """
    from assay import papers

    factory = papers.find(name).factory if re.fullmatch(r"[sS]\d{3}", name) else None
    known = {} if factory is None else inspect.signature(factory).parameters
    for key in (k for k, p in known.items() if p.default is p.empty and k not in options):
        for seam, table in parts.items():
            if isinstance(table, Mapping) and "name" not in table and key in table:
                options = {**options, key: table[key]}
                parts[seam] = {k: v for k, v in table.items() if k != key}
    return options


def _named(name: str, options: Mapping[str, Any]) -> Method:
    from assay import papers

    if name == "grpo":
        if options:
            raise UsageError(f"method 'grpo' has no option {next(iter(options))!r}: set those of its parts, by seam")
        return Method()
    try:
        return papers.make(name, **options)
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
