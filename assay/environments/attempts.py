"""Several attempts at a task: what is wrong with one is told, and the next may mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from assay.environments.base import Action, Observation, Step
from assay.environments.teacher import Teacher
from assay.environments.tools import say
from assay.errors import UsageError
from assay.registry import build, call, part
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
        teacher: options of :class:`~assay.environments.teacher.Teacher`, or one: a model that knows the answer says
            what is wrong, after the attempts that are; what would give the answer away is left out. A step whose
            teacher fails is the world's own failure.

    Raises:
        UsageError: fewer than one attempt, no such source, verifier or teacher.
    """

    def __init__(
        self,
        source: Any = "arithmetic",
        verifier: Any = None,
        most: int = 4,
        tell: Tell = "parts",
        teacher: Teacher | Mapping[str, Any] | None = None,
    ):
        if most < 1:
            raise UsageError(f"environment 'attempts': most {most} must be at least 1")
        self.source: TaskSource = build("tasks", source)
        self.verifier, self.most, self.tell = make_verifier(verifier), most, tell
        self.teacher = teacher if isinstance(teacher, Teacher) or teacher is None else made_teacher(teacher)
        self.task: Task | None = None
        self.said: list[tuple[str, str]] = []
        self.made, self.judged = 0, NOTHING

    def tasks(self) -> TaskSource:
        return self.source

    def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.made, self.judged, self.said, self.seed = task, 0, NOTHING, [], seed
        prompt = task.prompt
        shown = (Message(role="user", content=prompt),) if isinstance(prompt, str) else tuple(prompt)
        return Observation(shown, state="0")

    def step(self, action: Action) -> Step:
        if self.task is None or self._over:
            raise RuntimeError("no episode is under way; call reset first")
        self.judged, self.made = self.verifier(self.task, action.text), self.made + 1
        taught = self.teacher is not None and self.judged.passed is False and not self._over
        hint = self._hint(action.text) if taught else None
        reply = Message(role="user", content=self._told() if not hint else f"not right: {hint}")
        info = {} if hint is None else {"leaked": not hint}
        return Step(Observation((reply,), state=str(self.made)), terminated=self._over, verdict=self.judged, info=info)

    def _hint(self, attempt: str) -> str:
        """Return what the teacher says, which is kept for what he is asked next."""
        assert self.task is not None and self.teacher is not None
        hint = self.teacher.say(self.task, self.said, attempt, self.judged, self.seed + 1000 * self.made)
        self.said.append((attempt, hint))
        return hint

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


def made_teacher(options: Mapping[str, Any]) -> Teacher:
    """Return the teacher of these options; raise UsageError for one that there is not."""
    return call(Teacher, options, "environment 'attempts': teacher")


NOTHING = Verdict.wrong("nothing was attempted")
