"""What runs in the processes of :class:`assay.verify.isolate.pool.VerifierPool`: one verifier, made once."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from assay.types import Task, Verdict
from assay.verify.base import Verifier
from assay.verify.guard import judge
from assay.verify.isolate.modules import Imports, import_all
from assay.verify.make import make_verifier

LONGEST = 100_000
"""Characters of feedback that come back."""

_VERIFIER: list[Verifier] = []


def prepare(imports: Imports, spec: bytes) -> None:
    """Make the verifier: ``spec`` is a pickled one or a description, which may name parts of what is imported."""
    import_all(imports)
    _VERIFIER[:] = [make_verifier(pickle.loads(spec))]


def check(fields: tuple[Any, ...], response: str) -> list[Any]:
    """Return the verdict on a response as a list that JSON holds."""
    verdict = judge(_VERIFIER[0], Task(*fields), response)
    if verdict.passed is None and "MemoryError" in verdict.feedback:
        # Whoever caught it did not know that this process is to be replaced then.
        raise MemoryError
    return pack(verdict)


def pack(verdict: Verdict) -> list[Any]:
    parts: Mapping[str, float | None] = verdict.parts
    return [
        float(verdict.score),
        None if verdict.passed is None else bool(verdict.passed),
        {str(k): None if v is None else float(v) for k, v in parts.items()},
        str(verdict.feedback)[:LONGEST],
    ]
