"""The measured error rates of a verifier, stored so that a training run can take them into account.

A record is a JSON file::

    {"schema": "assay.audit/1",
     "verifier": {"name": "exact", "options": {}, "version": "<sha256 of its source>", "package": "assay 0.1.0"},
     "data": {"name": "labelled.jsonl", "hash": "<sha256 of its rows>", "rows": 10, "right": 6, "wrong": 4},
     "counts": {"tp": 4, "fn": 2, "fp": 0, "tn": 4, "abstained": 0, "crashed": 0, "timed_out": 0},
     "false_negative_rate": {"count": 2, "total": 6, "value": 0.333, "low": 0.043, "high": 0.777},
     "false_positive_rate": {"count": 0, "total": 4, "value": 0.0, "low": 0.0, "high": 0.602},
     "categories": {"number": {"false_negative_rate": {...}, "false_positive_rate": {...}}},
     "attacks": {"passes": true, "tau": 0.01, "worst": "blank", "rate": {...}} or null,
     "confidence": 0.95, "date": "2026-01-01T00:00:00+00:00", "partial": false}

Both rates are among the rows that were decided, since a sample whose verifier abstains leaves the update; the value
and the ends of a rate without rows are ``null``. Intervals are those of Clopper and Pearson.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.files import write_text
from assay.statistics.rate import CONFIDENCE, Rate, rate_data

SCHEMA = "assay.audit/1"
FOLDER = "audits"


@dataclass(frozen=True, slots=True)
class Record:
    """What an audit measured, see the module for the fields of the file.

    Attributes:
        name, options, version, package: the verifier: what it is called, its options, hash of its code, its package.
        data: ``name``, ``hash``, ``rows``, ``right``, ``wrong`` of the labelled responses.
        counts: rows by label and outcome.
        false_negative_rate: share of right responses rejected, P(rejected | right, decided).
        false_positive_rate: share of wrong responses accepted, P(accepted | wrong, decided).
        categories: ``(false_negative_rate, false_positive_rate)`` of each category.
        attacks: ``passes``, ``tau``, ``worst`` and ``rate``, if attacks were tried.
        date: when, in UTC, ISO 8601.
        partial: the audit was interrupted; the rates are of the rows it reached.
    """

    name: str
    options: Mapping[str, Any]
    version: str
    package: str
    data: Mapping[str, Any]
    counts: Mapping[str, int]
    false_negative_rate: Rate
    false_positive_rate: Rate
    categories: Mapping[str, tuple[Rate, Rate]]
    attacks: Mapping[str, Any] | None
    date: str
    partial: bool = False

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that stand for the verifier, its options, its code and the data set."""
        what = json.dumps([self.name, dict(self.options), self.version, self.data["hash"]], sort_keys=True, default=str)
        return hashlib.sha256(what.encode()).hexdigest()[:12]

    @property
    def file_name(self) -> str:
        """``NAME-HASH.json``."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.name).strip('-.') or 'verifier'}-{self.key}.json"


def save(record: Record, path: Path) -> Path:
    """Write the record to ``path``, or to ``NAME-HASH.json`` in it if it is a folder; return the file."""
    if path.is_dir() or path.suffix != ".json":
        path = path / record.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(_plain(record), indent=1, ensure_ascii=False, default=str) + "\n")
    return path


def load(path: Path) -> Record:
    """Read a record; raise UsageError if the file is missing or is no record, saying what is wrong with it."""
    found = _read(path)
    if found.get("schema") != SCHEMA:
        raise UsageError(f"{path} is no audit record: its schema is not {SCHEMA!r}")
    try:
        verifier = found["verifier"]
        return Record(
            name=str(verifier["name"]),
            options=dict(verifier["options"]),
            version=str(verifier["version"]),
            package=str(verifier["package"]),
            data={**found["data"], "hash": str(found["data"]["hash"])},
            counts={k: int(v) for k, v in found["counts"].items()},
            false_negative_rate=_rate(found["false_negative_rate"]),
            false_positive_rate=_rate(found["false_positive_rate"]),
            categories={
                k: (_rate(v["false_negative_rate"]), _rate(v["false_positive_rate"]))
                for k, v in found["categories"].items()
            },
            attacks=found["attacks"],
            date=str(found["date"]),
            partial=bool(found["partial"]),
        )
    except KeyError as error:
        raise UsageError(f"the audit record {path} lacks {error.args[0]!r}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the audit record {path} is damaged: {error}") from None


def find(
    name: str,
    folder: Path = Path(FOLDER),
    *,
    options: Mapping[str, Any] | None = None,
    version: str | None = None,
    data: str | None = None,
) -> list[Record]:
    """Return the records of a verifier, the latest first.

    Args:
        name: of the verifier.
        folder: where records are, or an audit's folder that holds them in ``audits``.
        options, version, data: keep only records of these options, this code, this data set (its hash).

    Raises:
        UsageError: a JSON file in the folder cannot be read, or has the schema of a record and is none.
    """
    found = []
    for path in sorted({*folder.glob("*.json"), *(folder / FOLDER).glob("*.json")}):
        # An audit's own report, and whatever else is kept beside records, is passed over.
        if _read(path).get("schema") != SCHEMA:
            continue
        record = load(path)
        if (
            record.name == name
            and (options is None or dict(record.options) == dict(options))
            and version in (None, record.version)
            and data in (None, record.data["hash"])
        ):
            found.append(record)
    return sorted(found, key=lambda r: r.date, reverse=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read the audit record {path}: {reason}") from None
    return found if isinstance(found, dict) else {}


def _plain(record: Record) -> dict[str, Any]:
    rates = ("false_negative_rate", "false_positive_rate")
    return {
        "schema": SCHEMA,
        "verifier": {
            "name": record.name,
            "options": dict(record.options),
            "version": record.version,
            "package": record.package,
        },
        "data": dict(record.data),
        "counts": dict(record.counts),
        **{name: rate_data(getattr(record, name)) for name in rates},
        "categories": {
            k: {name: rate_data(r) for name, r in zip(rates, pair, strict=True)}
            for k, pair in record.categories.items()
        },
        "attacks": record.attacks,
        "confidence": CONFIDENCE,
        "date": record.date,
        "partial": record.partial,
    }


def _rate(said: Mapping[str, Any]) -> Rate:
    count, total = int(said["count"]), int(said["total"])
    value, low, high = (math.nan if said[k] is None else float(said[k]) for k in ("value", "low", "high"))
    if not 0 <= count <= total or not all(math.isnan(v) or 0 <= v <= 1 for v in (value, low, high)):
        raise ValueError(f"a rate of {count} of {total} is {value:g}, from {low:g} to {high:g}")
    return Rate(count, total, value, low, high)
