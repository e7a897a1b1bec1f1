"""What a comparison of strategies has found so far: each part of the tasks is stored whole, and one stopped goes on.

::

    settings.json   what is compared, and every setting that the outcomes depend on
    parts/part-00000.json ...   outcomes of some tasks each, under every strategy and budget
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from assay.errors import RunError, UsageError
from assay.evaluate.strategies.comparison import Outcome
from assay.records.evaluation_folder import EvaluationFolder, check_free, flat

NAME = "settings.json"
FORMAT = "assay/strategies-folder/1"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StrategyFolder:
    """Outcomes on disk. One process at a time works on them.

    Attributes:
        path: the folder.
    """

    path: Path

    @classmethod
    def create(cls, path: Path, settings: Mapping[str, Any]) -> StrategyFolder:
        """Begin a comparison, or go on with the one of the same settings that is there.

        Args:
            path: a new or empty folder, or one of a comparison.
            settings: all that the outcomes depend on.

        Raises:
            UsageError: the folder holds another comparison or something else, or cannot be made.
            RunError: its settings cannot be read.
        """
        from assay.records.files import unfinished, write_text

        check(path, settings)
        try:
            (path / "parts").mkdir(parents=True, exist_ok=True)
            for left in unfinished(path):
                left.unlink(missing_ok=True)
            write_text(path / NAME, json.dumps(_whole(settings), indent=1))
        except OSError as error:
            raise UsageError(f"--out {path} cannot be written: {error.strerror or error}") from None
        return cls(path)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder; raise UsageError if another process does."""
        return EvaluationFolder(self.path, {}).locked()

    def part(self, start: int) -> Path:
        """Where the outcomes of the tasks from number ``start`` on are stored."""
        return self.path / "parts" / f"part-{start:05d}.json"

    def load(self, start: int) -> list[list[Outcome]] | None:
        """Return what :meth:`store` stored, ``None`` if nothing.

        Raises:
            RunError: the part is damaged.
        """
        if not self.part(start).is_file():
            return None
        return _read(self.part(start), lambda rows: [[Outcome(**o) for o in row] for row in rows])

    def store(self, start: int, outcomes: Sequence[Sequence[Outcome]]) -> None:
        """Store the outcomes of some tasks, a list for each strategy under each budget.

        Raises:
            RunError: the disk would not take it.
        """
        from assay.records.files import write_text

        try:
            write_text(self.part(start), json.dumps([[asdict(o) for o in row] for row in outcomes]))
        except OSError as error:
            raise RunError(f"could not store outcomes in {self.path}: {error.strerror or error}") from None


def _whole(settings: Mapping[str, Any]) -> dict[str, Any]:
    # Through JSON, as the stored ones have been.
    return {"format": FORMAT, **json.loads(json.dumps(settings, default=str))}


def check(path: Path, settings: Mapping[str, Any]) -> None:
    """Raise as :meth:`StrategyFolder.create` does, and write nothing."""
    if not (path / NAME).is_file():
        check_free(path)
        return
    here, there = _read(path / NAME, flat), flat(_whole(settings))
    changed = [f"{k}: {here.get(k)!r} -> {there.get(k)!r}" for k in {**here, **there} if here.get(k) != there.get(k)]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UsageError(
            f"{path} holds a comparison of strategies with other settings ({changed[0]}{more}); drop the change, or "
            "write to another folder with --out"
        )


def _read(path: Path, make: Callable[[Any], T]) -> T:
    try:
        return make(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged ({error}); remove it, and the same command goes on") from None
