"""Text that matches a regular expression."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.isolate.workers import Failure
from assay.verify.structured.data import WORKERS
from assay.verify.text.exact import shorten

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII}


@part("verify", "regex")
@dataclass(frozen=True, slots=True)
class Regex:
    """Right iff the answer matches the task's pattern, in Python's syntax.

    ``task.reference`` is the pattern, or ``{"pattern": p, "flags": "is", "groups": {name: text}}``: named groups that
    have to have captured that text, each a part. Matching runs in a process of its own; a pattern that backtracks
    longer than ``seconds`` makes the verifier abstain, since the pattern is the task's.

    Args:
        mode: the pattern matches the whole answer (``fullmatch``), its start (``match``) or somewhere (``search``).
        flags: any of ``i`` ignore case, ``m`` multi-line, ``s`` dot matches newlines, ``x`` verbose, ``a`` ASCII.
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`.
        seconds: longest processor time of one response.
        max_chars: a longer answer is wrong.
    """

    mode: Literal["fullmatch", "match", "search"] = "fullmatch"
    flags: str = ""
    rules: tuple[Rule, ...] = ("answer_tag", "boxed")
    fallback: Fallback = "whole"
    seconds: float = 2.0
    max_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if unknown := set(self.flags) - _FLAGS.keys():
            raise UsageError(f"verifier 'regex': unknown flags {''.join(sorted(unknown))!r}; known: {''.join(_FLAGS)}")
        if self.seconds <= 0:
            raise UsageError(f"verifier 'regex': seconds {self.seconds} must be above 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = task.reference if isinstance(task.reference, Mapping) else {"pattern": task.reference}
        pattern, flags, groups = spec.get("pattern"), spec.get("flags", self.flags), spec.get("groups") or {}
        if not (isinstance(pattern, str) and isinstance(flags, str) and isinstance(groups, Mapping)):
            return Verdict.abstain(f"task {task.id}: reference is no pattern")
        if set(flags) - _FLAGS.keys():
            return Verdict.abstain(f"task {task.id}: unknown flags {flags!r}")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        bits = sum(_FLAGS[f] for f in set(flags))
        reply = WORKERS.call("match", pattern, int(bits), self.mode, answer, seconds=self.seconds)
        if isinstance(reply, Failure):
            return Verdict.abstain(f"pattern {shorten(pattern)!r}: {reply.reason}")
        if "fault" in reply:
            return Verdict.abstain(f"task {task.id}: {reply['fault']}")
        if unknown := groups.keys() - reply["groups"].keys() if reply["found"] else set():
            return Verdict.abstain(f"task {task.id}: the pattern has no group {min(map(str, unknown))!r}")
        parts: dict[str, float | None] = {"match": float(reply["found"])}
        parts |= {str(name): float(reply["groups"].get(name) == text) for name, text in groups.items()}
        if not reply["found"]:
            return Verdict(0.0, False, parts, f"{shorten(answer)!r} does not match {shorten(pattern)!r}")
        score = sum(v or 0.0 for v in parts.values()) / len(parts)
        wrong = [name for name, value in parts.items() if not value]
        return Verdict(score, not wrong, parts, f"group {wrong[0]!r} captured other text" if wrong else "")
