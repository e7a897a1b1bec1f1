"""Chromium without a window, driven by its DevTools protocol over a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from typing import Any

from assay.environments.base import EnvironmentFailure
from assay.errors import UsageError

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
)
LONGEST = 60.0
"""Seconds that an answer may take."""


def program() -> str | None:
    """Return the path of a Chromium, ``None`` where there is none."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class DevTools:
    """One Chromium with one blank page; its commands are answered in turn.

    Args:
        width, height: of the page, in pixels.

    Raises:
        UsageError: there is no Chromium.
        EnvironmentFailure: it does not start.
    """

    def __init__(self, width: int, height: int):
        path = program()
        if path is None:
            raise UsageError("there is no Chromium; install one (Debian: chromium-headless-shell)")
        self._profile = tempfile.TemporaryDirectory(prefix="assay-chromium-", ignore_cleanup_errors=True)
        ours, theirs = _pipe(), _pipe()
        # As root Chromium has no sandbox; it shows pages of this program's own only.
        flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={self._profile.name}"]
        null = os.open(os.devnull, os.O_RDWR)
        places = [(null, 0), (null, 1), (null, 2), (ours[0], 3), (theirs[1], 4)]
        actions = [(os.POSIX_SPAWN_DUP2, fd, place) for fd, place in places]
        self._process: int | None = os.posix_spawn(path, [path, *flags], os.environ, file_actions=actions, setpgroup=0)
        for fd in (null, ours[0], theirs[1]):
            os.close(fd)
        self._to, self._from = ours[1], theirs[0]
        self._read, self._count, self._session = b"", 0, ""
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            size: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            self.call("Emulation.setDeviceMetricsOverride", **size)
            self.call("Emulation.setTouchEmulationEnabled", enabled=True)
            self._frame = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        except BaseException:
            self.close()
            raise

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return what a command is answered with.

        Raises:
            EnvironmentFailure: an error, silence, or Chromium has gone.
        """
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        try:
            left = json.dumps(message).encode() + b"\0"
            while left:
                left = left[os.write(self._to, left) :]
            return self._answer(method)
        except OSError as error:
            raise EnvironmentFailure(f"Chromium has gone: {error}") from error

    def _answer(self, method: str) -> dict[str, Any]:
        until = time.monotonic() + LONGEST
        while True:
            whole, end, rest = self._read.partition(b"\0")
            if not end:
                if not select.select([self._from], [], [], max(0.0, until - time.monotonic()))[0]:
                    raise EnvironmentFailure(f"Chromium does not answer {method}")
                more = os.read(self._from, 1 << 16)
                if not more:
                    raise EnvironmentFailure("Chromium has gone")
                self._read += more
                continue
            self._read = rest
            message = json.loads(whole)
            if message.get("id") == self._count:
                if "error" in message:
                    raise EnvironmentFailure(f"Chromium, {method}: {message['error'].get('message')}")
                answer: dict[str, Any] = message["result"]
                return answer

    def show(self, html: str) -> None:
        """Put a document into the page."""
        self.call("Page.setDocumentContent", frameId=self._frame, html=html)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, as JSON has it."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise EnvironmentFailure(f"Chromium: {found['exceptionDetails'].get('text')}")
        return found["result"].get("value")

    def close(self) -> None:
        """End it, and what it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are out of the way of the descriptors that a child expects."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]
