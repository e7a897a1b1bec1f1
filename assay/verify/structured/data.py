"""Data in a known notation: it follows a schema, it equals a value, or both."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Rule, extract
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.puzzles.puzzle import overspent
from assay.verify.structured.find import NoValue, last_document, last_json, load_json
from assay.verify.structured.tree import Tolerance, compare_trees
from assay.verify.text.exact import shorten

WORKERS = Workers("assay.verify.structured.checks", memory=2 << 30)
PLAIN: tuple[Any, ...] = (None, {}, [], 0, "")
"""Values that any schema has to be quickly checked on."""
REGULAR = 100_000
"""Characters of a response for which ``seconds`` are enough."""
SHOWN = 40
"""Leaves of a reference that get a part of their own."""

Reads = Literal["spec", "value", "schema"]


@part("verify", "json_schema")
@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """Right iff the response's JSON validates against a schema and, where there is one, equals a value.

    ``task.reference`` is ``{"schema": {...}, "value": ...}`` with at least one of both; with ``reads`` it is the value
    or the schema itself. A reference that is text is read as JSON. The schema is of the draft it names, else 2020-12;
    a ``$ref`` to what it does not hold is never fetched, and makes the verifier abstain. A response that takes longer
    than ``seconds`` to read is wrong. So is one that takes longer to check against the schema, if the schema is quickly
    checked on the reference's value (on each of :data:`PLAIN` where there is none); if not, the schema is to blame,
    and the verifier abstains.

    ``parts``: ``parsed``, ``schema``, ``value`` (share of equal leaves), and each leaf of a small value by its path.
    The score is that share, 1 where there is no value, and 0 where the schema is violated.

    Args:
        rules: markers that narrow where to look, see :func:`~assay.verify.answer.extract.extract`; in what they leave,
            the last fenced block counts, else the whole, else the last object or array.
        reads: what ``task.reference`` is.
        ordered: whether the order of arrays matters.
        tolerance: relative difference of equal numbers.
        absolute: absolute difference of equal numbers.
        ignore_case: compare text without regard to case.
        formats: check ``format`` keywords, too.
        seconds: longest processor time of one response; of one longer than :data:`REGULAR` in proportion more.
        max_chars: a longer response is wrong.

    Raises:
        UsageError: when made, if jsonschema is not installed.
    """

    rules: tuple[Rule, ...] = ("answer_tag",)
    reads: Reads = "spec"
    ordered: bool = True
    tolerance: float = 1e-9
    absolute: float = 0.0
    ignore_case: bool = False
    formats: bool = True
    seconds: float = 5.0
    max_chars: int = 1_000_000

    kind: ClassVar[str] = "json_schema"
    numeric_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if importlib.util.find_spec("jsonschema") is None:
            raise UsageError(f"verifier {self.kind!r} needs jsonschema: pip install assay[structured]")
        if not (self.tolerance >= 0 and self.absolute >= 0 and self.seconds > 0):
            raise UsageError(f"verifier {self.kind!r}: tolerances must be at least 0 and seconds above 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            spec = self._spec(task.reference)
        except (NoValue, TypeError, ValueError, RecursionError) as error:
            return Verdict.abstain(f"task {task.id}: {error}")
        if len(response) > self.max_chars:
            return _unread(f"longer than {self.max_chars} characters")
        try:
            value = self._read(extract(response, self.rules, "whole") or "")
        except NoValue as error:
            return _unread(str(error))
        if isinstance(value, Failure):
            return Verdict.abstain(f"reading {self.kind}: {value.reason}")
        parts: dict[str, float | None] = {"parsed": 1.0}
        complaint = ""
        if "schema" in spec:
            found = self._violations(spec, value, max(1.0, len(response) / REGULAR))
            if "fault" in found:
                return Verdict.abstain(f"task {task.id}: {found['fault']}")
            parts["schema"] = float(not found["violations"])
            complaint = "; ".join(f"{path}: {shorten(message, 80)}" for path, message in found["violations"])
        score = parts.get("schema", 1.0) or 0.0
        if "value" in spec:
            closeness = Tolerance(self.tolerance, self.absolute, self.ignore_case, self.numeric_text)
            likeness = compare_trees(value, spec["value"], closeness, self.ordered)
            parts["value"] = likeness.share
            if len(likeness.leaves) <= SHOWN:
                parts |= {path: float(right) for path, right in likeness.leaves.items()}
            score *= likeness.share
            complaint = complaint or shorten(likeness.first_difference, 100)
            return Verdict(score, not complaint, parts, complaint)
        return Verdict(score, not complaint, parts, complaint)

    def _violations(self, spec: Mapping[str, Any], value: Any, size: float) -> dict[str, Any]:
        """Return the ``violations`` of the schema, or whose ``fault`` it is that they cannot be told."""
        found = self._check(spec["schema"], value, size)
        if not found.get("own"):
            return found
        # Whose fault was it? What the schema does with another value tells.
        for other in [spec["value"]] if "value" in spec else PLAIN:
            if "fault" in self._check(spec["schema"], other, 1.0):
                return found
        return {"violations": [["$", f"too much for the schema: {found['fault']}"]]}

    def _check(self, schema: str, value: Any, size: float) -> dict[str, Any]:
        found = WORKERS.call("violations", schema, json.dumps(value), self.formats, seconds=self.seconds * size)
        if isinstance(found, Failure):
            return {"fault": f"checking the schema: {found.reason}", "own": found.own}
        made: dict[str, Any] = found
        return made

    def _spec(self, reference: Any) -> dict[str, Any]:
        """Return ``schema`` as JSON text and ``value``, whichever there are; ValueError if the reference is neither."""
        if reference is None:
            raise ValueError("no reference to compare with")
        if self.reads == "value":
            return {"value": self._wanted(reference)}
        loaded = load_json(reference) if isinstance(reference, str) else reference
        if self.reads == "schema":
            return {"schema": json.dumps(loaded)}
        if not isinstance(loaded, Mapping) or not loaded or loaded.keys() - {"schema", "value"}:
            raise ValueError("reference is not {'schema': {...}, 'value': ...}")
        spec = dict(loaded)
        if "schema" in spec:
            spec["schema"] = json.dumps(spec["schema"])
        if "value" in spec:
            json.dumps(spec["value"])
        return spec

    def _wanted(self, reference: Any) -> Any:
        if isinstance(reference, str):
            value = self._read(reference)
            if isinstance(value, Failure):
                raise ValueError(f"the reference cannot be read: {value.reason}")
            return value
        json.dumps(reference)
        return reference

    def _read(self, text: str) -> Any:
        """Return the value in ``text``, or a Failure of ours; raise NoValue where it has none."""
        return last_json(text)

    def _ask(self, function: str, *arguments: Any) -> Any:
        reply = WORKERS.call(function, *arguments, seconds=self.seconds)
        if isinstance(reply, Failure):
            if overspent(reply):
                # Nothing but the document decides how long it takes to read.
                raise NoValue(reply.reason)
            return reply
        if "wrong" in reply:
            raise NoValue(reply["wrong"])
        return reply["value"]


@part("verify", "json")
@dataclass(frozen=True, slots=True, kw_only=True)
class Json(JsonSchema):
    """Right iff the response's JSON equals the reference, whatever the order of keys; see :class:`JsonSchema`.

    ``task.reference`` is the value, or JSON text of it.
    """

    reads: Reads = "value"
    kind: ClassVar[str] = "json"


@part("verify", "yaml")
@dataclass(frozen=True, slots=True, kw_only=True)
class Yaml(JsonSchema):
    """The same for a YAML document, see :class:`JsonSchema`: its safe subset, dates as text, aliases expanded.

    Read from the last fenced block in YAML, else from all that ``rules`` leave. More nodes than
    :data:`~assay.verify.structured.checks.MAX_NODES` after aliases are expanded are wrong.
    """

    max_chars: int = 200_000
    kind: ClassVar[str] = "yaml"

    def __post_init__(self) -> None:
        JsonSchema.__post_init__(self)
        if importlib.util.find_spec("yaml") is None:
            raise UsageError("verifier 'yaml' needs PyYAML: pip install assay[structured]")

    def _read(self, text: str) -> Any:
        return self._ask("read_yaml", last_document(text, ("yaml", "yml")))


@part("verify", "toml")
@dataclass(frozen=True, slots=True, kw_only=True)
class Toml(JsonSchema):
    """The same for a TOML document, see :class:`JsonSchema`; from the last fenced block in TOML, else the whole."""

    # tomllib's time and memory are quadratic in the parts of a dotted key.
    max_chars: int = 30_000
    kind: ClassVar[str] = "toml"

    def _read(self, text: str) -> Any:
        return self._ask("read_toml", last_document(text, ("toml",)))


@part("verify", "csv")
@dataclass(frozen=True, slots=True, kw_only=True)
class Csv(JsonSchema):
    """The same for a table with a header, see :class:`JsonSchema`: an array of one object for each row.

    Cells are text; one that is a number equals that number of the reference. From the last fenced block in CSV, else
    the whole of what ``rules`` leave.

    Args:
        delimiter: the character between cells.
    """

    delimiter: str = ","
    kind: ClassVar[str] = "csv"
    numeric_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        JsonSchema.__post_init__(self)
        if len(self.delimiter) != 1:
            raise UsageError(f"verifier 'csv': delimiter {self.delimiter!r} must be one character")

    def _read(self, text: str) -> Any:
        return self._ask("read_csv", last_document(text, ("csv", "tsv")), self.delimiter)


def _unread(why: str) -> Verdict:
    return Verdict(0.0, False, {"parsed": 0.0}, why)
