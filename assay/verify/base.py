"""The verify seam: is it right, and how do we know?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from assay.types import Task, Verdict
from assay.verify.answer.place import marked
from assay.verify.answer.spans import Span


@runtime_checkable
class Verifier(Protocol):
    """Judges a response. Pure, thread- and process-safe; never raises on any response; abstains when it cannot tell."""

    def __call__(self, task: Task, response: str) -> Verdict: ...


@runtime_checkable
class Locates(Protocol):
    """A verifier that also says where in a response it reads the final answer.

    It is the one party that knows: rewards, signals and rollouts that tell a response's reasoning from its answer ask
    it, so that they read the answer where the verdict does.
    """

    def answer(self, task: Task, response: str) -> Span | None:
        """Return the answer's place in ``response`` as it stands (characters), ``None`` where there is none.

        ``[begin, start)`` is what opens the answer, ``[start, end)`` the answer, ``[end, over)`` what closes it; an
        answer without a mark has ``begin == start`` and ``end == over``. Pure; never raises on any response.
        """
        ...


def answer_place(verifier: Verifier, task: Task, response: str) -> Span | None:
    """Return where ``verifier`` reads the answer; of one that does not say, what a tag, box, hashes or phrase marks."""
    if isinstance(verifier, Locates):
        return verifier.answer(task, response)
    return marked(response, fallback="none")
