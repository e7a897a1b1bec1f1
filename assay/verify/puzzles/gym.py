"""reasoning-gym's own scorers, run in a process of their own."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.puzzles.gym_scorer import enormous

WORKERS = Workers("assay.verify.puzzles.gym_scorer")
PLAIN = ("0", "", "[]", "{}")
"""Answers that a scorer has to cope with where the right one is not known."""


@part("verify", "gym")
@dataclass(frozen=True, slots=True)
class Gym(Marked):
    """The score that the task's reasoning-gym data set gives to the answer.

    ``task.reference`` is ``{"dataset": name, "config": {...}, "entry": {...}}``, as the ``gym`` task source makes it.
    An answer on which the scorer raises, crashes, returns no number or spends its time or memory is wrong if the same
    scorer is well with the entry's own answer (with one of :data:`PLAIN` where the entry has none); otherwise, and
    where anything but the scorer fails, the verifier abstains. A number such as ``9**9**9`` is wrong without asking,
    unless the entry's answer has one.

    Args:
        threshold: passed iff score >= threshold.
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`.
        seconds: longest processor time one answer may take.
        max_chars: a longer answer is wrong without asking the scorer.

    Raises:
        UsageError: when made, if reasoning-gym is not installed.
    """

    threshold: float = 1.0
    rules: tuple[Rule, ...] = ("answer_tag",)
    fallback: Fallback = "whole"
    seconds: float = 10.0
    max_chars: int = 20_000

    def __post_init__(self) -> None:
        if importlib.util.find_spec("reasoning_gym") is None:
            raise UsageError("verifier 'gym' needs reasoning-gym: pip install assay[gym]")
        if not (0 < self.threshold <= 1 and self.seconds > 0):
            raise UsageError(
                f"verifier 'gym': threshold {self.threshold} must be in (0, 1] and seconds {self.seconds} above 0"
            )

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            dataset, entry = task.reference["dataset"], task.reference["entry"]
            config = json.dumps(task.reference.get("config") or {}, sort_keys=True)
        except (TypeError, KeyError, AttributeError, ValueError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'dataset': name, 'entry': {{...}}}}")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        if len(answer) > self.max_chars:
            return Verdict.wrong(f"the answer is longer than {self.max_chars} characters")
        right = _own_answer(entry)
        if enormous(answer) and not any(map(enormous, right)):
            return Verdict.wrong("the answer has a number that would take long to be written out")
        score = WORKERS.call("score", dataset, config, entry, answer, seconds=self.seconds)
        if isinstance(score, Failure) or not math.isfinite(score):
            return self._blame(dataset, config, entry, score)
        score = min(max(score, 0.0), 1.0)
        passed = score >= self.threshold
        return Verdict(score, passed, {}, "" if passed else f"{dataset} scored {score:g}")

    def _blame(self, dataset: str, config: str, entry: Any, failed: Failure | float) -> Verdict:
        """Say whether the answer is to blame for a score that could not be had: is a plain one scored?"""
        said = failed.reason if isinstance(failed, Failure) else f"scored {failed}"
        if not isinstance(failed, Failure) or failed.own:
            for plain in _own_answer(entry):
                again = WORKERS.call("score", dataset, config, entry, plain, seconds=self.seconds)
                if not isinstance(again, Failure) and math.isfinite(again):
                    return Verdict.wrong(f"the scorer of {dataset} fails on the answer: {said}"[:300])
        return Verdict.abstain(f"reasoning-gym {dataset}: {said}")


def _own_answer(entry: Any) -> tuple[str, ...]:
    known = entry.get("answer") if isinstance(entry, Mapping) else None
    return (known,) if isinstance(known, str) else PLAIN
