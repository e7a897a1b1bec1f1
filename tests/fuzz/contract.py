"""What must hold of any verdict on a valid task, whatever the response."""

from __future__ import annotations

import json
import math
import re
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from assay.types import NOTE, Task, Verdict
from assay.verify.base import Verifier
from fuzz.responses import REGULAR

FEEDBACK, NAME, PARTS = 1500, 500, 1000
"""Characters of the longest feedback (two texts of 60, each character escaped) and of the longest name of a part;
the greatest number of parts."""
PATIENCE = 5
"""A call in this process is broken off after so many times the time allowed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a verdict; faults of one ``sort`` and ``place`` are the same."""

    sort: str
    place: str
    detail: str

    @property
    def key(self) -> tuple[str, str]:
        return self.sort, self.place


class TooLong(BaseException):
    """Broken off; no verifier catches it."""


class Watch:
    """Raises TooLong in the main thread once a call has used up its processor time in this process.

    One timer for all calls: setting it for each would cost more than most verdicts.
    """

    def __init__(self) -> None:
        self.deadline = math.inf

    def _look(self, number: int, frame: FrameType | None) -> None:
        if time.process_time() > self.deadline:
            self.deadline = math.inf
            raise TooLong

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch the calls in the block."""
        before = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, 0.5, 0.5)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Allow so much processor time for the block."""
        self.deadline = time.process_time() + seconds
        try:
            yield
        finally:
            self.deadline = math.inf


WATCH = Watch()


def processor_time() -> float:
    """Seconds of this process, its threads and the processes it started and has not buried."""
    ticks = 0
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            try:
                fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += sum(map(int, fields[11:15]))
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ticks / 100 + times.ru_utime + times.ru_stime


def allowed(seconds: float, response: str) -> float:
    """Processor time for a response: ``seconds`` up to 100 kB, in proportion to its length beyond."""
    return seconds * max(1.0, len(response) / REGULAR)


def call(verifier: Verifier, task: Task, response: str, seconds: float) -> Verdict | Fault:
    """Return the verdict, or what happened instead."""
    limit = allowed(seconds, response)
    try:
        with WATCH.within(PATIENCE * limit):
            return verifier(task, response)
    except TooLong as error:
        return Fault("slow", _place(error), f"broken off after {PATIENCE * limit:g} s of processor time")
    except Exception as error:
        return Fault("raises", _place(error), f"{type(error).__name__}: {error}"[:300])


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/assay/" in f.filename]
    frame = frames[-1] if frames else None
    where = "?" if frame is None else f"{frame.filename.rpartition('/assay/')[2]}:{frame.name}:{frame.lineno}"
    return f"{type(error).__name__} {where}"


def _generic(text: str) -> str:
    """What verdicts of one cause have in common: feedback without quotations and numbers."""
    return re.sub(r"\s+", " ", re.sub(r"'.*'|\".*\"|[^ -~]|[0-9.e+-]+", "", text))[:60].strip()


def faults(verdict: object, abstains: str | None) -> Iterator[Fault]:
    """Yield what is wrong with a verdict; ``abstains`` is a reason that the verifier may abstain for."""
    if not isinstance(verdict, Verdict):
        yield Fault("type", type(verdict).__name__, repr(verdict)[:200])
        return
    place = _generic(verdict.feedback)
    score = verdict.score
    if type(score) is not float or not math.isfinite(score) or not 0 <= score <= 1:
        yield Fault("score", place, repr(score))
    if verdict.passed not in (True, False, None) or not isinstance(verdict.passed, bool | None):
        yield Fault("passed", place, repr(verdict.passed))
    if verdict.passed is None and (abstains is None or abstains not in verdict.feedback):
        yield Fault("abstains", place, verdict.feedback[:300])
    if verdict.passed is None and score != 0:
        yield Fault("score of an abstention", place, repr(score))
    if not isinstance(verdict.feedback, str) or not verdict.feedback.isprintable():
        yield Fault("feedback not printable", place, repr(verdict.feedback)[:300])
    if len(verdict.feedback) > FEEDBACK:
        yield Fault("feedback too long", place, f"{len(verdict.feedback)} characters")
    if len(verdict.parts) > PARTS:
        yield Fault("too many parts", place, f"{len(verdict.parts)}")
    for name, value in verdict.parts.items():
        if not isinstance(name, str) or not name.isprintable() or len(name) > NAME:
            yield Fault("name of a part", place, repr(name)[:300])
            break
        measured = type(value) is float and math.isfinite(value)
        if value is not None and not (measured and (NOTE in name or 0 <= value <= 1)):
            yield Fault("value of a part", f"{place} {_generic(name)}", f"{name}: {value!r}")
            break
    else:
        json.dumps(dict(verdict.parts), allow_nan=False)
