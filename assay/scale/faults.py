"""What died during a run and what was done about it: a line for people, and one in the run's ``faults.jsonl``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

FILE = "faults.jsonl"


@dataclass
class Faults:
    """Tells of each fault of a run once.

    Args:
        folder: the run's; nothing is written before it holds a configuration, since a folder with something in it is
            refused as the place of a new run.
        tell: prints a line.
    """

    folder: Path
    tell: Callable[[str], None]
    _lock: Lock = field(default_factory=Lock, repr=False)

    def died(self, what: str, why: str, then: str) -> None:
        """Tell and note that ``what`` died, for what reason, and what happens next."""
        self.tell(f"{what} died ({why}); {then}")
        self.note(what, why, then)

    def note(self, what: str, why: str, then: str) -> None:
        """Note the same without a word, where an error is about to say it."""
        with self._lock:
            if (self.folder / "config.toml").is_file():
                row = {"at": time.time(), "what": what, "why": why, "then": then}
                with open(self.folder / FILE, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def faults(folder: Path) -> list[dict[str, Any]]:
    """Every fault noted in a run's folder, oldest first; a line torn by a crash is left out."""
    path, rows = folder / FILE, []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return rows
