"""A state of tables against the one it should be in, as sets of facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.registry import part
from assay.types import NOTE, Task, Verdict

Granularity = Literal["cell", "row"]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by table, each a value by column."""
Facts = frozenset[tuple[Any, ...]]


def facts(
    tables: Tables, keys: Mapping[str, Sequence[str]], granularity: Granularity = "cell", volatile: Sequence[str] = ()
) -> Facts:
    """Return what is true in a state, whatever its rows' order.

    Of ``cell`` facts a row has one for each column, (table, key, number, column, value); of ``row`` facts it is one.
    Rows that share a key are numbered in the order of their values.

    Args:
        tables: the state.
        keys: columns of each table that tell its rows apart; all of them if left out.
        granularity: what a fact is.
        volatile: columns that are no facts, such as times and running numbers.
    """
    found: set[tuple[Any, ...]] = set()
    for table, rows in tables.items():
        key = keys.get(table)
        by_key: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            kept = {column: _plain(value) for column, value in row.items() if column not in volatile}
            by_key.setdefault(tuple([kept.get(k) for k in (sorted(kept) if key is None else key)]), []).append(kept)
        for values, alike in by_key.items():
            if len(alike) > 1:
                alike.sort(key=lambda row: repr(sorted(row.items())))
            for number, row in enumerate(alike):
                if granularity == "row":
                    found.add((table, values, number, *sorted(row.items())))
                else:
                    found.update([(table, values, number, column, value) for column, value in row.items()])
    return frozenset(found)


def _plain(value: Any) -> Any:
    """Return what stands for a JSON value in a fact: hashable, and true is not 1."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    return ("json", json.dumps(value, sort_keys=True))


def distance(one: Facts, other: Facts) -> int:
    """Return D, the number of facts that are true in one state and not in the other."""
    return len(one ^ other)


def potential(state: Facts, start: Facts, goal: Facts) -> float:
    """Return Phi = 1 - D(state, goal) / max(1, D(start, goal)): 0 at the start, 1 at the goal, below 0 further away."""
    return 1 - distance(state, goal) / max(1, distance(start, goal))


@part("verify", "state")
@dataclass(frozen=True, slots=True)
class State:
    """The tables are those of the goal; the score is how much nearer they are than at the start.

        score = clip(Phi, 0, 1),  Phi(S) = 1 - D(S, S*) / max(1, D(S_0, S*)),  D = facts in which two states differ

    The response is the state as JSON, rows by table. ``task.reference`` has ``start`` and ``goal`` (tables), and may
    have ``keys`` and ``volatile``, see :func:`facts`. It passes where D is 0. The notes ``distance`` and ``potential``
    of the part ``state`` are D and Phi unclipped.

    Args:
        granularity: of the facts.

    Source: LOGIGEN (arXiv 2603.00540): the state difference; Phi in this form is ours.
    """

    granularity: Granularity = "cell"

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = task.reference
        if not isinstance(wanted, Mapping) or not {"start", "goal"} <= set(wanted):
            return Verdict.abstain(f"task {task.id}: its reference has no start and goal", "tests")
        try:
            tables = json.loads(response)
            given, start, goal = (
                facts(t, wanted.get("keys", {}), self.granularity, tuple(wanted.get("volatile", ())))
                for t in (tables, wanted["start"], wanted["goal"])
            )
        except (ValueError, TypeError, AttributeError, RecursionError):
            return Verdict.wrong("that is no state: rows by table, each a value by column, as JSON")
        return compared(given, start, goal)


def compared(given: Facts, start: Facts, goal: Facts) -> Verdict:
    """Return the verdict on a state, see :class:`State`."""
    left, phi = distance(given, goal), potential(given, start, goal)
    score = min(1.0, max(0.0, phi))
    parts = {"state": score, f"state{NOTE}distance": float(left), f"state{NOTE}potential": phi}
    return Verdict(score, not left, parts, "" if not left else f"{left} facts differ from the goal")
