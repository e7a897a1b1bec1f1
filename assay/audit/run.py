"""An audit from beginning to end: judge the labelled rows, perhaps with a second verifier, perhaps under attack."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from assay.audit.agreement import agreement
from assay.audit.key_rates import key_rates
from assay.audit.labelled import Row, digest
from assay.audit.measure import Confusion, by_category, described, latency
from assay.audit.outcome import Outcome, Status
from assay.audit.robustness import TAU, Attempt, resistance
from assay.audit.subject import Item, Subject, package
from assay.errors import RunError
from assay.records.audit import Record
from assay.statistics.rate import CONFIDENCE, defined

SCHEMA = "assay.audit.report/1"
SLOWEST = 10
"""Slowest rows that are named."""

Tick = Callable[[str, int, int], None]


@dataclass(slots=True)
class Judged:
    """The outcomes of one verifier on the first ``len(outcomes)`` of ``total`` items."""

    total: int
    outcomes: list[Outcome] = field(default_factory=list)
    wall: float = 0.0

    @property
    def partial(self) -> bool:
        return len(self.outcomes) < self.total


@dataclass(slots=True)
class Audit:
    """All that an audit found.

    Attributes:
        subject, against: the verifier, and the one it is compared with.
        rows: the labelled responses, and ``source`` what they are called.
        clean, other: what the two made of them.
        attempts, attacked: attacks, and what the verifier made of them.
        attacked_tasks: tasks attacked, of how many distinct ones.
        aside, beside: rows that count in no rate, reported as numbers of their own, and what was made of them.
        tau: success rate up to which an attack is resisted.
        interrupted: the audit was stopped before its end.
        failure: what stopped it, where that was no interrupt.
    """

    subject: Subject
    rows: Sequence[Row]
    source: str
    against: Subject | None = None
    attempts: Sequence[Attempt] = ()
    attacked_tasks: tuple[int, int] = (0, 0)
    tau: float = TAU
    aside: Sequence[Row] = ()
    clean: Judged = field(default_factory=lambda: Judged(0))
    other: Judged | None = None
    attacked: Judged | None = None
    beside: Judged = field(default_factory=lambda: Judged(0))
    interrupted: bool = False
    failure: RunError | None = None
    date: str = ""

    def run(self, tick: Tick = lambda stage, done, total: None) -> None:
        """Judge everything; an interrupt or a broken verifier ends the run, and what was judged until then stays.

        ``tick(stage, done, total)`` is called after each row.
        """
        self.date = datetime.now(UTC).isoformat(timespec="seconds")
        items = [(row.task, row.response) for row in self.rows]
        self.clean = Judged(len(items))
        with _terminable():
            self._judge("rows", self.subject, items, self.clean, tick)
            if self.aside and not self.interrupted:
                self.beside = Judged(len(self.aside))
                pairs = [(row.task, row.response) for row in self.aside]
                self._judge("aside", self.subject, pairs, self.beside, tick)
            if self.against is not None and not self.interrupted:
                self.other = Judged(len(items))
                self._judge("against", self.against, items, self.other, tick)
            if self.attempts and not self.interrupted:
                self.attacked = Judged(len(self.attempts))
                self._judge("attacks", self.subject, [(a.task, a.response) for a in self.attempts], self.attacked, tick)

    def _judge(self, stage: str, subject: Subject, items: list[Item], into: Judged, tick: Tick) -> None:
        begun = time.perf_counter()
        try:
            for outcome in subject.judge(items):
                into.outcomes.append(outcome)
                tick(stage, len(into.outcomes), into.total)
        except KeyboardInterrupt:
            self.interrupted = True
        except RunError as error:
            # What was judged before is worth as much as after an interrupt.
            self.interrupted, self.failure = True, error
        into.wall = time.perf_counter() - begun

    def confusion(self) -> Confusion:
        return Confusion.count((r.label, o.status) for r, o in zip(self.rows, self.clean.outcomes, strict=False))

    def report(self) -> dict[str, Any]:
        """The audit as plain data, what ``audit.json`` holds; every mistake and every undecided row is in it."""
        outcomes = self.clean.outcomes
        rows = self.rows[: len(outcomes)]
        labels = [r.label for r in rows]
        categories = by_category([r.category for r in rows], labels, outcomes)
        patterns = by_category([f"{r.category}/{r.pattern}" if r.pattern else "" for r in rows], labels, outcomes)
        patterns.pop("", None)
        timed = [i for i, o in enumerate(outcomes) if math.isfinite(o.seconds)]
        slowest = sorted(timed, key=lambda i: -outcomes[i].seconds)[:SLOWEST]
        return {
            "schema": SCHEMA,
            "partial": self.interrupted,
            "date": self.date,
            "confidence": CONFIDENCE,
            "verifier": _describe(self.subject),
            "data": self._data(),
            "judged": len(outcomes),
            "clean": described(self.confusion()),
            "categories": {name: described(c) for name, c in categories.items()},
            "aside": {name: described(c) for name, c in self._aside().items()},
            "patterns": {name: described(c) for name, c in patterns.items()},
            "latency": latency(outcomes, self.clean.wall),
            "false_positives": self._examples(lambda r, o: not r.label and o.status == "accepted"),
            "false_negatives": self._examples(lambda r, o: r.label and o.status == "rejected"),
            **{s: self._examples(_has(s)) for s in ("abstained", "crashed", "timed_out")},
            "slowest": [_example(rows[i], outcomes[i]) for i in slowest],
            "against": self._compared(labels),
            "attack": self._attacked(),
        }

    def verdicts(self) -> Iterator[dict[str, Any]]:
        """A short record per row judged, in order."""
        for row, outcome in zip(self.rows, self.clean.outcomes, strict=False):
            yield {
                "id": row.task.id,
                "label": row.label,
                "status": outcome.status,
                "score": outcome.score,
                "seconds": defined(outcome.seconds),
            }

    def record(self) -> Record:
        """The measured rates, for :func:`assay.records.audit.save`."""
        c, attack = self.confusion(), self._attacked()
        rows = self.rows[: len(self.clean.outcomes)]
        groups = by_category([r.category for r in rows], [r.label for r in rows], self.clean.outcomes)
        subject = _describe(self.subject)
        return Record(
            name=subject["name"],
            options=subject["options"],
            version=subject["version"],
            package=subject["package"],
            data=self._data(),
            counts={
                **{k: getattr(c, k) for k in ("tp", "fn", "fp", "tn")},
                **{s: c.undecided(s) for s in ("abstained", "crashed", "timed_out")},
            },
            false_negative_rate=c.false_negative_rate,
            false_positive_rate=c.false_positive_rate,
            categories={k: (g.false_negative_rate, g.false_positive_rate) for k, g in groups.items()},
            attacks=None
            if attack is None or attack["worst"] is None
            else {
                "passes": attack["passes"],
                "tau": attack["tau"],
                "worst": attack["worst"]["attack"],
                "rate": attack["worst"]["rate"],
            },
            date=self.date,
            partial=self.interrupted,
        )

    def _aside(self) -> dict[str, Confusion]:
        rows = self.aside[: len(self.beside.outcomes)]
        return by_category([r.category for r in rows], [r.label for r in rows], self.beside.outcomes)

    def _data(self) -> dict[str, Any]:
        right = sum(r.label for r in self.rows)
        return {
            "name": self.source,
            "hash": digest(self.rows),
            "rows": len(self.rows),
            "right": right,
            "wrong": len(self.rows) - right,
        }

    def _examples(self, wanted: Callable[[Row, Outcome], bool]) -> list[dict[str, Any]]:
        pairs = zip(self.rows, self.clean.outcomes, strict=False)
        return [_example(r, o) for r, o in pairs if wanted(r, o)]

    def _compared(self, labels: list[bool]) -> dict[str, Any] | None:
        if self.against is None or self.other is None:
            return None
        first, second = self.clean.outcomes, self.other.outcomes
        n = min(len(first), len(second))
        found = agreement(labels[:n], first[:n], second[:n])
        other = Confusion.count((r.label, o.status) for r, o in zip(self.rows, second, strict=False))
        found["disagreements"] = [
            {
                **_example(self.rows[i], first[i]),
                "against": {"status": second[i].status, "score": second[i].score, "feedback": second[i].feedback},
            }
            for i in found["disagreements"]
        ]
        return {
            "verifier": _describe(self.against),
            "clean": described(other),
            "latency": latency(second, self.other.wall),
            **found,
        }

    def _attacked(self) -> dict[str, Any] | None:
        if self.attacked is None:
            return None
        outcomes = self.attacked.outcomes
        attempts = self.attempts[: len(outcomes)]
        found = resistance(attempts, outcomes, self.tau)
        if self.attacked.partial and found["passes"]:
            found["passes"] = None
        for key in ("accepted", "failed"):
            found[key] = [
                {
                    **_example(Row(attempts[i].task, attempts[i].response, False, attempts[i].category), outcomes[i]),
                    "attack": attempts[i].attack,
                    "expects": attempts[i].expects,
                }
                for i in found[key]
            ]
        found["keys"] = key_rates(attempts, outcomes)
        return {**found, "tasks": self.attacked_tasks[0], "of_tasks": self.attacked_tasks[1]}


def _has(status: Status) -> Callable[[Row, Outcome], bool]:
    return lambda row, outcome: outcome.status == status


def _describe(subject: Subject) -> dict[str, Any]:
    return {"name": subject.name, "options": subject.options, "version": subject.version, "package": package()}


def _example(row: Row, outcome: Outcome) -> dict[str, Any]:
    return {
        "id": row.task.id,
        "category": row.category,
        "pattern": row.pattern,
        "label": row.label,
        "question": row.task.question,
        "reference": row.task.reference,
        "response": row.response,
        "status": outcome.status,
        "score": outcome.score,
        "feedback": outcome.feedback,
        "seconds": defined(outcome.seconds),
    }


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the audit as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
