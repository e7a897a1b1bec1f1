"""Rows of a JSONL, JSON, CSV or Parquet file, each with the place to name in an error."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.errors import UsageError

Rows = Iterator[tuple[str, Any]]


def read_rows(path: Path) -> Rows:
    """Yield ``(place, row)`` of the file, whose format its suffix says.

    Raises:
        UsageError: no such file, unknown suffix, or something that cannot be read, with its line.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it, or use tasks 'huggingface' for a saved data set")
    if not path.is_file():
        raise UsageError(f"no file {path}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"{path}: unknown format {path.suffix!r}; known: {', '.join(READERS)}")
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}{_place(path)} is not UTF-8 text: {error.reason}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _place(path: Path) -> str:
    """Where the first line is that is no UTF-8; the readers decode whole blocks, and know the place in those."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f" line {number}, byte {error.start + 1} (0x{line[error.start]:02x}),"
    return ""


def _jsonl(path: Path) -> Rows:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise UsageError(f"{path} line {number} is not JSON: {error}") from None
                yield f"{path} line {number}", row


def _json(path: Path) -> Rows:
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    if not isinstance(rows, list):
        raise UsageError(f"{path} holds a {type(rows).__name__}, not a list of rows; for one row per line use .jsonl")
    for number, row in enumerate(rows, 1):
        yield f"{path} row {number}", row


def _csv(path: Path, delimiter: str = ",") -> Rows:
    csv.field_size_limit(2**31 - 1)  # a document is longer than the 128 KiB that fields may have otherwise
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
        try:
            for row in reader:
                where = f"{path} line {reader.line_num}"
                if None in row or None in row.values():
                    columns = reader.fieldnames or []
                    values = sum(v is not None for k, v in row.items() if k is not None) + len(row.get(None) or ())
                    raise UsageError(f"{where} has {values} values for {len(columns)} columns")
                yield where, row
        except csv.Error as error:
            raise UsageError(f"{path} line {reader.line_num} is not CSV: {error}") from None


def _tsv(path: Path) -> Rows:
    return _csv(path, "\t")


def _parquet(path: Path) -> Rows:
    import pyarrow
    import pyarrow.parquet

    try:
        number = 0
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path} row {number}", row
    except pyarrow.ArrowException as error:
        raise UsageError(f"{path} is not Parquet: {str(error).splitlines()[0]}") from None


READERS: dict[str, Callable[[Path], Rows]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
}
