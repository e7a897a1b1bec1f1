"""Fuzzing of one verifier: many examples, each checked; a fault is shrunk, written down once, and passed over after."""

from __future__ import annotations

import gc
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from assay.types import Task, Verdict
from assay.verify.base import Verifier
from fuzz.cases import ENTRIES, Case, Entry
from fuzz.contract import WATCH, Fault, allowed, call, faults, processor_time
from fuzz.responses import MARKED, REGULAR, responses

ROUND = 500
"""Examples of one run of Hypothesis: what it remembers of them grows."""
GROWTH = 200 << 20
"""Bytes by which this process may grow over a campaign."""
TAILS = (" ", "\n", "\n\n", " \t \n ")
MOST = 25
"""Faults after which a campaign ends."""


@dataclass
class Report:
    """What a campaign found."""

    name: str
    examples: int = 0
    seconds: float = 0.0
    right: int = 0
    abstained: int = 0
    growth: int = 0
    slowest: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Found(AssertionError):
    """Stops a run of Hypothesis, which then looks for a shorter response with the same fault."""

    def __init__(self, fault: Fault, case: int, response: str):
        super().__init__(fault.sort)
        self.fault, self.case, self.response = fault, case, response


class Campaign:
    """The state of fuzzing one entry of the table.

    Args:
        name: of the entry.
        first: the seed; the same seed gives the same examples.
        folder: where responses with a fault are written, if they are.
    """

    def __init__(self, name: str, first: int = 0, folder: Path | None = None):
        self.entry: Entry = ENTRIES[name]
        self.verifier: Verifier = self.entry.make()
        self.tasks: list[Task] = [self.entry.task(case) for case in self.entry.cases]
        self.report = Report(name)
        self.known: set[tuple[str, str]] = set()
        self.first, self.folder = first, folder
        self.static = True
        self._wanted: tuple[str, str] | None = None

    def run(self, examples: int) -> Report:
        """Judge so many responses (the entry's share of them); return what was found."""
        with WATCH.running():
            return self._run(max(2, round(examples * self.entry.share)))

    def _run(self, examples: int) -> Report:
        begun = time.perf_counter()
        for fault, case, response in static_faults(self.entry, self.verifier) if self.static else ():
            self._note(fault, case, response)
        before = resident()
        for number in itertools.count():
            left = examples - self.report.examples
            if left <= 0 or len(self.report.findings) >= MOST:
                break
            done = self.report.examples
            self._round(min(left, ROUND), self.first * 100_003 + number)
            if self.report.examples == done:
                break
            if number == 0:
                gc.collect()
                before = resident()
        gc.collect()
        self.report.growth = resident() - before
        if self.report.growth > GROWTH:
            self._note(Fault("memory", "", f"grew by {self.report.growth >> 20} MB"), 0, "")
        self._time_slowest()
        self.report.seconds = time.perf_counter() - begun
        return self.report

    def _round(self, examples: int, number: int) -> None:
        self._wanted = None

        @seed(number)
        @settings(
            max_examples=examples,
            phases=(Phase.generate, Phase.shrink),
            database=None,
            deadline=None,
            derandomize=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(
            st.integers(0, len(self.tasks) - 1),
            responses(self.entry.cases, self.entry.soup),
            st.sampled_from(TAILS),
        )
        def check(case: int, response: str, tail: str) -> None:
            self._check(case, response, tail)

        try:
            check()
        except Found as found:
            self._note(found.fault, found.case, found.response)
        except Flaky as error:
            self._note(Fault("flaky", "", str(error)[:300]), 0, "")

    def _check(self, case: int, response: str, tail: str) -> None:
        shrinking = self._wanted is not None
        self.report.examples += not shrinking
        for fault in self._faults(case, response, tail):
            if fault.key in self.known:
                continue
            if fault.sort == "slow":
                # Not shrunk: each try would take as long.
                self._note(fault, case, response)
                continue
            if self._wanted in (None, fault.key):
                self._wanted = fault.key
                raise Found(fault, case, response)

    def _faults(self, case: int, response: str, tail: str) -> Iterator[Fault]:
        task, seconds = self.tasks[case], self.entry.seconds
        begun = time.perf_counter()
        verdict = call(self.verifier, task, response, seconds)
        took = time.perf_counter() - begun
        if self._wanted is None:
            self._count(verdict, case, response, took)
        if isinstance(verdict, Fault):
            yield verdict
            return
        if took > allowed(seconds, response):
            spent = min(self._processor_time(case, response) for _ in range(2))
            if spent > allowed(seconds, response):
                yield Fault(
                    "slow", verdict.feedback[:20], f"{spent:.2f} s of processor time for {len(response)} characters"
                )
        yield from faults(verdict, self.entry.abstains)
        again = call(self.verifier, task, response, seconds)
        if again != verdict:
            yield Fault("not deterministic", "", f"{verdict} / {again}")
        if self.entry.spaces and len(response) < REGULAR // 10:
            longer = call(self.verifier, task, response + tail, seconds)
            if isinstance(longer, Verdict) and (longer.passed, longer.score) != (verdict.passed, verdict.score):
                yield Fault("white space", "", f"{verdict} / with {tail!r} after it: {longer}"[:400])

    def _count(self, verdict: Verdict | Fault, case: int, response: str, took: float) -> None:
        if isinstance(verdict, Verdict):
            self.report.right += verdict.passed is True
            self.report.abstained += verdict.passed is None
        slowest = self.report.slowest
        if len(slowest) < 3 or took > slowest[-1]["seconds"]:
            slowest.append({"seconds": took, "case": case, "characters": len(response), "response": response})
            slowest.sort(key=lambda one: -one["seconds"])
            del slowest[3:]

    def _processor_time(self, case: int, response: str) -> float:
        before = processor_time()
        call(self.verifier, self.tasks[case], response, self.entry.seconds)
        return processor_time() - before

    def _time_slowest(self) -> None:
        """Replace wall times, which depend on what else the machine does, by processor times."""
        for one in self.report.slowest:
            response = one.pop("response")
            one["seconds"] = min(self._processor_time(one["case"], response) for _ in range(2))
            one["start"], one["end"] = ascii(response[:60]), ascii(response[-60:])
        self.report.slowest.sort(key=lambda one: -one["seconds"])

    def _note(self, fault: Fault, case: int, response: str) -> None:
        self.known.add(fault.key)
        finding = {**asdict(fault), "case": case, "characters": len(response), "response": ascii(response[:400])}
        if self.folder is not None:
            path = self.folder / f"{self.report.name.replace('/', '-')}-{len(self.report.findings) + 1}.json"
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**finding, "response": response}))
            finding["file"] = str(path)
        self.report.findings.append(finding)


def static_faults(entry: Entry, verifier: Verifier) -> Iterator[tuple[Fault, int, str]]:
    """Yield what is wrong with right answers: not accepted, not in a marker, or accepted by another task."""
    rules = getattr(verifier, "rules", ()) if entry.marked else ()
    for number, case in enumerate(entry.cases):
        task = entry.task(case)
        for answer in case.answers:
            forms = [answer, *(MARKED[rule].format(answer) for rule in rules if _fits(rule, answer))]
            for form in forms:
                verdict = call(verifier, task, form, entry.seconds)
                if not isinstance(verdict, Verdict) or verdict.passed is not True:
                    yield Fault("right answer refused", form, str(verdict)), number, form
        if entry.apart:
            for answer in _answers(entry.cases, number):
                verdict = call(verifier, task, answer, entry.seconds)
                if not isinstance(verdict, Verdict) or verdict.passed is True:
                    yield Fault("another task's answer", f"{number} {answer}", str(verdict)), number, answer


def _answers(cases: Any, without: int) -> Iterator[str]:
    mine = set(cases[without].answers)
    for number, case in enumerate(cases):
        if number != without:
            yield from (answer for answer in case.answers if answer not in mine)


def _fits(rule: str, answer: str) -> bool:
    """Say whether an answer may stand in a marker: sentences and lines end where the marker's own text does."""
    if rule == "answer_tag":
        return "answer>" not in answer
    if rule == "boxed":
        return answer.count("{") == answer.count("}") and "boxed" not in answer
    plain = "\n" not in answer and "answer" not in answer
    return plain and (rule == "hashes" or ". " not in answer)


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


__all__ = ["Campaign", "Case", "Report", "static_faults"]
