"""Another environment, whose trajectories a verifier judges in the place of its own verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from assay.environments.base import Action, Environment, Guided, Observation, Step
from assay.environments.opinion import Cited
from assay.environments.verified.credit import Aim
from assay.environments.verified.verifier import Evidence, TrajectoryVerifier, Unjudged, aim_of
from assay.errors import UsageError
from assay.registry import build, part
from assay.types import NOTE, Task, Verdict, pictures


@part("environment", "trajectory_verified")
class TrajectoryVerified:
    """Another environment as it is, but that what was done is judged by a model, by a rubric of the task.

    See :class:`~assay.environments.verified.verifier.TrajectoryVerifier`; pictures that the other environment shows are
    shown to the judge, who then has to see. The verdict passes if the user has got what
    was asked for (``outcome``); its score is that, its part ``process`` the points of the rubric, in [0, 1], and
    ``well``, 1 where that is ``threshold`` or more. Parts ``criterion k`` are the credit by criterion, ``None`` where
    it does not apply; ``state`` is the other environment's own verdict, and nothing is made of it; a note on
    ``process`` counts ``contradictions``. It abstains where the judge fails. A task may bring a rubric,
    ``meta["rubric"]``, texts or tables of ``text``, ``points`` and ``condition``.

    Args:
        judge: an engine, or the specification of one.
        environment: the other one: a part's name, or a table with ``name`` and options.
        top, evidence, max_tokens: see the verifier.
        threshold: of a good process, in [0, 1].

    Raises:
        UsageError: no engine, or an option out of range; while judging, a task's rubric that is none.
    """

    def __init__(
        self,
        judge: Any,
        environment: str | dict[str, Any] = "screens",
        top: int = 5,
        evidence: Evidence = "relevant",
        threshold: float = 0.8,
        max_tokens: int = 2048,
    ):
        if not 0 <= threshold <= 1:
            raise UsageError(f"environment 'trajectory_verified': threshold {threshold:g} must be in [0, 1]")
        self.verifier = TrajectoryVerifier(judge, top, evidence, max_tokens)
        self.inner: Environment = build("environment", environment)
        self.threshold, self.repeats = threshold, getattr(self.inner, "repeats", True)

    def tasks(self) -> Any:
        return self.inner.tasks()

    def reset(self, task: Task, seed: int) -> Observation:
        self.task = task
        self.turns: list[Cited] = []
        return self.inner.reset(task, seed)

    def step(self, action: Action) -> Step:
        step = self.inner.step(action)
        seen = "\n".join(str(m["content"]) for m in step.observation.messages)
        images = tuple(pictures(step.observation.messages))
        self.turns.append(Cited(len(self.turns), action.text, seen, images))
        return step

    def verdict(self) -> Verdict:
        state = self.inner.verdict()
        own = {"state": None if state.passed is None else state.score}
        message = self.turns[-1].action if self.turns else ""
        asked = str(self.task.meta.get("instruction", self.task.question))
        try:
            found = self.verifier.judged(asked, self.turns, message, self._aims())
        except Unjudged as failed:
            return replace(Verdict.abstain(str(failed), "infrastructure"), parts=own)
        parts: dict[str, float | None] = {"outcome": float(found.success), "process": found.process}
        parts["well"] = None if found.process is None else float(found.process >= self.threshold)
        parts[f"process{NOTE}contradictions"] = float(sum(mark.contradicted for mark in found.marks))
        for k, mark in enumerate(found.marks, 1):
            parts[f"criterion {k}"] = mark.credit / mark.most if mark.applies else None
        short = [a.text for a, m in zip(found.aims, found.marks, strict=True) if m.applies and m.credit < m.most]
        return Verdict(float(found.success), found.success, parts | own, "\n".join(short))

    def close(self) -> None:
        self.inner.close()

    def gold(self) -> Sequence[Action]:
        """Return the other environment's plan.

        Raises:
            UsageError: it has none.
        """
        if not isinstance(self.inner, Guided):
            raise UsageError("environment 'trajectory_verified': the environment within has no plan")
        return self.inner.gold()

    def _aims(self) -> list[Aim] | None:
        rows = self.task.meta.get("rubric")
        if rows is None:
            return None
        try:
            return [aim_of(row) for row in rows]
        except (TypeError, KeyError, ValueError) as error:
            raise UsageError(f"the rubric of task {self.task.id} cannot be read: {error}") from None
