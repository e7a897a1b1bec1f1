"""The identifiers of the evidence that a response selects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.lists.items import Key, item_key, read_items, reference_items
from assay.verify.lists.sets import overlap
from assay.verify.text.compare import normalise

_ID = re.compile(r"\[\[([^\[\]\n]{1,200})\]\]|<?CHUNK_([0-9]{1,9})>?|\[([^\[\]\n,;]{1,200})\]", re.IGNORECASE)


@part("verify", "evidence")
@dataclass(frozen=True, slots=True)
class Evidence:
    """How well the chunks that a response names in its evidence block are those needed: F_beta (LongRLVR).

    With S the identifiers as listed and Z the set of the reference: P = |set(S) & Z| / |S|, so repetitions hurt,
    R = |set(S) & Z| / |Z|, F = (1 + beta^2) P R / (beta^2 P + R), and 0 without a block or with more than one.
    ``task.reference`` is the list Z, or ``{"evidence": Z}``. Identifiers are written ``<CHUNK_3>``, ``[[3]]``, ``[3]``,
    or as a list. ``parts``: ``format``, ``precision``, ``recall``, ``f``, ``jaccard``, ``exact``, and ``validity``: 1
    if all of Z is there, 0.5 if at least half of it is, else 0 (Veri-R1).

    Args:
        tag: the block's tag, ``<useful_chunks>...</useful_chunks>`` unless given.
        beta: weight of recall, above 0.
        score: which part the score is.
        threshold: passed iff score >= threshold, in (0, 1].
        max_named: a block that names more is wrong.
        max_chars: a longer response is wrong.
    """

    tag: str = "useful_chunks"
    beta: float = 2.0
    score: Literal["f", "jaccard", "precision", "recall", "validity", "exact"] = "f"
    threshold: float = 1.0
    max_named: int = 1000
    max_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if not (0 < self.threshold <= 1 and self.beta > 0 and self.tag):
            raise UsageError("verifier 'evidence': threshold must be in (0, 1], beta above 0, tag not empty")

    def __call__(self, task: Task, response: str) -> Verdict:
        reference = task.reference["evidence"] if _has_evidence(task.reference) else task.reference
        gold = reference_items(reference)
        if not gold:
            return Verdict.abstain(f"task {task.id}: reference is no list of identifiers")
        if len(response) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        opening, closing = f"<{self.tag}>", f"</{self.tag}>"
        start, end = response.find(opening), response.find(closing)
        if response.count(opening) != 1 or response.count(closing) != 1 or start > end:
            return Verdict(0.0, False, {"format": 0.0}, f"not exactly one {opening}...{closing}")
        named = read_identifiers(response[start + len(opening) : end])
        if len(named) > self.max_named:
            return Verdict(0.0, False, {"format": 0.0}, f"names {len(named)} chunks, more than {self.max_named}")
        listed = [_key(name) for name in named]
        wanted = [_key(i) for i in gold]
        found = overlap(listed, wanted, "penalise")
        validity = (
            1.0 if found.recall == 1 else 0.5 if found.common and found.common >= (found.wanted + 1) // 2 else 0.0
        )
        sets = overlap(listed, wanted)
        parts: dict[str, float | None] = {
            "format": 1.0,
            "precision": found.precision,
            "recall": found.recall,
            "f": found.f(self.beta),
            "jaccard": sets.jaccard,
            "validity": validity,
            "exact": float(found.common == found.given == found.wanted),
        }
        score = parts[self.score] or 0.0
        passed = score >= self.threshold
        feedback = f"{found.common} of {found.wanted} chunks, {found.given} named"
        return Verdict(score, passed, parts, "" if passed else feedback)


def _has_evidence(reference: object) -> bool:
    return isinstance(reference, Mapping) and "evidence" in reference


def read_identifiers(text: str) -> list[str]:
    """Return the identifiers in an evidence block, repetitions kept: those marked as such, else the items listed."""
    marked = [next(g for g in match.groups() if g is not None) for match in _ID.finditer(text)]
    # "[0, 5]" and "[5]" are lists; "[[a]] [[b]]" are marks.
    return marked or read_items(text)


def _key(text: str) -> Key:
    plain = normalise(text)
    return item_key(re.sub(r"^<?chunk_([0-9]{1,9})>?$", r"\1", plain))
