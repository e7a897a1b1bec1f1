"""How often responses without any answer in them are accepted: the success rate of each attack on a verifier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.audit.outcome import DECISIONS, Outcome
from assay.statistics.rate import Rate, rate_data
from assay.types import Task

TAU = 0.01
"""Success rate up to which an attack is resisted."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attack on one task.

    Attributes:
        attack: name of the attack.
        expects: ``rejected``, or ``survived`` for hostile text that has to do no harm besides.
        task: the task attacked.
        response: what is sent; it holds no right answer.
        category: the task's.
    """

    attack: str
    expects: str
    task: Task
    response: str
    category: str


def resistance(attempts: Sequence[Attempt], outcomes: Sequence[Outcome], tau: float = TAU) -> dict[str, Any]:
    """Return what came of the attempts, as plain data.

    The success rate of an attack is accepted / attempts: an abstention, a crash or a time-out rewards nobody, and is
    counted beside it. Its interval takes attempts as independent, which those on one task are not quite.

    ``attacks`` has a row each, the most successful first; ``accepted`` and ``failed`` are the indices of the attempts
    that were accepted, and that crashed the verifier or ran out of time. ``passes`` says whether no rate exceeds
    ``tau``; ``None`` where that is not known, since some attack was never decided at all. ``survives`` says that no
    attempt failed.
    """
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for attempt, outcome in zip(attempts, outcomes, strict=True):
        groups.setdefault((attempt.attack, attempt.expects), []).append(outcome)
    rows = [_row(attack, expects, found) for (attack, expects), found in groups.items()]
    rows.sort(key=lambda r: (-r["rate"]["value"], r["attack"]))
    worst = rows[0] if rows else None
    passes: bool | None = None
    if worst is not None and worst["rate"]["value"] > tau:
        passes = False
    elif rows and all(r["decided"] for r in rows):
        passes = True
    return {
        "tau": tau,
        "passes": passes,
        "survives": not any(r["crashed"] or r["timed_out"] for r in rows),
        "attempts": len(outcomes),
        "worst": worst,
        "overall": rate_data(Rate.of(sum(o.status == "accepted" for o in outcomes), len(outcomes))),
        "attacks": rows,
        "accepted": [i for i, o in enumerate(outcomes) if o.status == "accepted"],
        "failed": [i for i, o in enumerate(outcomes) if o.status in ("crashed", "timed_out")],
    }


def _row(attack: str, expects: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    statuses = [o.status for o in outcomes]
    return {
        "attack": attack,
        "expects": expects,
        "rate": rate_data(Rate.of(statuses.count("accepted"), len(statuses))),
        "decided": sum(s in DECISIONS for s in statuses),
        "abstained": statuses.count("abstained"),
        "crashed": statuses.count("crashed"),
        "timed_out": statuses.count("timed_out"),
        "slowest": max((o.seconds for o in outcomes if math.isfinite(o.seconds)), default=None),
    }
