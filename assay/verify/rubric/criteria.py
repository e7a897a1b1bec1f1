"""Criteria that a response is marked by, and where a task has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.errors import UsageError, nearest
from assay.types import NOTE, Task

ALIASES = {"criterion": "text", "points": "weight", "importance": "weight"}
"""What public sets of rubrics call the keys of a criterion."""
KEYS = ("text", "id", "weight", "tiers", "veto", "kind")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a response is marked by. A mark is in [0, 1], tier / M; ``None`` is one that could not be read.

    Attributes:
        text: what is asked for.
        id: names it among the criteria of its rubric, and in the parts of a verdict.
        weight: what meeting it is worth; below 0 for what a response should not do.
        levels: what the tiers 0..M mean, lowest first; empty for a criterion that is met or not, M = 1.
        veto: a response that does not meet it at all is worth nothing, for aggregates that know vetoes.
        kind: a word for what it is about, such as ``factual`` or ``process``; none if empty.
    """

    text: str
    id: str
    weight: float = 1.0
    levels: tuple[str, ...] = ()
    veto: bool = False
    kind: str = ""

    @property
    def top(self) -> int:
        """M, the highest tier."""
        return max(len(self.levels) - 1, 1)


@dataclass(frozen=True, slots=True)
class Rubric:
    """Criteria in the order in which they are asked about."""

    criteria: tuple[Criterion, ...]

    @classmethod
    def of(cls, task: Task) -> Rubric:
        """Return the rubric that a task has as ``meta["rubric"]``.

        Raises:
            UsageError: it has none, or one that :meth:`read` refuses; names the task.
        """
        found = task.meta.get("rubric")
        if found is None:
            raise UsageError(f"task {task.id} has no rubric; give it meta['rubric'], a list of texts or tables")
        return cls.read(found, f"the rubric of task {task.id}")

    @classmethod
    def read(cls, rows: Any, who: str = "the rubric") -> Rubric:
        """Read a list of criteria.

        Args:
            rows: each a text, or a table with ``text`` and, if wanted, ``id`` (else its place, from 1), ``weight``,
                ``tiers`` (M, or a list of what 0..M mean), ``veto`` and ``kind``. ``criterion`` is text, ``points``
                weight. A rubric made already is returned as it is.
            who: named in the error.

        Raises:
            UsageError: nothing to mark, or something does not fit.
        """
        if isinstance(rows, Rubric):
            return rows
        if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence) or not rows:
            raise UsageError(f"{who} has to be a list of texts or tables, one or more, not {str(rows)[:60]!r}")
        made = tuple(_criterion(row, str(k), who) for k, row in enumerate(rows, 1))
        names = [c.id for c in made]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"{who}: two criteria are called {twice[0]!r}")
        return cls(made)

    def joined(self, other: Sequence[Criterion]) -> Rubric:
        """Return the rubric with others behind its own criteria; one whose id is taken is put aside by a dash."""
        taken, added = {c.id for c in self.criteria}, []
        for criterion in other:
            name = criterion.id
            while name in taken:
                name += "'"
            taken.add(name)
            added.append(replace(criterion, id=name))
        return Rubric((*self.criteria, *added))

    def rows(self) -> list[dict[str, Any]]:
        """Return what :meth:`read` reads: a table of each criterion."""
        return [
            {"text": c.text, "id": c.id, "weight": c.weight, "tiers": list(c.levels), "veto": c.veto}
            | ({"kind": c.kind} if c.kind else {})
            for c in self.criteria
        ]

    def kept(self, keep: Sequence[bool]) -> Rubric:
        """Return the rubric of those criteria that are to be kept, one truth value each."""
        return Rubric(tuple(c for c, here in zip(self.criteria, keep, strict=True) if here))


def unmet(criterion: Criterion, mark: float | None) -> bool:
    """Whether a mark says that a response falls short: not at the top tier, or, with a weight below 0, above none."""
    return mark is not None and (mark > 0 if criterion.weight < 0 else mark < 1)


def _criterion(row: Any, place: str, who: str) -> Criterion:
    table = {"text": row} if isinstance(row, str) else row
    if not isinstance(table, Mapping):
        raise UsageError(f"{who}: criterion {place} is a {type(row).__name__}, not a text or a table")
    table = {ALIASES.get(str(key), str(key)): value for key, value in table.items()}
    for key in table:
        if key not in KEYS:
            raise UsageError(f"{who}: criterion {place} has no key {key!r}{nearest(key, KEYS)}")
    text, name = table.get("text"), str(table.get("id", place))
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{who}: criterion {place} has no text")
    if not name.strip() or NOTE in name:
        raise UsageError(f"{who}: criterion {place} cannot have the id {name!r}")
    weight, tiers, veto = table.get("weight", 1.0), table.get("tiers", ()), table.get("veto", False)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise UsageError(f"{who}: criterion {place} has the weight {weight!r}, which is no number")
    if not isinstance(veto, bool):
        raise UsageError(f"{who}: criterion {place} has the veto {veto!r}, neither true nor false")
    kind = table.get("kind", "")
    if not isinstance(kind, str):
        raise UsageError(f"{who}: criterion {place} has the kind {kind!r}, which is no word")
    return Criterion(text.strip(), name, float(weight), _levels(tiers, f"{who}: criterion {place}"), veto, kind)


def _levels(tiers: Any, who: str) -> tuple[str, ...]:
    if isinstance(tiers, int) and not isinstance(tiers, bool) and 1 <= tiers <= 100:
        return ("",) * (tiers + 1) if tiers > 1 else ()
    listed = isinstance(tiers, Sequence) and not isinstance(tiers, str) and len(tiers) != 1
    if listed and all(isinstance(one, str) for one in tiers):
        return tuple(tiers)
    raise UsageError(f"{who} has the tiers {str(tiers)[:40]!r}; give the highest, 1 to 100, or a text for each from 0")
