"""Items of a turn that are to be met one after another, and what is earned when each is met for the first time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from assay.errors import UsageError, nearest

Focus = Literal["reply", "tools"]
KEYS = ("text", "id", "weight", "after", "strict", "focus", "check", "failures", "reference")
ABOUT = {"reply": "what the assistant says or thinks", "tools": "calls of tools and what they return"}
Marks = Sequence[Sequence[bool]]
"""Of each step, whether each item is met after it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a turn is to do.

    Attributes:
        text: what has to hold.
        id: among the items of its turn.
        weight: of it; those of a turn sum to 1.
        after: ids of items that have to be met before.
        strict: the dialogue does not go on to the next turn without it.
        focus: what it is about, ``reply`` or ``tools``; nothing about tools is met in a step with a call that failed.
        check: a rule, ``{"called": name, "arguments": {...}}`` or ``{"says": pattern}``; empty for what is judged.
        failures: ways not to meet it; ``reference``: words by which it was met on record. A judge is shown both.
    """

    text: str
    id: str
    weight: float = 1.0
    after: tuple[str, ...] = ()
    strict: bool = False
    focus: Focus = "reply"
    check: Mapping[str, Any] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()

    def criterion(self) -> str:
        """Return what a judge is told of it."""
        told = [self.text, f"It is about {ABOUT[self.focus]}, and not met where there is none of that."]
        for what, listed in (("It is not met by", self.failures), ("On record it was met by", self.reference)):
            told += [f"{what}:", *(f"- {one}" for one in listed)] if listed else []
        return "\n".join(told)


def read_checklist(rows: Any, who: str = "the checklist") -> tuple[Item, ...]:
    """Read a list of items, each a table with the keys of :class:`Item`; weights are made to sum to 1.

    Raises:
        UsageError: no items, a key or an item named that there is not, ids or an order that do not work.
    """
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence) or not rows:
        raise UsageError(f"{who} has to be a list of tables, one or more, not {str(rows)[:60]!r}")
    items = [_item(row, str(k), who) for k, row in enumerate(rows, 1)]
    names = [item.id for item in items]
    if len(set(names)) < len(names):
        raise UsageError(f"{who}: two items have the same id, of {', '.join(names)}")
    for item in items:
        for name in item.after:
            if name not in names:
                raise UsageError(f"{who}: item {item.id!r} is after {name!r}, which there is not{nearest(name, names)}")
    ready = set[str]()
    while more := {item.id for item in items if ready.issuperset(item.after)} - ready:
        ready |= more
    if len(ready) < len(items):
        raise UsageError(f"{who}: items {', '.join(n for n in names if n not in ready)} wait for each other")
    total = math.fsum(item.weight for item in items)
    return tuple(replace(item, weight=item.weight / total) for item in items)


def eligible(items: Sequence[Item], marks: Marks) -> list[list[bool]]:
    """Return for each step whether each item can be met in it: not met before it, and all that it is after met before.

    What has been met once stays so; before the first step nothing is.
    """
    places = {item.id: k for k, item in enumerate(items)}
    state, out = [False] * len(items), []
    for row in marks:
        out.append([not s and all(state[places[n]] for n in i.after) for s, i in zip(state, items, strict=True)])
        state = [s or bool(m) for s, m in zip(state, row, strict=True)]
    return out


def flips(items: Sequence[Item], marks: Marks) -> list[list[bool]]:
    """Return for each step which items earn their weight: those that are :func:`eligible` and are met after it.

    So each earns once at most, and what was met before its time earns nothing.

    Source: CM2, checklist rewards (its equation of flip rewards); items and what they are after, in the state before
    the step.
    """
    return [
        [e and bool(m) for e, m in zip(*rows, strict=True)] for rows in zip(eligible(items, marks), marks, strict=True)
    ]


def backfilled(items: Sequence[Item], marks: Marks) -> list[list[bool]]:
    """Return for each step which items are eligible and are met after it or after a later step of the turn."""
    out = []
    for s, row in enumerate(eligible(items, marks)):
        out.append([e and any(later[c] for later in marks[s:]) for c, e in enumerate(row)])
    return out


def earned(items: Sequence[Item], marks: Marks) -> float:
    """Return sum over steps and items of weight times flip, in [0, 1]."""
    return math.fsum(i.weight for row in flips(items, marks) for i, f in zip(items, row, strict=True) if f)


def _item(row: Any, place: str, who: str) -> Item:
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str) or not row["text"].strip():
        raise UsageError(f"{who}: item {place} is a table with a text")
    for key in row:
        if key not in KEYS:
            raise UsageError(f"{who}: item {place} has no key {key!r}{nearest(str(key), KEYS)}")
    weight, focus, check = row.get("weight", 1.0), row.get("focus", "reply"), row.get("check", {})
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise UsageError(f"{who}: item {place} has the weight {weight!r}; give a number above 0")
    if focus not in ("reply", "tools"):
        raise UsageError(f"{who}: item {place} is about {focus!r}; give focus 'reply' or 'tools'")
    if not isinstance(check, Mapping) or (check and not {"called", "says"} & check.keys()):
        raise UsageError(f"{who}: item {place} has a check that says neither what is called nor what it says")
    for key in ("failures", "reference"):
        said = row.get(key, [])
        if not isinstance(said, list) or not all(isinstance(one, str) for one in said):
            raise UsageError(f"{who}: item {place} has {key} that are no list of texts")
    return Item(
        row["text"],
        str(row.get("id", place)),
        float(weight),
        tuple(map(str, row.get("after", ()))),
        bool(row.get("strict")),
        focus,
        dict(check),
        tuple(row.get("failures", ())),
        tuple(row.get("reference", ())),
    )
