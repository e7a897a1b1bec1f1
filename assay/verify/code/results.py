"""From what came of the tests to a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.sandbox import Outcome
from assay.types import NOTE, Fault, Verdict
from assay.verify.code.inside.wire import SHORT
from assay.verify.code.worth import Worth

Scoring = Literal["all", "fraction"]


_STATUSES = {"timeout": "time", "memory": "memory", "output": "output", "compile_error": "compile error"}


@dataclass(frozen=True, slots=True)
class Case:
    """One test and what came of it.

    Attributes:
        name: unique among the tests of a task, but for those that the tests themselves give the same.
        score: in [0, 1]; ``None``: it says nothing.
        said: what to learn from it.
        seconds: processor seconds, if they are known.
        memory: most bytes held, if that is known.
        status: why it failed, where that is not by a wrong answer; see :func:`status_of`.
    """

    name: str
    score: float | None
    said: str = ""
    seconds: float | None = None
    memory: int | None = None
    status: str = ""

    @property
    def passed(self) -> bool | None:
        return None if self.score is None else self.score >= 1

    @property
    def shown(self) -> str:
        """One of the statuses that :class:`~assay.verify.code.verifier.Code` lists."""
        if self.score is None:
            return "skipped"
        if self.status:
            return self.status
        return "right" if self.score >= 1 else "partial" if self.score > 0 else "wrong"


def status_of(outcome: Outcome) -> str:
    """The status of a test in which a program ended so; empty if it ended well."""
    return "" if outcome.status == "ok" else _STATUSES.get(outcome.status, "runtime error")


@dataclass(frozen=True, slots=True)
class Abstain(Exception):
    """The program cannot be judged: the reason, and whose fault that is, which is never its own."""

    reason: str
    fault: Fault = "tests"

    def __str__(self) -> str:
        return self.reason


def verdict(
    cases: Sequence[Case],
    count: int,
    scoring: Scoring,
    note: str = "",
    details: bool = False,
    worth: Worth = Worth(),  # noqa: B008  it cannot be changed
    whole: tuple[float, int] | None = None,
) -> Verdict:
    """Return the verdict on ``cases``, of ``count`` tests there are: right iff all passed that say anything.

    The score is 1 or 0, or the ``fraction`` of what the tests are ``worth``. The feedback is of the first that failed.
    ``whole``: seconds and bytes of a process that all tests share.
    """
    scores = {case.name: None if case.score is None else float(case.score) for case in cases}
    told = [case for case in cases if case.score is not None]
    skipped = len(cases) - len(told)
    share, groups = worth.score(scores, max(count, len(cases)))
    parts = scores | {f"group {name}": score for name, score in groups.items()}
    if details:
        parts |= _details(cases)
        if whole is not None:
            parts |= {f"program{NOTE}seconds": whole[0], f"program{NOTE}MiB": whole[1] / (1 << 20)}
    count = max(count, len(cases)) - skipped
    right = sum(bool(case.passed) for case in told)
    if not count:
        return Verdict(0.0, None, parts, "all tests were skipped" if skipped else "there are no tests", "tests")
    passed = right == count
    score = share if scoring == "fraction" else float(passed)
    failed = next((case for case in told if not case.passed), None)
    if passed:
        return Verdict(score, True, parts, note)
    said = f"{failed.name}: {failed.said}" if failed is not None else "not all tests were run"
    return Verdict(score, False, parts, f"passed {right} of {count} tests; {said}" + (f"; {note}" if note else ""))


def _details(cases: Sequence[Case]) -> dict[str, float]:
    """What is noted of each test beside its score."""
    noted: dict[str, float] = {}
    for case in cases:
        noted[f"{case.name}{NOTE}{case.shown}"] = 1.0
        if case.seconds is not None:
            noted[f"{case.name}{NOTE}seconds"] = case.seconds
        if case.memory is not None:
            noted[f"{case.name}{NOTE}MiB"] = case.memory / (1 << 20)
    return noted


def brief(value: Any) -> str:
    """``value`` in at most some 150 characters, its middle left out."""
    text = SHORT.repr(value)
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
