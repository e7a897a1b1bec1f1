"""Several attempts at a task: what is wrong with one is told, and the next may mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from assay.environments.base import Action, Observation, Step
from assay.environments.tools import say
from assay.errors import UsageError
from assay.registry import build, part
from assay.tasks.base import TaskSource
from assay.types import NOTE, Message, Task, Verdict
from assay.verify.make import make_verifier

Tell = Literal["passed", "parts", "feedback"]


@part("environment", "attempts")
class Attempts:
    """A turn is an answer, which a verifier judges: the episode ends once it passes, or the attempts are spent.

    The verdict is that of the last attempt; every turn has its own (``Turn.verdict``), with its parts, such as the
    tests of a program. A verifier that abstains from an attempt says nothing of it: the policy is told so, and tries
    again. The state is how many attempts have been made.

    Args:
        source: of the tasks: a part's name, or a table with ``name`` and options.
        verifier: as for :func:`assay.verify.make.make_verifier`; by default that of each task's kind.
        most: attempts.
        tell: what is said of an attempt that does not pass: that it does not (``passed``); which parts of the verdict
            it fails too (``parts``); or what the verifier says of it (``feedback``), which is what a program needs to
            be mended, but gives many an answer away.

    Raises:
        UsageError: fewer than one attempt, no such source or verifier.
    """

    def __init__(self, source: Any = "arithmetic", verifier: Any = None, most: int = 4, tell: Tell = "parts"):
        if most < 1:
            raise UsageError(f"environment 'attempts': most {most} must be at least 1")
        self.source: TaskSource = build("tasks", source)
        self.verifier, self.most, self.tell = make_verifier(verifier), most, tell
        self.task: Task | None = None
        self.made, self.judged = 0, NOTHING

    def tasks(self) -> TaskSource:
        return self.source

    def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.made, self.judged = task, 0, NOTHING
        prompt = task.prompt
        shown = (Message(role="user", content=prompt),) if isinstance(prompt, str) else tuple(prompt)
        return Observation(shown, state="0")

    def step(self, action: Action) -> Step:
        if self.task is None or self._over:
            raise RuntimeError("no episode is under way; call reset first")
        self.judged, self.made = self.verifier(self.task, action.text), self.made + 1
        reply = Message(role="user", content=self._told())
        return Step(Observation((reply,), state=str(self.made)), terminated=self._over, verdict=self.judged)

    @property
    def _over(self) -> bool:
        return self.judged.passed is True or self.made >= self.most

    def _told(self) -> str:
        """Return what is said of the attempt."""
        if self.judged.passed:
            return "right"
        if self.judged.passed is None:
            return "this attempt could not be judged"
        said = "not right"
        if self.tell == "feedback" and self.judged.feedback:
            said = f"not right: {self.judged.feedback}"
        failed = [n for n, score in self.judged.parts.items() if NOTE not in n and score is not None and score < 1]
        if self.tell == "parts" and failed:
            said = f"not right: {', '.join(failed)} failed"
        left = self.most - self.made
        return f"{said} ({left} {'attempt' if left == 1 else 'attempts'} left)"

    def verdict(self) -> Verdict:
        return self.judged

    def close(self) -> None:
        self.task = None

    def state_json(self) -> Any:
        return {"made": self.made, "passed": self.judged.passed, "score": self.judged.score}

    def gold(self) -> Sequence[Action]:
        """Return the task's worked solution.

        Raises:
            UsageError: it has none.
        """
        if self.task is None or self.task.solution is None:
            raise UsageError("environment 'attempts': the task has no solution")
        return [say(self.task.solution)]


NOTHING = Verdict.wrong("nothing was attempted")
