r"""Judging an answer in several turns: an interpreter and a converter of units are called, and ``\boxed`` ends it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from assay.environments.base import Action, EnvironmentFailure
from assay.environments.checking.cases import KINDS, Made, judged_tasks
from assay.environments.tools import ToolEnvironment, ToolError, call, say, tool
from assay.errors import UsageError, nearest
from assay.registry import part
from assay.sandbox.session import Session
from assay.sandbox.types import Limits
from assay.tasks.base import TaskSource
from assay.tasks.judging.words import said_word
from assay.tasks.seeded import check_seed
from assay.types import Task, Tool, Verdict
from assay.verify.number.quantity import convert
from assay.verify.number.units import UnknownUnit, parse

SHOWN = 2000
"""Characters of an interpreter's output that are shown."""


@part("environment", "checking")
class Checking(ToolEnvironment):
    r"""A judge looks at a response, may call tools, and ends with ``\boxed{Correct}`` or ``\boxed{Incorrect}``.

    What is wrong with a call (a unit that there is not, another dimension, an exception, a time-out) is a text to be
    read, never a verdict. The verdict passes if what was said is the label; its parts are ``readable``, whether
    anything was said, and ``tool``, 1 where it is right and a call has succeeded. A sandbox that fails is the world's
    failure.

    Args:
        path: judged responses, see tasks ``critiques``; made up if left out.
        rare: each rarer kind of reference, such as intervals or quantities, comes to this share of the commonest one by
            answers in other writing and near ones that are added to ``path``; 0 adds none.
        kinds: of made-up ones: ``lengths``, ``speeds``, ``fractions``, ``words``; all unless given.
        calls: that can be made; 0 for a judge without tools.
        seconds: processor time of a run of the interpreter.
        seed: of made-up cases and of what is added.

    Raises:
        UsageError: nothing of use in a file, a kind that there is not, a number out of range.

    Source: CoSineVerifier (arXiv 2512.01224) and its authors' prompts.
    """

    def __init__(
        self,
        path: Path | None = None,
        kinds: Sequence[str] = tuple(KINDS),
        calls: int = 5,
        seconds: float = 5.0,
        seed: int = 0,
        rare: float = 0.0,
    ):
        check_seed("environment 'checking'", seed)
        for kind in kinds:
            if kind not in KINDS:
                raise UsageError(f"environment 'checking': no kind is called {kind!r}{nearest(kind, KINDS)}")
        if not kinds or calls < 0 or not 0 < seconds <= 3600:
            raise UsageError("environment 'checking': kinds are one or more, calls 0 or more, seconds above 0")
        if not 0 <= rare <= 1 or (rare and path is None):
            raise UsageError(
                "environment 'checking': rare is a share in [0, 1], for judged responses; give their path with it"
            )
        self.source: TaskSource = Made(seed, tuple(kinds)) if path is None else judged_tasks(Path(path), rare, seed)
        self.most, self.limits, self.session = calls, Limits(cpu_seconds=seconds), None

    session: Session | None

    def tasks(self) -> TaskSource:
        return self.source

    def begin(self, task: Task, seed: int) -> None:
        self.close_session()
        self.left, self.succeeded, self.answer = self.most, 0, None

    def available(self) -> tuple[Tool, ...]:
        return self.tools() if self.most else ()

    def make_call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if not self.left:
            raise ToolError("no calls are left; give the verdict now")
        self.left -= 1
        result = self.returned(name, arguments)
        self.succeeded += 1
        return result

    def returned(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return what a call returns."""
        return super().make_call(name, arguments)

    @tool
    def python_interpreter(self, code: str) -> str:
        """Run Python, which keeps what earlier runs defined; returns what it prints and its last value."""
        if self.session is None:
            self.session = Session(self.limits)
        found = self.session.run(code)
        if found.failed_here:
            raise EnvironmentFailure(found.reason)
        if found.status != "ok":
            raise ToolError(f"{found.status}: {found.error or found.reason}"[:SHOWN])
        value = "" if found.value is None else found.value
        return f"{found.stdout.decode('utf-8', 'replace')}{value}"[:SHOWN] or "nothing was printed"

    @tool
    def unit_conversion(self, value: float, source_unit: str, target_unit: str) -> str:
        """Convert a value from one unit to another, such as km/h to m/s."""
        if not math.isfinite(value):
            raise ToolError("the value is no finite number")
        try:
            ours, theirs = parse(source_unit), parse(target_unit)
        except UnknownUnit as error:
            raise ToolError(f"unknown unit: {error}") from None
        if ours.dimension != theirs.dimension:
            raise ToolError(f"{source_unit} cannot be converted to {target_unit}: they measure different things")
        return f"{float(convert(Fraction(value), ours, theirs)):.12g} {target_unit}"

    def state_key(self) -> str:
        return f"{self.task.id}: {self.left} {self.succeeded} {self.answer}"

    def verdict(self) -> Verdict:
        label = self.task.meta.get("label")
        if label is None:
            return Verdict.abstain(f"task {self.task.id} has no label")
        found = None if self.answer is None or self._under_way else said_word(self.answer)
        right = found is label
        parts: dict[str, float | None] = {"readable": float(found is not None)}
        parts["tool"] = float(right and self.succeeded > 0)
        return Verdict(float(right), right, parts, "" if right else f"said {found}, the label is {label}")

    def gold(self) -> Sequence[Action]:
        r"""Return the rest of the calls that show the verdict, and the verdict."""
        made = self.most - self.left
        plan = self.task.meta.get("plan", [])[made:] if self.most else []
        word = "Correct" if self.task.meta["label"] else "Incorrect"
        return [*(call(p["name"], **p["arguments"]) for p in plan), say(rf"\boxed{{{word}}}")]

    def close(self) -> None:
        self.close_session()
        super().close()

    def close_session(self) -> None:
        """End the interpreter, if there is one."""
        if self.session is not None:
            self.session.close()
            self.session = None
