"""The verifier that each task asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.errors import UsageError, nearest
from assay.registry import build, names
from assay.types import Task, Verdict
from assay.verify.answer.place import marked
from assay.verify.answer.spans import Span
from assay.verify.base import Locates, Verifier, answer_place
from assay.verify.guard import judge, raised


def check_ready(verifier: Any) -> None:
    """Ask a verifier that has a method ``ready`` whether this machine has what it needs, before it is relied on.

    Raises:
        UsageError: it has not; one line says what to install.
    """
    ready = getattr(verifier, "ready", None)
    if callable(ready):
        ready()


class KindVerifier:
    """Judges each task with the verifier its ``kind`` names.

    A verifier that raises, or says what is no verdict (:func:`~assay.verify.guard.judge`), abstains with the reason.

    Args:
        overrides: verifiers by kind that come before the registered ones: names, tables or callables.

    Raises:
        UsageError: when made, for an override that cannot be built; when called, for a task of an unknown kind.
    """

    def __init__(self, overrides: Mapping[str, Any] | None = None):
        self._made: dict[str, Verifier] = {kind: build("verify", spec) for kind, spec in (overrides or {}).items()}

    def __call__(self, task: Task, response: str) -> Verdict:
        verifier, name = self.verifier(task), f"verifier {task.kind!r}"
        try:
            return judge(verifier, task, response, name)
        except UsageError as error:
            return Verdict.abstain(raised(name, error))

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`; of a kind that is not registered, what is marked."""
        if not self._knows(task):
            return marked(response, fallback="none")
        return answer_place(self.verifier(task), task, response)

    def locates(self, task: Task) -> bool:
        """Whether the verifier of the task's kind says where it reads the answer, and not only what is marked."""
        return self._knows(task) and isinstance(self.verifier(task), Locates)

    def _knows(self, task: Task) -> bool:
        return task.kind in self._made or task.kind in names("verify")

    def verifier(self, task: Task) -> Verifier:
        """Return the verifier of the task's kind, made on first use."""
        if task.kind not in self._made:
            known = names("verify")
            if task.kind not in known:
                known = sorted({*known, *self._made})
                hint = nearest(task.kind, known)
                listed = "" if hint.startswith("; known") else f" (known: {', '.join(known)})"
                raise UsageError(f"task {task.id} is of kind {task.kind!r}, which no verifier judges{hint}{listed}")
            self._made[task.kind] = build("verify", task.kind)
        return self._made[task.kind]

    def check(self, tasks: Iterable[Task]) -> None:
        """Make the verifiers of ``tasks`` now.

        Raises:
            UsageError: for the first task of an unknown kind, or of one whose verifier cannot work on this machine.
        """
        asked: set[str] = set()
        for task in tasks:
            verifier = self.verifier(task)
            if task.kind not in asked:
                asked.add(task.kind)
                check_ready(verifier)
