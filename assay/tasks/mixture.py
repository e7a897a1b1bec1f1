"""Several sources in fixed proportions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.registry import build, find, part
from assay.tasks.seeded import check_index, check_seed, permutation
from assay.types import Task

MAX_PERIOD = 10_000


@part("tasks", "mixture")
class Mixture:
    """An endless mixture in which any run of tasks holds each source in proportion to its weight, to within a few.

    The sources take turns by smooth weighted round robin over one period of sum(weights) turns (weights as whole
    numbers without a common divisor), so task i is found in constant time. A sized source is read in a random order
    and, when used up, again in another. ``task.meta["source"]`` is the source's label, which also prefixes ``task.id``.

    Args:
        sources: tables ``{source = <name or table>, weight = 1, label = <its name>}``.
        seed: >= 0; orders the sized sources, and source k gets the seed ``seed + k`` unless it states one.

    Raises:
        UsageError: no source, an empty one, an unknown key, a weight that is not positive.
    """

    def __init__(self, sources: list[dict[str, Any]], seed: int = 0):
        check_seed("tasks 'mixture'", seed)
        if not sources:
            raise UsageError("tasks 'mixture' needs at least one source")
        self.seed = seed
        self.sources, self.labels, weights = [], [], []
        for k, entry in enumerate(sources):
            where = f"tasks 'mixture', source {k + 1}"
            if not isinstance(entry, Mapping) or "source" not in entry or set(entry) - {"source", "weight", "label"}:
                raise UsageError(f"{where}: expected {{source = ..., weight = ..., label = ...}}, got {entry!r}")
            weights.append(_weight(entry.get("weight", 1), where))
            source = build("tasks", _with_seed(entry["source"], seed + k))
            if source.size == 0:
                raise UsageError(f"{where} is empty")
            self.sources.append(source)
            self.labels.append(str(entry.get("label") or _name(entry["source"])))
        self.labels = labels_of(self.labels)
        self.turns = _whole(weights)
        self.schedule = _round_robin(self.turns)
        seen = [0] * len(self.turns)
        self._rank = np.empty(len(self.schedule), dtype=np.int64)
        for i, k in enumerate(self.schedule):
            self._rank[i] = seen[k]
            seen[k] += 1

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        period, turn = divmod(check_index(index, None), len(self.schedule))
        k = self.schedule[turn]
        source, count = self.sources[k], period * self.turns[k] + int(self._rank[turn])
        if source.size is not None:
            lap, place = divmod(count, source.size)
            count = int(permutation(source.size, self.seed, k, lap)[place])
        return labelled(source[count], self.labels[k])


def labels_of(called: Sequence[str]) -> list[str]:
    """Return what sources are called, those of one name by their number too."""
    return [f"{name}.{k + 1}" if called.count(name) > 1 else name for k, name in enumerate(called)]


def labelled(task: Task, label: str) -> Task:
    """Return a task with its source's label before its id and in ``meta["source"]``."""
    return replace(task, id=f"{label}:{task.id}", meta={**task.meta, "source": label})


def _weight(value: Any, where: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise UsageError(f"{where}: weight {value!r} is not a positive number")
    return Fraction(str(value))


def _name(spec: Any) -> str:
    if isinstance(spec, Mapping):
        return str(spec.get("name"))
    return spec if isinstance(spec, str) else type(spec).__name__.lower()


def _with_seed(spec: Any, seed: int) -> Any:
    table = {"name": spec} if isinstance(spec, str) else spec
    if not isinstance(table, Mapping) or "seed" in table or not isinstance(table.get("name"), str):
        return spec
    takes_seed = "seed" in inspect.signature(find("tasks", table["name"])).parameters
    return {**table, "seed": seed} if takes_seed else spec


def _whole(weights: Sequence[Fraction]) -> list[int]:
    """Return whole numbers in the proportions of ``weights``; rounded, at least 1, where exact ones exceed a period."""
    scale = math.lcm(*(w.denominator for w in weights))
    turns = [int(w * scale) for w in weights]
    divisor = math.gcd(*turns)
    turns = [t // divisor for t in turns]
    if sum(turns) > MAX_PERIOD:
        total = sum(weights)
        turns = [max(1, round(w / total * MAX_PERIOD)) for w in weights]
    return turns


def _round_robin(turns: Sequence[int]) -> list[int]:
    """Spread ``turns[k]`` turns of each k evenly over one period."""
    period = sum(turns)
    credit = [0] * len(turns)
    order = []
    for _ in range(period):
        credit = [c + t for c, t in zip(credit, turns, strict=True)]
        k = max(range(len(turns)), key=credit.__getitem__)
        credit[k] -= period
        order.append(k)
    return order
