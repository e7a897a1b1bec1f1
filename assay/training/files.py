"""Files that are either there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def sync(path: Path) -> None:
    """Make a file's content, or a folder's entries, survive a crash of the machine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary file, then put it at ``path`` in one step."""
    temporary = _partial(path)
    try:
        write(temporary)
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Put ``text`` at ``path`` in one step."""
    write_file(path, lambda p: p.write_text(text, encoding="utf-8"))


def write_folder(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary folder, list its files with their sizes, then put it at ``path`` in one step."""
    temporary = start_folder(path)
    try:
        write(temporary)
        finish_folder(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def start_folder(path: Path) -> Path:
    """Return an empty temporary folder, to be filled and put at ``path`` with :func:`finish_folder`."""
    temporary = _partial(path)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    return temporary


def finish_folder(temporary: Path, path: Path) -> None:
    """List the files of a folder with their sizes, then put it at ``path`` in one step."""
    files = sorted(p for p in temporary.rglob("*") if p.is_file())
    sizes = {str(p.relative_to(temporary)): p.stat().st_size for p in files}
    (temporary / "manifest.json").write_text(json.dumps(sizes, indent=1), encoding="utf-8")
    for inside in [*temporary.rglob("*"), temporary]:
        sync(inside)
    if path.exists():
        shutil.rmtree(path)
    os.replace(temporary, path)
    sync(path.parent)


def missing_files(folder: Path) -> list[str]:
    """Return the files that the folder's manifest lists and that are gone or of another size."""
    try:
        sizes = dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return ["manifest.json"]

    def whole(file: Path, size: int) -> bool:
        return file.is_file() and file.stat().st_size == size

    return [name for name, size in sizes.items() if not whole(folder / name, size)]


def unfinished(folder: Path) -> Iterator[Path]:
    """Temporary files and folders in ``folder`` and its subfolders, left by a process that was killed while writing."""
    for pattern in (".*.partial", ".*.tmp"):
        yield from folder.glob(pattern)
        yield from folder.glob(f"*/{pattern}")


def remove(path: Path) -> None:
    """Remove a file or a folder; nothing happens where there is none."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def disk_failure(error: BaseException) -> str | None:
    """Say in a few words how the disk made a write fail; ``None`` for an error with another reason."""
    # torch and safetensors raise errors of their own, with the system's as context or as text.
    for cause in (error, error.__cause__, error.__context__):
        if isinstance(cause, OSError):
            if cause.errno in (errno.ENOSPC, errno.EDQUOT):
                return "the disk is full"
            return (cause.strerror or str(cause)) + (f": {cause.filename}" if cause.filename else "")
    return "the disk is full" if "No space left on device" in str(error) else None


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")
