"""The verify seam: is it right, and how do we know?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from assay.types import Task, Verdict


@runtime_checkable
class Verifier(Protocol):
    """Judges a response. Pure, thread- and process-safe; never raises on any response; abstains when it cannot tell."""

    def __call__(self, task: Task, response: str) -> Verdict: ...
