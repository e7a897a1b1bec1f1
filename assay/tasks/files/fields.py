"""Which fields of a row make a task."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from assay.errors import UsageError, nearest
from assay.records.messages import message
from assay.tasks.files.images import pictures, shown
from assay.types import Message, Prompt, Task

PROMPTS = ("prompt", "question", "problem", "instruction", "input", "query", "messages", "text")
REFERENCES = ("answer", "reference", "reference_answer", "ground_truth", "expected_answer", "expected", "target",
              "label", "output", "final_answer", "final", "gold", "response")  # fmt: skip
SOLUTIONS = ("solution", "worked", "rationale", "reasoning", "explanation", "completion")
"""Names that the field's data sets use, most usual first."""

MARK = "####"
_NUMBER = re.compile(r"[-+]?[$]?\d[\d,]*(?:\.\d+)?%?(?:/\d+)?")

ROLES = ("system", "user", "assistant", "tool", "developer")


@dataclass(frozen=True, slots=True)
class Fields:
    """Maps rows to tasks.

    A mapping is the name of a field, with dots into nested ones (``reward_model.ground_truth``), or, if it has braces,
    a template such as ``"{question}\\nAnswer:"`` (a literal brace is doubled; of a list of texts each is a line). A
    prompt field may hold chat messages.

    Attributes:
        prompt, reference, solution, id: mappings; ``reference`` keeps the field's own type unless it is a template, and
            of several fields it is the table of them; ``None`` leaves the attribute out (``id`` then numbers the rows).
        kind: the verifier.
        system: system message; makes the prompt a chat.
        chat: whether plain prompts become one user message.
        reference_after: keep only what follows the last such marker in the reference (``####`` in GSM8K).
        meta: fields kept in ``task.meta``.
        source: name of the source, the prefix of numbered ids and ``meta["source"]``.
        hints: field with a list of texts, weakest first; ``None`` for none.
        images: field with a picture or a list of them, see :func:`assay.tasks.files.images.shown`; they stand where the
            prompt has :data:`assay.media.MARK`, before it where it has none.
        folder: of paths to pictures.
    """

    prompt: str
    reference: str | tuple[str, ...] | None
    solution: str | None
    id: str | None
    kind: str
    system: str | None
    chat: bool
    reference_after: str | None
    meta: tuple[str, ...]
    source: str
    hints: str | None = None
    images: str | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        for role in ("prompt", "reference", "solution", "id"):
            mapping = getattr(self, role)
            if isinstance(mapping, str):
                self._names(role, mapping)
        if self.reference_after is not None and not isinstance(self.reference, str):
            raise UsageError(f"{self.source}: reference_after needs a reference field")

    def columns(self) -> set[str]:
        """Return the top-level fields that the mappings read."""
        mappings = {r: getattr(self, r) for r in ("prompt", "reference", "solution", "id")}
        names = [
            n for r, m in mappings.items() if m is not None for n in (m if isinstance(m, tuple) else self._names(r, m))
        ]
        others = [name for name in (self.hints, self.images) if name is not None]
        return {n.partition(".")[0] for n in [*names, *self.meta, *others]}

    def tasks(self, rows: Iterable[tuple[str, Any]]) -> list[Task]:
        """Return the tasks of ``rows``, pairs of (place to name in an error, row).

        Raises:
            UsageError: no rows, a row that is not a table, lacks a field or has it empty, or repeats an id.
        """
        tasks: list[Task] = []
        places: dict[str, str] = {}
        for index, (where, row) in enumerate(rows):
            if not isinstance(row, Mapping):
                raise UsageError(f"{where} is a {type(row).__name__}, not a table of fields")
            task = self._task(row, where, index)
            if task.id in places:
                raise UsageError(f"{where} has the id {task.id!r} of {places[task.id]}; ids must be unique")
            places[task.id] = where
            tasks.append(task)
        if not tasks:
            raise UsageError(f"{self.source} has no rows")
        return tasks

    def _task(self, row: Mapping[str, Any], where: str, index: int) -> Task:
        reference = self._reference(row, where)
        if self.reference_after is not None:
            _, found, rest = str(reference).rpartition(self.reference_after)
            if not found:
                raise UsageError(f"{where}: field {self.reference!r} has no {self.reference_after!r} to read after")
            reference = rest.strip()
        solution = None if self.solution is None else self._read("solution", self.solution, row, where)
        if isinstance(solution, list) and self.solution == self.reference and self.kind in ("auto", "exact"):
            solution = solution[0]  # of several answers any is right
        return Task(
            id=f"{self.source}/{index}" if self.id is None else str(self._read("id", self.id, row, where)),
            prompt=self._seen(self._prompt(row, where), row, where),
            reference=reference,
            kind=self.kind,
            solution=None if solution is None else str(solution),
            hints=() if self.hints is None else self._texts(self.hints, row, where),
            meta={"source": self.source, **{name: self._value("meta", name, row, where) for name in self.meta}},
        )

    def _reference(self, row: Mapping[str, Any], where: str) -> Any:
        if isinstance(self.reference, tuple):  # some of them may well be empty
            return {name: self._value("meta", name, row, where) for name in self.reference}
        return None if self.reference is None else self._read("reference", self.reference, row, where)

    def _texts(self, name: str, row: Mapping[str, Any], where: str) -> tuple[str, ...]:
        value = self._value("meta", name, row, where)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise UsageError(f"{where}: field {name!r} holds {str(value)[:60]!r}, not a list of texts as hints are")
        return tuple(value)

    def _prompt(self, row: Mapping[str, Any], where: str) -> Prompt:
        value = self._read("prompt", self.prompt, row, where)
        system = [] if self.system is None else [Message(role="system", content=self.system)]
        if isinstance(value, list):
            return (*system, *(self._message(m, where) for m in value))
        if not isinstance(value, str | int | float):
            raise UsageError(f"{where}: field {self.prompt!r} is a {type(value).__name__}, not text or chat messages")
        if self.chat or system:
            return (*system, Message(role="user", content=str(value)))
        return str(value)

    def _seen(self, prompt: Prompt, row: Mapping[str, Any], where: str) -> Prompt:
        """Return the prompt with its pictures."""
        if self.images is None:
            return prompt
        found = self._value("meta", self.images, row, where)
        return shown(prompt, pictures(found, self.folder, f"{where}: field {self.images!r}"), where)

    def _message(self, said: Any, where: str) -> Message:
        try:
            found = message(said)
        except ValueError as wrong:
            raise UsageError(f"{where}: field {self.prompt!r} holds {wrong}") from None
        if found["role"] not in ROLES:
            raise UsageError(
                f"{where}: field {self.prompt!r} has the role {found['role']!r}; known: {', '.join(ROLES)}"
            )
        return found

    def _read(self, role: str, mapping: str, row: Mapping[str, Any], where: str) -> Any:
        if not _is_template(mapping):
            return self._value(role, mapping, row, where)
        return "".join(
            text + ("" if name is None else _text(self._value(role, name, row, where)))
            for text, name, _, _ in Formatter().parse(mapping)
        )

    def _value(self, role: str, name: str, row: Mapping[str, Any], where: str) -> Any:
        value: Any = row
        for key in [name] if name in row else name.split("."):
            if not isinstance(value, Mapping) or key not in value:
                present = ", ".join(map(str, row)) or "none"
                hint = nearest(name, map(str, row))
                hint = "" if hint.startswith("; known") else hint
                raise UsageError(f"{where} has no field {name!r} for the {role} (fields present: {present}){hint}")
            value = value[key]
        value = value.tolist() if hasattr(value, "tolist") else value  # of numpy, as pandas has them
        if role != "meta" and (value is None or value in ("", []) or (isinstance(value, float) and math.isnan(value))):
            raise UsageError(f"{where}: field {name!r} for the {role} is empty")
        return value

    def _names(self, role: str, mapping: str) -> list[str]:
        if not _is_template(mapping):
            return [mapping]
        try:
            parsed = list(Formatter().parse(mapping))
        except ValueError as error:
            raise UsageError(f"{self.source}: the {role} template {mapping!r} is malformed: {error}") from None
        names = [name for _, name, _, _ in parsed if name is not None]
        if not all(names) or any(spec or conversion for _, _, spec, conversion in parsed):
            raise UsageError(
                f"{self.source}: the {role} template {mapping!r} may hold only field names, as {{question}}"
            )
        if not names:
            raise UsageError(f"{self.source}: the {role} template {mapping!r} names no field")
        return names


def _text(value: Any) -> str:
    lines = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return "\n".join(value) if lines else str(value)


def _is_template(mapping: str) -> bool:
    return "{" in mapping or "}" in mapping


def chosen(given: str | None, known: Sequence[str], row: Mapping[str, Any]) -> str | None:
    """Return ``given``, or where that is ``auto`` the first of the ``known`` names that is a field of ``row``."""
    if given != "auto":
        return given
    lower = {str(name).lower(): str(name) for name in row}
    return next((lower[name] for name in known if name in lower), None)


def instructed(row: Any) -> Any:
    """Return a row with its ``input``, where it has one, below its ``instruction``, as Alpaca's rows are asked."""
    if not isinstance(row, Mapping) or not isinstance(row.get("instruction"), str):
        return row
    about = row.get("input")
    return {**row, "instruction": f"{row['instruction']}\n\n{about}"} if isinstance(about, str) and about else row


def prompt_of(given: str, row: Mapping[str, Any], where: str) -> str:
    """Return the mapping of the prompt.

    Raises:
        UsageError: none of the fields has a name that prompts have.
    """
    found = chosen(given, PROMPTS, row)
    if found is None:
        raise UsageError(
            f"{where}: no field has a name that prompts have ({', '.join(PROMPTS)}); say which it is, "
            f"tasks.source.prompt=FIELD (fields present: {', '.join(map(str, row))})"
        )
    return found


def kind_of(references: Sequence[Any]) -> str:
    """Return the verifier for references: ``none`` without any or where they are tables, which a reward or a verifier
    that is named reads; ``math`` for numbers and formulas; else ``exact``."""
    if not references or any(reference is None or isinstance(reference, Mapping) for reference in references):
        return "none"
    texts = [str(reference).strip() for reference in references]
    return "math" if all(_NUMBER.fullmatch(text) or "\\" in text for text in texts) else "exact"
