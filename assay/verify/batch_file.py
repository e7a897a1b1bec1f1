"""Verdicts on every row of a JSONL file: streamed, in order, and continued where it stopped."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from assay.errors import RunError, UsageError, nearest
from assay.types import Task, Verdict
from assay.verify.isolate.pool import CLOSED, VerifierPool

FLUSH = 0.5
"""Seconds between writes to the output file."""
ADDED = ("score", "passed", "feedback", "parts")
ROLES = ("reference", "response", "id", "prompt", "kind", "meta")


class Row(NamedTuple):
    """A row of the file: its line number, its bytes without the closing brace, and what it holds."""

    number: int
    text: bytes
    fields: dict[str, Any]


@dataclass(slots=True)
class Tally:
    """How many rows were judged how; ``abstention`` tells the first."""

    right: int = 0
    wrong: int = 0
    abstained: int = 0
    abstention: str = ""

    @property
    def rows(self) -> int:
        return self.right + self.wrong + self.abstained

    def count(self, number: int, passed: bool | None, feedback: str) -> None:
        if passed is None:
            self.abstained += 1
            self.abstention = self.abstention or f"line {number}: {feedback}"
        elif passed:
            self.right += 1
        else:
            self.wrong += 1


class BatchFile:
    """Judges the rows of ``path`` and appends them, with a verdict each, to ``out``.

    A row is a JSON object on a line. It is copied as it is, and gets ``score``, ``passed`` (``null`` with a ``null``
    score where the verifier abstains), ``feedback`` and ``parts``. Memory does not grow with the file. What is in
    ``out`` are whole lines at any time but the moment of a write; a torn last one is repaired when resuming.

    Args:
        path: the JSONL file.
        out: the file to write.
        fields: name of the field, with dots into nested ones, for ``reference``, ``response``, ``id``, ``prompt``,
            ``kind`` or ``meta``, where it is another than these names. Rows need a ``reference`` (unless its name is
            empty), a ``response`` that is text, and any other field that is named here.
        prefix: put before the names of the added fields.
        verifier: what says which verifier judges, as JSON holds it. It is kept with ``fields`` and ``prefix`` in a file
            beside ``out`` (:attr:`record`), so that what goes on does so with the same ones.

    Raises:
        UsageError: no such file, an unknown field to map, or ``out`` is the file itself.
    """

    def __init__(
        self,
        path: Path,
        out: Path,
        fields: Mapping[str, str] | None = None,
        prefix: str = "",
        verifier: Mapping[str, Any] | None = None,
    ):
        for role in fields or {}:
            if role not in ROLES:
                raise UsageError(f"there is no field {role!r} to map{nearest(role, ROLES)}")
        if not path.is_file():
            raise UsageError(f"no file {path}")
        if out.is_dir() or not out.parent.is_dir():
            raise UsageError(f"{out} is a folder; name a file" if out.is_dir() else f"no folder {out.parent} for {out}")
        if out.exists() and out.samefile(path):
            raise UsageError(f"{out} is the file to judge; write to another")
        self.path, self.out = path, out
        self.record = out.with_name(f"{out.name}.verifier.json")
        self.made = json.loads(json.dumps({**(verifier or {}), "fields": dict(fields or {}), "prefix": prefix}))
        named = {role: name for role, name in (fields or {}).items() if name}
        self.needed = {*named, "response", *({"reference"} if (fields or {}).get("reference") != "" else set())}
        self.fields = {role: named.get(role, role) for role in ROLES}
        self.added = {name: prefix + name for name in ADDED}
        self._stopping = threading.Event()
        self._pool: VerifierPool | None = None

    def scan(self, tick: Callable[[int], None] = lambda done: None) -> Counter[str]:
        """Read the whole file once and return how many rows there are of each kind of task.

        Raises:
            UsageError: for the first row that is no JSON object, lacks a field, or has one of those to be added.
        """
        kinds: Counter[str] = Counter()
        for done, row in enumerate(self.rows(), 1):
            kinds[self.task(row)[0].kind] += 1
            tick(done)
        if not kinds:
            raise UsageError(f"{self.path} has no rows")
        return kinds

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the file; lines of white space are none."""
        try:
            with self.path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    text = line.strip()
                    text = text.removeprefix(b"\xef\xbb\xbf") if number == 1 else text
                    if text:
                        yield Row(number, text[:-1].rstrip(), self._parsed(number, text))
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror or error}") from None

    def _parsed(self, number: int, text: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(text.decode())
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{self.path} line {number} is not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise UsageError(f"{self.path} line {number} is a {type(fields).__name__}, not an object with fields")
        for name in self.added.values():
            if name in fields:
                raise UsageError(
                    f"{self.path} line {number} already has a field {name!r}; choose another with --prefix"
                )
        return fields

    def task(self, row: Row) -> tuple[Task, str]:
        """Return the task and the response of a row."""
        found = {role: self._value(row, role) for role in ROLES}
        response, prompt, meta = found["response"], found["prompt"], found["meta"]
        if not isinstance(response, str):
            raise self._complaint(row, "response", f"is a {type(response).__name__}, not text")
        if isinstance(found["reference"], float) and not math.isfinite(found["reference"]):
            raise self._complaint(row, "reference", f"is {found['reference']}, which nothing equals")
        if not isinstance(found["kind"] or "", str):
            raise self._complaint(row, "kind", f"is a {type(found['kind']).__name__}, not text")
        if isinstance(prompt, list) and all(isinstance(m, dict) and isinstance(m.get("content"), str) for m in prompt):
            prompt = tuple(prompt)
        elif not isinstance(prompt or "", str):
            raise self._complaint(row, "prompt", "is neither text nor a list of messages")
        return Task(
            id=f"{self.path.name}:{row.number}" if found["id"] is None else str(found["id"]),
            prompt=prompt or "",
            reference=found["reference"],
            kind=found["kind"] or "exact",
            meta=meta if isinstance(meta, dict) else {},
        ), response

    def _value(self, row: Row, role: str) -> Any:
        name = self.fields[role]
        value: Any = row.fields
        for key in [name] if name in row.fields else name.split("."):
            if not isinstance(value, dict) or key not in value:
                if role in self.needed:
                    hint = nearest(name, row.fields)
                    present = "" if hint.startswith("; known") else f" (it has {', '.join(row.fields)})"
                    raise self._complaint(row, role, f"is missing{present}{hint}; map it with --fields {role}=NAME")
                return None
            value = value[key]
        return value

    def _complaint(self, row: Row, role: str, words: str) -> UsageError:
        return UsageError(f"{self.path} line {row.number}: field {self.fields[role]!r} {words}")

    def finished(self) -> tuple[Tally, int]:
        """Return the verdicts that ``out`` holds already, and the length of their lines in bytes.

        Raises:
            UsageError: they are another verifier's, or nothing says whose; or a line is no verdict on the row of the
                file that it should be on.
        """
        tally, length = Tally(), 0
        if not self.out.exists():
            return tally, length
        rows = self.rows()
        with self.out.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    break
                row = next(rows, None)
                verdict = None if row is None else self._verdict(row, line)
                if row is None or verdict is None:
                    raise UsageError(
                        f"{self.out} line {number} is no verdict on "
                        f"{'a row' if row is None else f'line {row.number}'} of {self.path}; "
                        "one of them was changed: begin again with --overwrite, or write to another file"
                    )
                tally.count(row.number, *verdict)
                length += len(line)
        if length:
            self._check_record()
        return tally, length

    def _check_record(self) -> None:
        """Raise UsageError unless the verdicts in ``out`` were made as those to come are."""
        again = "begin again with --overwrite, or write to another file"
        try:
            there = json.loads(self.record.read_bytes())
        except (OSError, ValueError, RecursionError):
            raise UsageError(f"{self.record}, which says how {self.out} was judged, cannot be read; {again}") from None
        there = there if isinstance(there, dict) else {}
        for name in dict.fromkeys((*self.made, *there)):
            if there.get(name) != self.made.get(name):
                was, now = (json.dumps(which.get(name))[:200] for which in (there, self.made))
                raise UsageError(f"{self.out} was judged with another {name} ({was}, now {now}); {again}")

    def _verdict(self, row: Row, line: bytes) -> tuple[bool | None, str] | None:
        """``passed`` and ``feedback`` of a finished line; ``None`` if it is not one of this row."""
        start = row.text + b", "
        if not line.startswith(start):
            return None
        try:
            added = json.loads(b"{" + line[len(start) :])
            return added[self.added["passed"]], added[self.added["feedback"]]
        except (ValueError, KeyError, TypeError):
            return None

    def run(
        self,
        pool: VerifierPool,
        tally: Tally | None = None,
        length: int = 0,
        tick: Callable[[int], None] = lambda done: None,
    ) -> Tally:
        """Judge the rows after the ``tally`` and ``length`` of :meth:`finished`; return the tally of all of them.

        Raises:
            UsageError: a row cannot be read, though the scan could.
            RunError: the output cannot be written; what was written can be continued.
        """
        tally, self._pool = tally or Tally(), pool
        waiting: deque[Row] = deque()
        first = tally.rows

        def pairs() -> Iterator[tuple[Task, str]]:
            for done, row in enumerate(self.rows()):
                if self._stopping.is_set():
                    return
                if done >= first:
                    waiting.append(row)
                    yield self.task(row)

        try:
            with self.out.open("r+b" if length else "wb") as out:
                if length:
                    out.truncate(length)
                    out.seek(length)
                elif self.out.is_file():  # and no device
                    # Once the old verdicts are gone, so that it never tells of others than are there.
                    self.record.write_text(json.dumps(self.made) + "\n")
                written = time.monotonic()
                for verdict in pool.map(pairs()):
                    row = waiting.popleft()
                    if self._stopping.is_set() and verdict == CLOSED:
                        break
                    out.write(self._line(row, verdict))
                    tally.count(row.number, verdict.passed, verdict.feedback)
                    if time.monotonic() - written > FLUSH:
                        out.flush()
                        written = time.monotonic()
                    tick(tally.rows)
        except OSError as error:
            again = "; make room and go on with --resume" if tally.rows else ""
            raise RunError(f"could not write {self.out}: {error.strerror or error}{again}") from None
        return tally

    def _line(self, row: Row, verdict: Verdict) -> bytes:
        abstains = verdict.passed is None
        values = (None if abstains else verdict.score, verdict.passed, verdict.feedback, dict(verdict.parts))
        added = dict(zip(self.added.values(), values, strict=True))
        # The row is copied, not written anew: numbers and escapes stay what they were.
        return row.text + b", " + json.dumps(added).encode()[1:] + b"\n"

    @property
    def stopped(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Let :meth:`run` end with what is finished; may be called from a signal handler or another thread."""
        self._stopping.set()
        if self._pool is not None:
            # In a thread, because the lock that closing takes may be held where the signal struck.
            threading.Thread(target=self._pool.close, daemon=True).start()
