"""reasoning-gym's own scorers, run in a process of their own."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import dataclass

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.extract import Fallback, Rule, extract
from assay.verify.isolate import Failure, Workers

WORKERS = Workers("assay.verify.gym_scorer")


@part("verify", "gym")
@dataclass(frozen=True, slots=True)
class Gym:
    """The score that the task's reasoning-gym data set gives to the answer.

    ``task.reference`` is ``{"dataset": name, "config": {...}, "entry": {...}}``, as the ``gym`` task source makes it.
    Abstains where the scorer raises, is killed for time or memory, or returns no number.

    Args:
        threshold: passed iff score >= threshold.
        rules, fallback: where the answer stands, see :func:`~assay.verify.extract.extract`.
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
        score = WORKERS.call("score", dataset, config, entry, answer, seconds=self.seconds)
        if isinstance(score, Failure):
            return Verdict.abstain(f"reasoning-gym {dataset}: {score.reason}")
        if not math.isfinite(score):
            return Verdict.abstain(f"reasoning-gym {dataset}: scored {score}")
        score = min(max(score, 0.0), 1.0)
        passed = score >= self.threshold
        return Verdict(score, passed, {}, "" if passed else f"{dataset} scored {score:g}")
