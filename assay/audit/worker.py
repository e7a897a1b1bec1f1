"""What runs in the processes of an audit: one verifier, each of whose calls is timed where it happens."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

from assay.audit.outcome import Outcome, outcome
from assay.errors import UsageError, nearest
from assay.types import Task
from assay.verify.guard import raised
from assay.verify.kind import KindVerifier
from assay.verify.make import make_verifier

PARAMETERS = {
    "task": ("task",),
    "response": ("response", "solution_str", "completion", "prediction"),
    "reference": ("reference", "ground_truth", "gold", "answer"),
    "question": ("question", "prompt"),
}
"""Parameter names by which a function is handed the parts of a row."""

LONGEST = 2000
"""Characters of feedback that are kept."""

Judge = Callable[[Task, str], Any]
_MADE: list[tuple[Judge, float]] = []


def make_judge(spec: str, options: Mapping[str, Any]) -> tuple[Judge, Any]:
    """Return the judge that ``spec`` and its options describe, and what to hash as its code.

    Beside what :func:`~assay.verify.make.make_verifier` takes, ``module:function`` may be a function of other parts of
    a row, told by its parameters' names (:data:`PARAMETERS`), e.g. ``compute_score(solution_str, ground_truth)``.

    Raises:
        UsageError: there is no such verifier or option, or a parameter that no row fills.
    """
    found = make_verifier({**options, "name": spec})
    if isinstance(found, functools.partial):
        found = found.func
    if ":" not in spec or not inspect.isfunction(found):
        return found, found
    roles = _roles(spec, found, options)

    def judge(task: Task, response: str) -> Any:
        parts = {"task": task, "response": response, "reference": task.reference, "question": task.question}
        return found(**options, **{name: parts[role] for name, role in roles.items()})

    return judge, found


def _roles(spec: str, function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, str]:
    """What part of a row each parameter is handed."""
    parameters = inspect.signature(function).parameters
    named = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for option in options:
        if option not in parameters and not open_ended:
            raise UsageError(f"{spec} has no parameter {option!r}{nearest(option, parameters)}")
    roles: dict[str, str] = {}
    for p in named:
        role = next((r for r, known in PARAMETERS.items() if p.name in known), None)
        if p.name in options:
            continue
        if role is not None and role not in roles.values() and p.kind is not p.POSITIONAL_ONLY:
            roles[p.name] = role
        elif p.default is p.empty:
            known = ", ".join(n for names in PARAMETERS.values() for n in names)
            raise UsageError(
                f"{spec}: a row has nothing for the parameter {p.name!r}; known are {known};"
                f" give it a default, or {p.name}=VALUE"
            )
    if "response" not in roles.values():
        raise UsageError(f"{spec} takes no response; name one of its parameters {' or '.join(PARAMETERS['response'])}")
    return roles


def judged(judge: Judge, task: Task, response: str, threshold: float) -> Outcome:
    """Call the judge and time it; one that raises crashes on this row."""
    if isinstance(judge, KindVerifier):
        # By itself it would turn what a verifier raises into an abstention.
        judge = judge.verifier(task)
    begun = time.perf_counter()
    try:
        said = judge(task, response)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        seconds = time.perf_counter() - begun
        return Outcome("crashed", 0.0, raised("the verifier", error)[:LONGEST], seconds)
    return outcome(said, time.perf_counter() - begun, threshold)


def prepare(spec: str, options: Mapping[str, Any], threshold: float) -> None:
    """Make the judge of this process."""
    _MADE[:] = [(make_judge(spec, options)[0], threshold)]


def check(fields: tuple[Any, ...], response: str) -> list[Any]:
    """Return the outcome as a list that JSON holds."""
    judge, threshold = _MADE[0]
    found = judged(judge, Task(*fields), response, threshold)
    return [found.status, found.score, found.feedback[:LONGEST], found.seconds]
