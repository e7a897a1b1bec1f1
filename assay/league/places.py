"""Where the league's records and pages lie, and where its runs ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def places(folder: Path, given: bool) -> tuple[Path, Path]:
    """Return the folder of the records, one in it for each setting, and that of the pages.

    In a checkout of assay they are its ``league`` and ``docs``; elsewhere, or if ``given``, both are ``folder``.
    """
    root = Path(__file__).parents[2]
    if not given and (root / "docs" / "architecture.md").is_file():
        return root / "league", root / "docs"
    return folder, folder


def place(environment: Mapping[str, Any]) -> str:
    """Return where a run ran: commit, cores, and the accelerators that it had."""
    devices = Counter(environment.get("accelerators", ()))
    has = "".join(f", {f'{n} × ' if n > 1 else ''}{name}" for name, n in devices.items())
    return f"{environment.get('commit') or 'release'}, {environment['processors']} cores{has}"
