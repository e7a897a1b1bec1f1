"""The facts of one step as a record of the same bytes whenever they are the same, and the reward that follows."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from assay.verify.diagnostics.check import Checker, Diagnostic, installed
from assay.verify.diagnostics.places import Candidate


@dataclass(frozen=True, slots=True)
class Weights:
    """Of errors that went, of steps that were safe, and of places that were not sure; all >= 0."""

    errors: float = 0.5
    safe: float = 0.4
    unsure: float = 0.1


def process_reward(before: int, after: int, safe: bool, sure: float, weights: Weights = Weights()) -> float:
    """Return r = errors (D_before - D_after) + safe S - unsure (1 - a)."""
    return weights.errors * (before - after) + weights.safe * float(safe) - weights.unsure * (1 - sure)


def canonical(value: Any) -> str:
    """Return JSON of the same value as the same text: keys sorted, no blanks, no numbers that are none."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def bundle(
    request: Mapping[str, Any],
    resolution: Sequence[Candidate],
    facts: Iterable[Diagnostic],
    edits: Sequence[Mapping[str, Any]],
    reward: Mapping[str, Any],
    checker: Checker,
) -> dict[str, Any]:
    """Return the record of a step; ``bundleId`` is the SHA-256 of all else in it. It tells no time."""
    environment = {
        "checker": checker,
        "version": installed(checker),
        "encoding": "utf-32",
        "python": platform.python_version(),
    }
    environment["config"] = digest(environment)
    body: dict[str, Any] = {
        "request": dict(request),
        "resolution": [{**asdict(one.place), "score": one.score, "evidence": dict(one.evidence)} for one in resolution],
        "facts": [asdict(one) for one in sorted(facts)],
        "edits": sorted((dict(one) for one in edits), key=canonical),
        "processReward": dict(reward),
        "environment": environment,
    }
    return {**body, "bundleId": digest(body)}


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def replayed(trace: Sequence[Mapping[str, Any]], weights: Weights = Weights()) -> list[float]:
    """Return the rewards of recorded steps, computed again from their facts.

    Raises:
        ValueError: a bundle is not what its id says.
    """
    out = []
    for step in trace:
        body = {key: value for key, value in step.items() if key != "bundleId"}
        if digest(body) != step["bundleId"]:
            raise ValueError(f"bundle {step['bundleId'][:12]} is not what its id says")
        parts = step["processReward"]
        out.append(process_reward(parts["before"], parts["after"], parts["safe"], parts["sure"], weights))
    return out
