"""Answers kept on disk, by everything that was asked."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import Any


class Cache:
    """A folder with one file per answered request, which several processes may share.

    A file appears under its name when it is whole, so a reader sees all of it or nothing; two processes that answer the
    same request write the same name, and the later stays. A file that cannot be read, or is of another request, counts
    as missing.

    Args:
        folder: made if it is not there.
        url: of the server, part of what is asked.

    Raises:
        OSError: the folder cannot be made.
    """

    def __init__(self, folder: Path, url: str):
        self.folder, self.url = folder, url
        self.complained = False
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to the same request, if one was kept."""
        asked = {"url": self.url + path, "request": body}
        try:
            found = json.loads(self._place(asked).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or {k: found.get(k) for k in asked} != asked:
            return None
        answer = found.get("answer")
        return answer if isinstance(answer, dict) else None

    def put(self, path: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        """Keep an answer; where the disk does not take it, a warning says so once, and nothing else changes."""
        asked = {"url": self.url + path, "request": body}
        place = self._place(asked)
        partial = ""
        try:
            place.parent.mkdir(exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=place.parent, prefix=".partial-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({**asked, "answer": answer}, file)
            os.replace(partial, place)
        except OSError as error:
            if partial:
                Path(partial).unlink(missing_ok=True)
            if not self.complained:
                logging.getLogger(__name__).warning("answers are not kept in %s: %s", self.folder, error)
            self.complained = True

    def _place(self, asked: dict[str, Any]) -> Path:
        key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.json"
