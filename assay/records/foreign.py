"""Samples that something else made: rows with prompts and completions, judged already or to be judged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import UsageError, nearest
from assay.records.foreign_values import number_of, prompt_of, texts_of, truth_of, walk
from assay.records.rows import read_rows
from assay.types import Task

SPLITS = ("source", "category", "subject", "operation", "dataset", "level", "difficulty")
"""Fields of a task's meta by which the accuracy is split unless others are named."""

ROLES: dict[str, tuple[str, ...]] = {
    "task": ("task_id", "id", "doc_id", "problem_id", "question_id", "prompt_id", "uid"),
    "prompt": ("prompt", "question", "problem", "query", "input", "messages"),
    "response": (
        *("response", "completion", "output", "generation", "text"),
        *("responses", "completions", "outputs", "generations", "samples", "resps"),
    ),
    "reference": ("reference", "answer", "target", "ground_truth", "gold", "label"),
    "kind": ("kind",),
    "passed": ("passed", "correct", "is_correct"),
    "score": ("score", "reward", "exact_match", "acc"),
    "confidence": ("confidence",),
    "sound": ("sound",),
    "length": ("length", "num_tokens", "completion_tokens", "tokens"),
    "stop": ("stop", "finish_reason", "stop_reason"),
}
"""What a row may tell, and the fields it is looked for in unless one is named, in this order."""

EACH = ("passed", "score", "confidence", "sound", "length", "stop")
"""Roles that a list of completions has a list of, one for each."""


@dataclass(frozen=True, slots=True)
class Given:
    """One completion and what its row says of it."""

    text: str
    where: str
    passed: bool | None = None
    score: float | None = None
    confidence: float | None = None
    sound: bool | None = None
    length: int = 0
    stop: str = "eos"


@dataclass(frozen=True, slots=True)
class ForeignTask:
    """A task and its completions."""

    task: Task
    given: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads a JSONL, JSON, CSV, TSV or Parquet file of completions, one a row or a list of them in each.

    A row belongs to the task that its task field names, or to that of its prompt where it has none. A completion is
    text, or chat messages of which the last is read.

    lm-evaluation-harness writes the same responses once for each of its filters, which judge them by another part of
    their text. One filter is read: the one that ``fields["filter"]`` names, or any where a verifier judges.

    Args:
        fields: name of the field, with dots into nested ones and numbers into lists, for a role of :data:`ROLES` that
            is called otherwise; an empty name leaves the role out. For ``filter`` see above.
        reference: a field of the rows, or a file of tasks with references, which rows are joined to by task, or by
            prompt where they name none; its own fields are found as those of rows are.
        judged: whether rows have to say what is right; else a verifier will.
        threshold: a response is right from this score on; only a score of 1 is, unless given.
        by: fields kept in the tasks' meta beside :data:`SPLITS` and those of a ``meta`` table.
        kind: the tasks' kind where rows have none.

    Raises:
        UsageError: no such role.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None
    judged: bool = True
    threshold: float | None = None
    by: tuple[str, ...] = ()
    kind: str = "exact"

    def __post_init__(self) -> None:
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise UsageError(f"--threshold {self.threshold} is no score; give a finite number")
        for role in self.fields:
            if role not in (*ROLES, "filter"):
                raise UsageError(f"there is no role {role!r} to map a field to{nearest(role, ROLES)}")

    def read(self, path: Path) -> list[ForeignTask]:
        """Return the tasks of the file, in order of appearance.

        Raises:
            UsageError: no rows, or one that lacks what is needed or holds something else, with its line; rows of
                several filters that are to be taken at their word, and none is named.
        """
        filters: dict[str, str] = {}
        references = self._references()
        tasks: dict[str, Task] = {}
        given: dict[str, list[Given]] = {}
        for where, row in read_rows(path):
            if not isinstance(row, Mapping):
                raise UsageError(f"{where} is a {type(row).__name__}, not an object with fields")
            key = self._key(row, where)
            if self._repeats(row, key, where, filters):
                continue
            found = self._given(row, where)
            if key not in tasks:
                tasks[key] = self._task(row, key, where, references)
            given.setdefault(key, []).extend(found)
        if not tasks and filters:
            there = ", ".join(dict.fromkeys(filters.values()))
            raise UsageError(f"{path} has no rows of the filter {self.fields['filter']!r}; filters there are: {there}")
        if not tasks:
            raise UsageError(f"{path} has no rows")
        return [ForeignTask(task, tuple(given[key])) for key, task in tasks.items()]

    def _repeats(self, row: Mapping[str, Any], key: str, where: str, filters: dict[str, str]) -> bool:
        """Whether a row has the responses to a task for another filter than is read; notes the first filter of each."""
        name = row.get("filter") if "resps" in row else None
        if not isinstance(name, str):
            return False
        first = filters.setdefault(key, name)
        chosen = self.fields.get("filter")
        if not chosen and name != first and self.judged:
            raise UsageError(
                f"{where} has the responses to {key[:80]!r} again, as the filter {name!r} judges them, after {first!r};"
                f" say which is to be believed: --fields filter={first}"
            )
        return name != (chosen or first)

    def _key(self, row: Mapping[str, Any], where: str) -> str:
        task = self.value(row, "task", where)
        if task is None:
            task = self.value(row, "prompt", where)
        if task is None:
            if isinstance(self.value(row, "response", where), list):
                return where
            raise UsageError(
                f"{where} names no task and has no prompt (fields present: {', '.join(row)}), so nobody can tell which "
                "rows answer the same; map one with --fields task=NAME"
            )
        return task if isinstance(task, str) else json.dumps(task, sort_keys=True)

    def _task(self, row: Mapping[str, Any], key: str, where: str, references: Mapping[str, Mapping[str, Any]]) -> Task:
        prompt = self.value(row, "prompt", where)
        source: Mapping[str, Any] = row
        if references:
            said = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True)
            if (match := references.get(key, references.get(said))) is None:
                raise UsageError(f"{where}: {self.reference} has no task {key[:80]!r}")
            source = {**row, **match}
        reference = self._known(source, where) if self.judged else self._reference(source, where)
        kind = self.value(source, "kind", where)
        meta = source.get("meta")
        kept = {k: source[k] for k in (*SPLITS, *self.by) if k in source}
        return Task(
            id=key,
            prompt=prompt_of(prompt, where),
            reference=reference,
            kind=kind if isinstance(kind, str) else self.kind,
            meta={**(meta if isinstance(meta, Mapping) else {}), **kept},
        )

    def _reference(self, row: Mapping[str, Any], where: str) -> Any:
        name = self.fields.get("reference", self.reference if self.reference and not self._file() else None)
        if name == "":
            return None
        found = self.value(row, "reference", where) if name is None else walk(row, name)
        if found is None:
            looked = repr(name) if name else ", ".join(ROLES["reference"])
            raise UsageError(
                f"{where} has no reference to judge by: {looked} (fields present: {', '.join(row)}); name one "
                "with --reference NAME, a file of them with --reference FILE, or none with --fields reference="
            )
        return found

    def _known(self, row: Mapping[str, Any], where: str) -> Any:
        """The reference of a row that says what is right, if it has one; a ``label`` may be what says so."""
        if "reference" in self.fields:
            return self.value(row, "reference", where)
        return next((row[k] for k in ROLES["reference"] if k != "label" and row.get(k) is not None), None)

    def _file(self) -> bool:
        return self.reference is not None and Path(self.reference).is_file()

    def _references(self) -> dict[str, Mapping[str, Any]]:
        """Rows of the file of references, by task and by prompt."""
        if not self._file():
            if self.reference is not None and Path(self.reference).suffix in (".jsonl", ".json", ".csv", ".parquet"):
                raise UsageError(f"--reference: no file {self.reference}")
            return {}
        out: dict[str, Mapping[str, Any]] = {}
        plain = Reader()
        for where, row in read_rows(Path(str(self.reference))):
            if not isinstance(row, Mapping):
                raise UsageError(f"{where} is a {type(row).__name__}, not an object with fields")
            for role in ("task", "prompt"):
                key = plain.value(row, role, where)
                if key is not None:
                    out[key if isinstance(key, str) else json.dumps(key, sort_keys=True)] = row
        if not out:
            raise UsageError(f"--reference: {self.reference} has no rows with a task or a prompt")
        return out

    def _given(self, row: Mapping[str, Any], where: str) -> list[Given]:
        texts, many = texts_of(self.value(row, "response", where), where, row)
        told: dict[str, list[Any]] = {}
        for role in EACH:
            # What a verifier is to say is not asked of the row.
            value = self.value(row, role, where) if self.judged or role not in ("passed", "score") else None
            if isinstance(value, list):
                if len(value) != len(texts):
                    raise UsageError(f"{where} has {len(texts)} completions and {len(value)} values for {role!r}")
                told[role] = value
            elif value is not None and many and len(texts) > 1 and role != "stop":
                raise UsageError(
                    f"{where} has {len(texts)} completions and one value for {role!r}; give one for each, or have them "
                    "judged with --verifier KIND --reference FIELD"
                )
            else:
                told[role] = [value] * len(texts)
        named = self.fields.get("passed")
        verdict = any(name in row or name.split(".")[0] in row for name in ([named] if named else ROLES["passed"]))
        return [self._one(t, where, {r: told[r][i] for r in EACH}, verdict) for i, t in enumerate(texts)]

    def _one(self, text: str, where: str, told: Mapping[str, Any], verdict: bool) -> Given:
        """Read one completion; where the row has a field for the verdict, no verdict there is an abstention."""
        score = number_of(told["score"], "score", where)
        passed = truth_of(told["passed"], "passed", where)
        if self.judged and not verdict and score is not None:
            if self.threshold is None and not 0 <= score <= 1:
                raise UsageError(
                    f"{where} has the score {score:g}, not in [0, 1]; say from where on one is right: --threshold"
                )
            passed = score >= (1.0 if self.threshold is None else self.threshold)
        return Given(
            text,
            where,
            passed,
            score if score is not None and 0 <= score <= 1 else None,
            number_of(told["confidence"], "confidence", where),
            truth_of(told["sound"], "sound", where),
            int(number_of(told["length"], "length", where) or 0),
            "length" if told["stop"] in ("length", "max_tokens") else str(told["stop"] or "eos"),
        )

    def value(self, row: Mapping[str, Any], role: str, where: str) -> Any:
        """Return what a row has for a role, ``None`` for nothing; complain where a field that was named is missing."""
        if role in self.fields:
            name = self.fields[role]
            found = walk(row, name) if name else None
            if name and found is None and name.split(".")[0] not in row:
                hint = nearest(name, map(str, row))
                raise UsageError(f"{where} has no field {name!r} for the {role}{hint}")
            return found
        return next((row[name] for name in ROLES[role] if row.get(name) is not None), None)

    def says_right(self, path: Path) -> bool:
        """Say whether the first row tells what is right."""
        found = next(iter(read_rows(path)), None)
        if found is None:
            raise UsageError(f"{path} has no rows")
        where, row = found
        return isinstance(row, Mapping) and any(
            self.value(row, role, where) is not None or any(name in row for name in ROLES[role])
            for role in ("passed", "score")
        )
