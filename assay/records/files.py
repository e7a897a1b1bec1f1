"""Files that are either there whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    """Let ``write`` fill a temporary folder, list its files with their sizes and hashes, then put it at ``path`` in one
    step."""
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
    """List the files of a folder with their sizes and hashes, then put it at ``path`` in one step."""
    files = sorted(p for p in temporary.rglob("*") if p.is_file())
    listed = {
        str(p.relative_to(temporary)): [p.stat().st_size, digest]
        for p, digest in zip(files, _digests(files), strict=True)
    }
    (temporary / "manifest.json").write_text(json.dumps(listed, indent=1), encoding="utf-8")
    for inside in [*temporary.rglob("*"), temporary]:
        sync(inside)
    if path.exists():
        shutil.rmtree(path)
    os.replace(temporary, path)
    sync(path.parent)


def missing_files(folder: Path) -> list[str]:
    """Return the files that the folder's manifest lists and that are gone or of another size; quick."""
    listed = _listed(folder)
    if listed is None:
        return ["manifest.json"]
    return [name for name, (size, _) in listed.items() if not _has_size(folder / name, size)]


def damage(folder: Path) -> str | None:
    """Say what is wrong with a folder: ``lacks a file`` or ``holds a damaged file``; ``None`` if it is as written.

    Every file is read and hashed. A manifest from before there were hashes gives sizes alone.
    """
    if missing := missing_files(folder):
        return f"lacks {missing[0]}"
    hashed = {name: digest for name, (_, digest) in (_listed(folder) or {}).items() if digest is not None}
    try:
        found = _digests([folder / name for name in hashed])
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    changed = (name for (name, digest), now in zip(hashed.items(), found, strict=True) if digest != now)
    return next((f"holds a damaged {name}" for name in changed), None)


def _listed(folder: Path) -> dict[str, tuple[int, str | None]] | None:
    """Size in bytes and hash of each file of a folder's manifest; ``None`` if that cannot be read."""
    try:
        listed = dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    out: dict[str, tuple[int, str | None]] = {}
    for name, entry in listed.items():
        match entry:
            case int(size) | [int(size)]:
                out[name] = size, None
            case [int(size), str(digest)]:
                out[name] = size, digest
            case _:
                return None
    return out


def _has_size(file: Path, size: int) -> bool:
    try:
        return file.is_file() and file.stat().st_size == size
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False


def _digests(files: Sequence[Path]) -> list[str]:
    """128-bit BLAKE2b of each file's content; several are read at once."""

    def digest(path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()

    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(digest, files))


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
            return _reason(cause.errno, cause.strerror or str(cause), cause.filename)
    if said := re.search(r"\(os error (\d+)\)", str(error)):
        return _reason(int(said[1]), os.strerror(int(said[1])), None)
    return "the disk is full" if "No space left on device" in str(error) else None


def _reason(number: int | None, words: str, name: Any) -> str:
    if number == errno.ENOSPC:
        return "the disk is full"
    if number == errno.EDQUOT:
        return "the quota on the disk is used up"
    if number == errno.EFBIG:
        return "a file would be larger than is allowed (see ulimit -f)"
    return words + (f": {name}" if name else "")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")
