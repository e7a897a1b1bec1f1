"""From what came of the tests to a verdict."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.sandbox import Outcome
from assay.types import Verdict

Scoring = Literal["all", "fraction"]


@dataclass(frozen=True, slots=True)
class Case:
    """One test: its name, whether it passed (``None``: it says nothing), what to learn from it, processor seconds."""

    name: str
    passed: bool | None
    said: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Abstain(Exception):
    """The program cannot be judged: the reason, which is not its own fault."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def verdict(cases: Sequence[Case], count: int, scoring: Scoring, note: str = "", timings: bool = False) -> Verdict:
    """Return the verdict on ``cases``, of ``count`` tests there are: right iff all passed that say anything.

    The score is 1 or 0, or the ``fraction`` of the tests that passed. The feedback is of the first that failed.
    """
    parts = {case.name: None if case.passed is None else float(case.passed) for case in cases}
    told = [case for case in cases if case.passed is not None]
    skipped = len(cases) - len(told)
    count = max(count, len(cases)) - skipped
    right = sum(bool(case.passed) for case in told)
    if not count:
        return Verdict(0.0, None, parts, "all tests were skipped" if skipped else "there are no tests")
    passed = right == count
    score = right / count if scoring == "fraction" else float(passed)
    failed = next((case for case in told if not case.passed), None)
    if passed:
        feedback = note
    else:
        said = f"{failed.name}: {failed.said}" if failed is not None else "not all tests were run"
        feedback = f"passed {right} of {count} tests; {said}" + (f"; {note}" if note else "")
    if timings:
        feedback = f"{feedback}; {sum(case.seconds for case in cases):.3f} s".removeprefix("; ")
    return Verdict(score, passed, parts, feedback)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = _SHORT.maxdeque = 10


def brief(value: Any) -> str:
    """``value`` in at most some 150 characters, its middle left out."""
    text = _SHORT.repr(value)
    return text if len(text) <= 150 else text[:90] + "..." + text[-50:]


def brief_bytes(data: bytes | str) -> str:
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return brief(text.rstrip("\n"))


def ending(outcome: Outcome) -> str:
    """How a program failed, with the last line of its complaint."""
    if outcome.status == "compile_error":
        lines = outcome.stderr.decode("utf-8", "replace").splitlines()
        wrong = next((line for line in lines if "error" in line), lines[0] if lines else "")
        return f"it does not compile: {wrong.strip()[:250]}" if wrong else outcome.reason
    if outcome.status != "error":
        return outcome.reason
    return trace(outcome.stderr) or outcome.reason


def trace(stderr: bytes) -> str:
    """The innermost frames of the program's own and the error, of what an interpreter wrote about it."""
    lines = stderr[-20000:].decode("utf-8", "replace").rstrip().splitlines()
    if not lines:
        return ""
    frames = [line.split('main.py", ', 1)[1].strip() for line in lines if line.lstrip().startswith('File "main.py", ')]
    last = lines[-1].strip()
    if not frames:
        # Node writes the error before its frames.
        last = next((line.strip() for line in lines if "Error" in line), last)
    return "; ".join([*frames[-3:], last])[:400]
