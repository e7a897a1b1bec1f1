"""Rows of a JSONL, JSON, CSV, TSV or Parquet file, or of a folder of these, each with the place to name in an error."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

from assay.errors import UsageError

Rows = Iterator[tuple[str, Any]]

SAVED = {"dataset_info.json", "dataset_dict.json", "state.json"}
"""What the library ``datasets`` writes beside its own files."""


def read_rows(path: Path) -> Rows:
    """Yield ``(place, row)`` of the file, whose format its suffix says, with ``.gz`` behind it if it is compressed; of
    a folder those of its files, in the order of their names. Text is UTF-8, or UTF-16 that says so by its first bytes.

    Raises:
        UsageError: no such file, unknown suffix, or something that cannot be read, with its line.
    """
    for file in _parts(path) if path.is_dir() else [path]:
        yield from _rows(file)


def _parts(folder: Path) -> list[Path]:
    """Return the files that a folder's data set is in: all of one format."""
    found = sorted(f for f in folder.iterdir() if _format(f) in READERS)
    formats = {_format(file) for file in found}
    if SAVED & {f.name for f in folder.iterdir()}:
        raise UsageError(f"{folder} is a data set that the library datasets saved; use tasks 'huggingface' for it")
    if len(formats) != 1:
        held = f"files of several formats, {', '.join(sorted(formats))}" if formats else f"no {', '.join(READERS)}"
        raise UsageError(f"{folder} is a folder with {held}; name a file in it")
    return found


def _format(path: Path) -> str:
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def _rows(path: Path) -> Rows:
    if not path.is_file():
        raise UsageError(f"no file {path}")
    reader = READERS.get(_format(path))
    if reader is None:
        raise UsageError(f"{path}: unknown format {path.suffix!r}; known: {', '.join(READERS)}")
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}{_place(path)} is not UTF-8 text: {error.reason}") from None
    except (OSError, EOFError, zlib.error) as error:  # the last two of a damaged compressed file
        raise UsageError(f"{path} cannot be read: {error}") from None


def _bytes(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _text(path: Path) -> TextIOWrapper:
    """Open a file of text; line ends are the caller's to read."""
    with _bytes(path) as file:
        wide = file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)
    return TextIOWrapper(_bytes(path), encoding="utf-16" if wide else "utf-8-sig", newline="")


def _place(path: Path) -> str:
    """Where the first line is that is no UTF-8; the readers decode whole blocks, and know the place in those."""
    with _bytes(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f" line {number}, byte {error.start + 1} (0x{line[error.start]:02x}),"
    return ""


def _jsonl(path: Path) -> Rows:
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise UsageError(f"{path} line {number} is not JSON: {error}") from None
                yield f"{path} line {number}", row


def _json(path: Path) -> Rows:
    try:
        with _text(path) as file:
            rows = json.loads(file.read())
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
    with _text(path) as lines:
        reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
        try:
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
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
        with _bytes(path) as held, pyarrow.parquet.ParquetFile(held) as file:
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
