"""A source's samples as one table in memory, filled from its Parquet files while it is looked at."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TEXT, WHOLE, REAL, TRUTH = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"
COLUMNS = {
    "file": TEXT,
    "row": WHOLE,
    "step": WHOLE,
    "task_id": TEXT,
    "passed": TRUTH,
    "score": REAL,
    "reward": REAL,
    "advantage": REAL,
    "length": WHOLE,
    "stop": TEXT,
    "feedback": TEXT,
    "prompt": TEXT,
    "response": TEXT,
    "group": WHOLE,
    "sample": WHOLE,
    "version": WHOLE,
    "answer": TEXT,
    "confidence": REAL,
    "logprob": REAL,
    "entropy": REAL,
    "sound": TRUTH,
    "trajectory": TEXT,
}
"""Columns that every table has, NULL where its files lack them; terms of the reward, ``reward/NAME``, come beside."""
BATCH = 512
"""Files that are read at a time, after the first few; what is read so far is shown meanwhile. With 64 a million
samples take four times as long."""


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


class Table:
    """Samples of a run, or of an evaluation.

    The newest files are read first. A file that is new, changed or gone is noticed at :meth:`refresh`.

    Args:
        connection: the database it is in.
        name: of its table there.
        path: the run's folder of rollouts, the evaluation's folder of samples, or a file.
    """

    def __init__(self, connection: DuckDBPyConnection, name: str, path: Path):
        self.connection, self.name, self.path = connection, quoted(name), path
        self.notes: dict[str, str] = {}
        self.columns = dict(COLUMNS)
        self.read: dict[str, tuple[int, int]] = {}
        self.waiting = 0
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._worker: threading.Thread | None = None
        fields = ", ".join(f"{quoted(column)} {kind}" for column, kind in COLUMNS.items())
        connection.cursor().execute(f"CREATE TABLE {self.name} ({fields})")

    @property
    def loading(self) -> bool:
        """Whether there are files that are not read yet."""
        return self.waiting > 0

    def refresh(self) -> None:
        """See which files are there; read what is new in a thread of its own."""
        with self._lock:
            if self._worker is not None and self._worker.is_alive():
                return
            there = self._files()
            gone = [name for name, mark in self.read.items() if there.get(name) != mark]
            new = sorted((n for n in there if self.read.get(n) != there[n]), key=natural, reverse=True)
            if gone:
                self._forget(gone)
            self.waiting = len(new)
            if new:
                self._some.clear()
                self._worker = threading.Thread(target=self._load, args=(new, there), daemon=True)
                self._worker.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until everything is read, no longer than ``seconds``."""
        worker = self._worker
        if worker is not None:
            worker.join(seconds)

    def wait_some(self, seconds: float) -> None:
        """Wait until something is read that can be shown, no longer than ``seconds``."""
        if self._worker is not None:
            self._some.wait(seconds)

    def _files(self) -> dict[str, tuple[int, int]]:
        if self.path.is_file():
            stat = self.path.stat()
            return {self.path.name: (stat.st_mtime_ns, stat.st_size)}
        try:
            entries = [e for e in os.scandir(self.path) if e.name.endswith(".parquet") and not e.name.startswith(".")]
            return {e.name: (e.stat().st_mtime_ns, e.stat().st_size) for e in entries}
        except OSError:  # nothing stored yet
            return {}

    def full(self, name: str) -> Path:
        return self.path if self.path.is_file() else self.path / name

    def _forget(self, names: Sequence[str]) -> None:
        cursor = self.connection.cursor()
        cursor.execute(f"DELETE FROM {self.name} WHERE file IN (SELECT unnest(?))", [list(names)])
        for name in names:
            del self.read[name]
            self.notes.pop(name, None)

    def _load(self, names: list[str], marks: dict[str, tuple[int, int]]) -> None:
        cursor = self.connection.cursor()
        # The first few at once, so that there is something to see.
        cuts = [0, min(4, len(names)), *range(4 + BATCH, len(names), BATCH), len(names)]
        for start, end in pairwise(cuts):
            part = names[start:end]
            if part and not self._insert(cursor, part):
                for name in part:
                    self._insert(cursor, [name])
            for name in part:
                self.read[name] = marks[name]
            self.waiting -= len(part)
            self._some.set()
        self.waiting = 0

    def _insert(self, cursor: DuckDBPyConnection, names: list[str]) -> bool:
        """Read files; say of a single one that cannot be read why."""
        import duckdb

        files = [_literal(self.full(name)) for name in names]
        source = f"read_parquet([{', '.join(files)}], union_by_name=true, filename=true, file_row_number=true)"
        try:
            found = [row[0] for row in cursor.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
            for term in (c for c in found if c.startswith("reward/") and c not in self.columns):
                cursor.execute(f"ALTER TABLE {self.name} ADD COLUMN {quoted(term)} {REAL}")
                self.columns[term] = REAL
            wanted = {c: kind for c, kind in self.columns.items() if c in found and c not in ("file", "row")}
            values = [f"TRY_CAST({quoted(c)} AS {kind})" for c, kind in wanted.items()]
            into = ", ".join(["file", '"row"', *map(quoted, wanted)])
            picked = ", ".join(["parse_filename(filename)", "file_row_number", *values])
            cursor.execute(f"INSERT INTO {self.name} ({into}) SELECT {picked} FROM {source}")
        except duckdb.Error as error:
            if len(names) == 1:
                self.notes[names[0]] = f"{names[0]} cannot be read: {str(error).splitlines()[0]}"
            return False
        return True

    def wide(self, file: str, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return whole rows of a file, with the columns that are not in the table, such as turns and tokens."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if file not in self.read:
            return []
        try:
            table = pq.ParquetFile(self.full(file)).read()
        except (OSError, pa.ArrowException):  # rewritten or removed by the run meanwhile
            return []
        there = [row for row in rows if 0 <= row < len(table)]
        return table.take(there).to_pylist() if there else []


def _literal(path: Path) -> str:
    """Return a path as a string of SQL; what would be a pattern of paths stands for itself."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''") + "'"


def natural(name: str) -> list[Any]:
    """Sort key in which step-9 comes before step-10."""
    return [(0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in re.split(r"(\d+)", name)]
