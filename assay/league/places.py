"""Where the league's records and pages lie."""

from __future__ import annotations

from pathlib import Path


def places(folder: Path, given: bool) -> tuple[Path, Path]:
    """Return the folder of the records, one in it for each setting, and that of the pages.

    In a checkout of assay they are its ``league`` and ``docs``; elsewhere, or if ``given``, both are ``folder``.
    """
    root = Path(__file__).parents[2]
    if not given and (root / "docs" / "architecture.md").is_file():
        return root / "league", root / "docs"
    return folder, folder
