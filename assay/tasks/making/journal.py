"""What models have said, kept as it comes, so that nothing is asked twice."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from assay.engines.base import Request
from assay.errors import RunError, UsageError
from assay.media import Picture
from assay.tasks.making.work import Reply


def key_of(model: str, request: Request) -> str:
    """Return what a request is known by: a hash of the model's name and of all that the replies depend on."""
    asked = [model, request.prompt, request.n, asdict(request.sampling), request.seed]
    return hashlib.blake2b(json.dumps(asked, default=_plain).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _plain(value: Any) -> str:
    """A picture, by which alone a request is more than JSON."""
    assert isinstance(value, Picture)
    return value.digest.hex()


class Journal:
    """A JSONL file of replies by the key of their request, added to as they come, open in one process at a time.

    A line is handed to the system before anybody acts on it, so that a process that is killed loses only what was
    being asked. A last line that is not whole is cut off. Replies stay on disk; what is in memory is where they stand.

    Args:
        path: of the file; ``None`` keeps replies in memory alone.

    Raises:
        UsageError: the file is no journal, cannot be opened, or is open in another process.
    """

    def __init__(self, path: Path | None = None):
        self.path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._kept: dict[str, list[Reply]] = {}
        self._file: IO[bytes] | None = None
        if path is not None:
            try:
                self._file = path.open("a+b")
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{path} is being written by another process; wait for it, or name another --out"
                ) from None
            except OSError as error:
                raise UsageError(f"{path} cannot be opened: {error.strerror or error}") from None
            self._end = self._read(self._file)

    def _read(self, file: IO[bytes]) -> int:
        """Find every whole line, cut off what follows, and return where the next one begins."""
        file.seek(0)
        end = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                self._places[json.loads(line)["key"]] = end, len(line)
            except (ValueError, KeyError, TypeError, RecursionError):
                raise UsageError(
                    f"{self.path} line {number} is no reply that was kept; move the file away to ask everything anew"
                ) from None
            end += len(line)
        file.truncate(end)
        return end

    def __len__(self) -> int:
        return len(self._places) + len(self._kept)

    def get(self, key: str) -> list[Reply] | None:
        """Return the replies to a request that was answered."""
        if self._file is None:
            return self._kept.get(key)
        if key not in self._places:
            return None
        start, length = self._places[key]
        return [Reply(*row) for row in json.loads(os.pread(self._file.fileno(), length, start))["replies"]]

    def put(self, key: str, model: str, replies: Sequence[Reply]) -> None:
        """Keep the replies to a request.

        Raises:
            RunError: the disk does not take them.
        """
        if self._file is None:
            self._kept[key] = list(replies)
            return
        row: dict[str, Any] = {"key": key, "model": model, "replies": [[r.text, r.tokens, r.stop] for r in replies]}
        line = json.dumps(row).encode() + b"\n"
        try:
            left = line
            while left:
                left = left[os.write(self._file.fileno(), left) :]
        except OSError as error:
            os.ftruncate(self._file.fileno(), self._end)  # what follows is not to stand behind half a line
            raise RunError(
                f"{self.path} could not be written: {error.strerror or error}; make room and repeat the command"
            ) from None
        self._places[key] = self._end, len(line)
        self._end += len(line)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
