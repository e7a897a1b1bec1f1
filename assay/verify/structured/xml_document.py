"""An XML document that is well-formed and has what it should have."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Rule, extract
from assay.verify.isolate.workers import Failure
from assay.verify.structured.data import WORKERS
from assay.verify.structured.find import last_document
from assay.verify.text.exact import shorten


@part("verify", "xml")
@dataclass(frozen=True, slots=True)
class Xml:
    """Right iff the document is well-formed, has the root asked for, and every required path holds.

    ``task.reference`` is ``{"root": tag, "required": {path: text or None}}``, both optional; ``required`` may be a list
    of paths. A path is one of ElementTree's (``./a/b[@id='1']``); with a text, an element it finds has that text, but
    for white space. A document type declaration, entities and outside references are refused. ``parts``:
    ``well_formed``, ``root``, and each path; the score is the share of root and paths that are right.

    Args:
        rules: markers that narrow where to look. In what they leave the last fenced block counts, else from the first
            ``<`` to the last ``>``.
        seconds: longest processor time of one response.
        max_chars: a longer response is wrong.

    Raises:
        UsageError: when made, if defusedxml is not installed.
    """

    rules: tuple[Rule, ...] = ("answer_tag",)
    seconds: float = 5.0
    max_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if importlib.util.find_spec("defusedxml") is None:
            raise UsageError("verifier 'xml' needs defusedxml: pip install assay[structured]")
        if self.seconds <= 0:
            raise UsageError(f"verifier 'xml': seconds {self.seconds} must be above 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = {} if task.reference is None else task.reference
        if not isinstance(spec, Mapping) or spec.keys() - {"root", "required"}:
            return Verdict.abstain(f"task {task.id}: reference is not {{'root': tag, 'required': {{path: text}}}}")
        root, required = spec.get("root"), spec.get("required") or {}
        if isinstance(required, list | tuple):
            required = dict.fromkeys(required)
        if not (
            (root is None or isinstance(root, str))
            and isinstance(required, Mapping)
            and all(isinstance(k, str) and (v is None or isinstance(v, str)) for k, v in required.items())
        ):
            return Verdict.abstain(f"task {task.id}: root and required paths must be text")
        if len(response) > self.max_chars:
            return Verdict.wrong(f"longer than {self.max_chars} characters")
        text = last_document(extract(response, self.rules, "whole") or "", ("xml", "html", "svg"))
        start, end = text.find("<"), text.rfind(">")
        if not 0 <= start < end:
            return Verdict(0.0, False, {"well_formed": 0.0}, "no XML in the response")
        reply = WORKERS.call("check_xml", text[start : end + 1], dict(required), root, seconds=self.seconds)
        if isinstance(reply, Failure):
            return Verdict.abstain(f"checking XML: {reply.reason}")
        if "fault" in reply:
            return Verdict.abstain(f"task {task.id}: {reply['fault']}")
        if "wrong" in reply:
            return Verdict(0.0, False, {"well_formed": 0.0}, reply["wrong"])
        parts: dict[str, float | None] = {"well_formed": 1.0}
        if root is not None:
            parts["root"] = float(reply["root"])
        parts |= {path: float(right) for path, right in reply["paths"].items()}
        asked = list(parts.items())[1:]
        score = sum(v or 0.0 for _, v in asked) / len(asked) if asked else 1.0
        missing = [name for name, value in asked if not value]
        return Verdict(score, not missing, parts, f"{shorten(missing[0])} is missing or differs" if missing else "")
