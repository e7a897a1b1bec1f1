"""What a logger is, and what it is told of a run."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from assay.errors import UsageError


@dataclass(frozen=True, slots=True)
class About:
    """The run that is logged.

    Attributes:
        id: of this run alone, the same when it is resumed: what was logged before is gone on with.
        folder: where it is kept; its last name is the run's.
        config: its whole configuration, sections within sections.
        project: what runs that belong together share.
    """

    id: str
    folder: Path
    config: Mapping[str, Any]
    project: str = "assay"

    @property
    def name(self) -> str:
        return self.folder.name

    def flat(self) -> dict[str, Any]:
        """Return the configuration with keys in full, ``train.lr``."""
        found: dict[str, Any] = {}

        def walk(values: Mapping[str, Any], prefix: str) -> None:
            for key, value in values.items():
                if isinstance(value, Mapping):
                    walk(value, f"{prefix}{key}.")
                else:
                    found[prefix + key] = value

        walk(self.config, "")
        return found


class Logger(Protocol):
    """Takes what a run tells. Calls come in order, from one thread that is not the run's; what they raise is counted
    and ends no run, see :mod:`assay.loggers.background`.

    ``rows`` is how many responses of a step go into its table; 0 for no tables.
    """

    rows: int

    def start(self, about: About) -> None:
        """Begin, or go on with what ``about.id`` began."""

    def metrics(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        """Take the numbers after step ``step`` (from 1) of ``stage``: ``warmup``, ``rl``, or ``eval`` (after that many
        RL steps, from 0). A step that a resumed run takes anew comes again."""

    def table(self, name: str, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take rows of plain values with the same keys each."""

    def close(self) -> None:
        """Send what is left."""


def library(name: str, logger: str) -> Any:
    """Import the library of a logger.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"logger {logger!r} needs {name}: pip install 'assay[{logger}]' ({error})") from None
