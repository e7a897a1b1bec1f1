"""A folder on disk and the plain data that it stands for."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from assay.errors import UsageError

Entries = dict[str, tuple[bytes, int]]
"""Content and mode by relative path, as a :class:`~assay.sandbox.workspace.Workspace` has them."""


def put(entries: Mapping[str, tuple[bytes, int]], folder: Path) -> None:
    """Make a folder hold these files and folders and nothing else; links are left out."""
    for place in folder.iterdir():
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
    for name, (data, mode) in sorted(entries.items()):
        place = folder / name
        if stat.S_ISDIR(mode):
            place.mkdir(parents=True, exist_ok=True)
        elif stat.S_ISREG(mode):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IWUSR)


def taken(folder: Path, most: int) -> Entries:
    """Return what a folder holds; links, and what else is no file or folder, are not there.

    Args:
        most: bytes of all files together.

    Raises:
        UsageError: it holds more, or a name that is no text.
    """
    found: Entries = {}
    size = 0
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            place = Path(at, name)
            kind = place.lstat().st_mode
            path = place.relative_to(folder).as_posix()
            if not path.isprintable():
                raise UsageError(f"a file in the folder is called {path!r}, which is no text")
            if stat.S_ISDIR(kind):
                found[path] = b"", kind
            elif stat.S_ISREG(kind):
                size += place.lstat().st_size
                if size > most:
                    raise UsageError(f"the folder holds more than {most >> 20} MiB")
                found[path] = place.read_bytes(), kind
    return found
