"""The verdict on a claim: supported, refuted or neither, and the evidence that shows it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import extract
from assay.verify.answer.place import Marked

LABELS = ("SUPPORT", "REFUTE", "NOT ENOUGH INFO")
UNKNOWN = LABELS[2]
RULES = ("answer_tag",)
_LABEL = re.compile(r"\blabel\s*:\s*(SUPPORT|REFUTE|NOT\s{1,9}ENOUGH\s{1,9}INFO)(?!\w)", re.IGNORECASE)
_CITED = re.compile(r"\[\[([^\[\]\n]{1,200})\]\]")


@dataclass(frozen=True, slots=True)
class ClaimScore:
    """How an answer on a claim compares with what is known of it.

    Attributes:
        label: 1 where the label is right, else 0.
        validity: 1 where all of the evidence is cited, 1/2 where at least half of it is (rounded up), else 0.
        iou: documents both cited and evidence, over those that are either; 0 where there is no evidence.
        exact: 1 where just the evidence is cited, else 0.
        unknown: the right label is "not enough info".
    """

    label: float
    validity: float
    iou: float
    exact: float
    unknown: bool

    @property
    def right(self) -> bool:
        """The label is right, and all of the evidence cited where there is any to cite."""
        return self.label == 1 and (self.unknown or self.validity == 1)


def read_answer(text: str) -> tuple[str | None, frozenset[str]]:
    """Return the label and the documents cited in the last ``<answer>`` of a text; no label where it says two.

    An answer reads ``Label: SUPPORT, Evidence: [[id]] [[id]]``.
    """
    answer = extract(text, RULES, "none") or ""
    said = {" ".join(label.upper().split()) for label in _LABEL.findall(answer)}
    return (said.pop() if len(said) == 1 else None), _cited(answer)


def cited_in(text: str) -> frozenset[str]:
    """Return the documents cited, as ``[[id]]``, in the last ``<answer>`` of a text."""
    return _cited(extract(text, RULES, "none") or "")


def _cited(answer: str) -> frozenset[str]:
    return frozenset(map(plain_id, _CITED.findall(answer)))


def plain_id(id: str) -> str:
    """Return an identifier as it is compared: composed (NFC), without blanks and double brackets around it."""
    return unicodedata.normalize("NFC", id).strip().removeprefix("[[").removesuffix("]]").strip()


def score_claim(label: str | None, cited: frozenset[str], reference: Mapping[str, Any]) -> ClaimScore:
    """Compare a label and the documents cited with ``{"label": ..., "evidence": [ids]}``."""
    evidence = {plain_id(str(id)) for id in reference.get("evidence") or ()}
    hits = len(cited & evidence)
    validity = 1.0 if hits == len(evidence) else 0.5 if hits >= (len(evidence) + 1) // 2 else 0.0
    return ClaimScore(
        label=float(label == reference["label"]),
        validity=validity,
        iou=hits / len(cited | evidence) if evidence else 0.0,
        exact=float(cited == evidence),
        unknown=reference["label"] == UNKNOWN,
    )


@part("verify", "claim")
@dataclass(frozen=True, slots=True)
class Claim(Marked):
    """Right iff the label is right and, unless that is NOT ENOUGH INFO, all of the evidence is cited.

    ``task.reference`` is ``{"label": "SUPPORT" | "REFUTE" | "NOT ENOUGH INFO", "evidence": [ids]}``. The last
    ``<answer>`` of a response is read: ``Label: REFUTE, Evidence: [[id]] [[id]]``; one that says two labels says none.
    The score is 0 without the right label, and else the validity (1 without evidence to cite). ``parts``: ``label``,
    ``validity``, ``iou`` and ``exact``, see :class:`ClaimScore`; for NOT ENOUGH INFO all but the first are ``None``.

    Source: Veri-R1, its "verification accuracy"; and as in FEVER (arXiv 1803.05355) evidence has to be complete.
    """

    @property
    def rules(self) -> tuple[str, ...]:
        return RULES

    @property
    def fallback(self) -> Any:
        return "none"

    def __call__(self, task: Task, response: str) -> Verdict:
        known = task.reference
        if not isinstance(known, Mapping) or known.get("label") not in LABELS:
            return Verdict.abstain(f"task {task.id}: reference is not {{'label': ..., 'evidence': [ids]}}", "tests")
        if known["label"] != UNKNOWN and not known.get("evidence"):
            return Verdict.abstain(f"task {task.id}: a claim that is supported or refuted needs evidence", "tests")
        label, cited = read_answer(response)
        found = score_claim(label, cited, known)
        told = [None] * 3 if found.unknown else [found.validity, found.iou, found.exact]
        parts = dict(zip(("label", "validity", "iou", "exact"), [found.label, *told], strict=True))
        feedback = ""
        if not found.right:
            why = f"says {label}, which is {'right' if found.label else 'wrong'}" if label else "says no label, or two"
            feedback = why if found.label == 0 else f"{why}; not all of the evidence is cited"
        return Verdict(found.label * (1.0 if found.unknown else found.validity), found.right, parts, feedback)
