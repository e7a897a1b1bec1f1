"""What there is to look at under some folders: runs, evaluations, comparisons, records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from assay.errors import UsageError
from assay.records.evaluation_folder import NAME

Kind = Literal["run", "evaluation", "comparison", "record"]

DEPTH = 6
"""Folders below a named one that are looked into."""
RECORDS = {"assay.audit/1": "audit record", "assay.audit.report/1": "audit", "assay.compare/1": "comparison"}
"""What a JSON file's ``schema`` makes it."""
LEAGUE = "league"
LARGEST = 64 << 20
"""Bytes of a JSON file that is still read."""


class Missing(Exception):
    """What was asked for is not there."""


@dataclass(frozen=True, slots=True)
class Place:
    """One thing to look at.

    Attributes:
        id: in links: its path as it is named from the folders given.
        kind: ``run``, ``evaluation`` (a folder or file of samples), ``comparison``, or another ``record`` in JSON; the
            records of a setting of the league, a folder, are one.
        path: of the folder or file.
        what: of a record, which kind.
        parts: of a run, ids of its evaluations.
    """

    id: str
    kind: Kind
    path: Path
    what: str = ""
    parts: tuple[str, ...] = field(default=())


class Places:
    """Finds what is under the roots, anew at every call: runs begin and go on while they are looked at.

    Args:
        roots: folders or files.

    Raises:
        UsageError: one of them is not there, or there is nothing to look at.
    """

    def __init__(self, roots: Sequence[Path]):
        self.roots = [root.absolute() for root in roots]
        for root in roots:
            if not root.exists():
                raise UsageError(f"{root} is not there; name folders of runs or evaluations, assay view runs/")
        if not self.all():
            raise UsageError(
                f"nothing to look at under {', '.join(map(str, roots))}: no run, evaluation, comparison, audit or lab "
                "record; assay train writes a run"
            )

    def all(self) -> dict[str, Place]:
        """Return everything by its id, sorted."""
        found: dict[str, Place] = {}
        for root in self.roots:
            for place in _under(root, root.name or "/", DEPTH):
                found.setdefault(_unique(place, found), place)
        return {id: Place(id, p.kind, p.path, p.what, p.parts) for id, p in sorted(found.items())}

    def get(self, id: str, kind: Kind | None = None) -> Place:
        """Return what has an id.

        Raises:
            Missing: nothing has, or it is of another kind.
        """
        found = self.all().get(id)
        if found is None or (kind is not None and found.kind != kind):
            raise Missing(f"there is no {kind or 'source'} {id!r} here (any more)")
        return found


def _unique(place: Place, found: dict[str, Place]) -> str:
    """Tell two things of one name apart by where they are."""
    other = found.get(place.id)
    return place.id if other is None or other.path == place.path else str(place.path)


def _under(path: Path, name: str, depth: int) -> Iterator[Place]:
    if path.is_file():
        if place := _file(path, name):
            yield place
        return
    try:
        inside = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError:  # a folder that may not be entered is none of ours
        return
    names = {entry.name for entry in inside}
    if NAME in names and "samples" in names:
        yield Place(name, "evaluation", path)
        return
    if "config.toml" in names or "metrics.jsonl" in names:
        evals = sorted((path / "evals").glob("*.parquet"))
        inner = [Place(f"{name}/{file.stem}", "evaluation", file) for file in evals]
        yield Place(name, "run", path, parts=tuple(p.id for p in inner))
        yield from inner
        return
    if any(is_league(path / name) for name in names):
        yield Place(name, "record", path, LEAGUE)
    for entry in inside:
        if entry.name.startswith(".") or is_league(path / entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _under(path / entry.name, f"{name}/{entry.name}", depth - 1)
        elif place := _file(path / entry.name, f"{name}/{entry.name}"):
            yield place


def _file(path: Path, name: str) -> Place | None:
    if path.suffix == ".parquet":
        from assay.records.sample import is_samples

        return Place(name.removesuffix(".parquet"), "evaluation", path) if is_samples(path) else None
    if path.suffix != ".json":
        return None
    what = _what(path)
    if not what:
        return None
    if what == LEAGUE:
        return Place(name.removesuffix(".json"), "record", path.parent, what)
    return Place(name.removesuffix(".json"), "comparison" if what == "comparison" else "record", path, what)


def _what(path: Path) -> str:
    """Say what kind of record a JSON file is, by its beginning; empty for one that is none of ours."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.read(400)
    except OSError:
        return ""
    for schema, what in RECORDS.items():
        if f'"{schema}"' in head:
            return what
    if '"paper"' in head and '"claim"' in head:
        return "lab"
    return LEAGUE if all(f'"{key}"' in head for key in ("setting", "label", "method")) else ""


def is_league(path: Path) -> bool:
    """Whether a file is a method's record in the league."""
    return path.suffix == ".json" and path.is_file() and _what(path) == LEAGUE


def read_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Raises:
        Missing: it cannot be read, or is larger than :data:`LARGEST`.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise Missing(f"{path.name} is larger than {LARGEST >> 20} MiB")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Missing(f"{path.name} cannot be read: {error}") from None
