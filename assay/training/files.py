"""Files that are either there whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary file, then put it at ``path`` in one step."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        write(temporary)
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Put ``text`` at ``path`` in one step."""
    write_file(path, lambda p: p.write_text(text, encoding="utf-8"))


def write_folder(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary folder, list its files with their sizes, then put it at ``path`` in one step."""
    temporary = path.with_name(f".{path.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        write(temporary)
        files = sorted(p for p in temporary.rglob("*") if p.is_file())
        sizes = {str(p.relative_to(temporary)): p.stat().st_size for p in files}
        (temporary / "manifest.json").write_text(json.dumps(sizes, indent=1), encoding="utf-8")
        for file in [*files, temporary / "manifest.json"]:
            with open(file, "rb+") as handle:
                os.fsync(handle.fileno())
        sync_folder(temporary)
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def missing_files(folder: Path) -> list[str]:
    """Return the files that the folder's manifest lists and that are gone or of another size."""
    try:
        sizes = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ["manifest.json"]
    return [name for name, size in sizes.items() if not (folder / name).is_file() or (folder / name).stat().st_size != size]
