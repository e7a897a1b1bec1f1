"""What runs in the processes of :class:`assay.verify.isolate.pool.VerifierPool`: one verifier, made once."""

from __future__ import annotations

import importlib
import multiprocessing.spawn
import pickle
from collections.abc import Mapping
from typing import Any

from assay.types import Task, Verdict
from assay.verify.base import Verifier
from assay.verify.guard import judge
from assay.verify.make import make_verifier

LONGEST = 100_000
"""Characters of feedback that come back."""

_VERIFIER: list[Verifier] = []


def prepare(modules: list[str], main: dict[str, Any] | None, spec: bytes) -> None:
    """Make the verifier: ``spec`` is a pickled one or a description, ``modules`` register parts it may name."""
    if main is not None:
        # What a script defines is pickled by name, so the script is imported as ``multiprocessing`` does it.
        multiprocessing.spawn.prepare(main)
    for module in modules:
        importlib.import_module(module)
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
