"""Hints to a task, weakest first: those it brings, tiers of them, or a growing beginning of its worked solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from assay.types import Task

Source = Literal["task", "solution"]

BEGINNING = "{question}\n\nThe following text is the beginning of the answer; you may use it:\n{hint}"
OPENS = "{question}{hint}"
HINT = "{question}\n\nHint: {hint}"


def beginning(text: str, share: float) -> str:
    """Return the first round(share x length) characters; a half is rounded to the even number."""
    return text[: round(share * len(text))]


def ladder(task: Task, source: Source, shares: Sequence[float], only: Sequence[str] = ()) -> list[str]:
    """Return a task's hints, weakest first; none if it has none.

    Args:
        source: ``task`` for those of :func:`told`, ``solution`` for beginnings of its worked solution.
        shares: of the solution that is shown.
        only: tiers of :func:`told`.
    """
    if source == "task":
        return told(task, only)
    return [hint for share in shares if (hint := beginning(task.solution or "", share))]


def told(task: Task, only: Sequence[str] = ()) -> list[str]:
    """Return the hints that a task brings: those of ``meta["tiers"]``, of these the tiers that ``only`` names (all if
    empty); else its ``hints``."""
    tiers = task.meta.get("tiers")
    if not isinstance(tiers, Mapping):
        return list(task.hints)
    return tiered({name: parts for name, parts in tiers.items() if not only or name in only})


def tiered(tiers: Mapping[str, Any]) -> list[str]:
    """Return a hint for every part of every tier: ``<tier> hints:`` and the tier's parts so far, a line for each.

    Args:
        tiers: parts by the tier's name, weakest tier first; a tier shows nothing of another.
    """
    return [
        "\n".join([f"{name} hints:", *map(str, parts[: k + 1])])
        for name, parts in tiers.items()
        for k in range(len(parts))
    ]
