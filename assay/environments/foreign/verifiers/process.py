"""The process that has ``verifiers``, seen from here; one for all episodes of an environment."""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.environments.foreign.chat import Line
from assay.errors import UsageError

INSIDE = Path(__file__).with_name("inside.py")


class Ended:
    """A rollout has ended: what is told of it.

    Attributes:
        told: ``reward``, ``rewards`` and ``errors``.
    """

    def __init__(self, told: Mapping[str, Any]):
        self.told = told


class Process:
    """Runs :mod:`assay.environments.foreign.verifiers.inside`.

    Args:
        python: an interpreter that has verifiers.
        env, role, path: what it plays, by whom, and where to import from.

    Attributes:
        tasks: how many there are; ``None`` for any number.

    Raises:
        UsageError: it cannot be started, or cannot make the environment.
    """

    def __init__(self, python: str, env: dict[str, Any], role: str, path: list[str]):
        try:
            self.process = subprocess.Popen(
                [python, "-P", str(INSIDE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
            )
        except OSError as error:
            raise UsageError(f"environment 'verifiers': cannot run {python}: {error.strerror or error}") from None
        self.numbers, self.writing = itertools.count(), threading.Lock()
        self.lines: dict[int, Line] = {}
        self.over = False
        self._say({"env": env, "role": role, "path": path})
        assert self.process.stdout is not None
        heard = self.process.stdout.readline()
        hello: dict[str, Any] = (
            json.loads(heard) if heard.strip() else {"error": f"it ended with status {self.process.wait()}"}
        )
        if "error" in hello:
            raise UsageError(f"environment 'verifiers': {hello['error']}")
        self.tasks: int | None = hello["tasks"]
        threading.Thread(target=self._listen, name="assay-verifiers", daemon=True).start()

    def run(self, task: int, line: Line) -> int:
        """Begin a rollout whose model is at ``line``, where its end is told too; return its number."""
        number = next(self.numbers)
        self.lines[number] = line
        self._say({"run": number, "task": task, "url": line.url})
        if self.over:
            self._lost()
        return number

    def stop(self, number: int) -> None:
        """End a rollout that nobody waits for."""
        if self.lines.pop(number, None) is not None:
            self._say({"stop": number})

    def _say(self, content: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        with self.writing:
            try:
                self.process.stdin.write(json.dumps(content) + "\n")
                self.process.stdin.flush()
            except OSError:
                # Whoever waits for it hears of its end by the listener.
                self.over = True

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            if (waits := self.lines.pop(told["run"], None)) is not None:
                waits.events.put(Ended(told))
        self.over = True
        self._lost()

    def _lost(self) -> None:
        reason = f"its process ended with status {self.process.wait()}"
        while self.lines:
            _, waits = self.lines.popitem()
            waits.events.put(Ended({"errors": [reason]}))


@functools.cache
def _started(python: str, content: str) -> Process:
    return Process(python, **json.loads(content))


_STARTING = threading.Lock()


def started(python: str, env: Mapping[str, Any], role: str, path: list[str]) -> Process:
    """Return the process for an environment: the one there is, or a new one.

    Raises:
        UsageError: it cannot be started.
    """
    content = json.dumps({"env": env, "role": role, "path": path}, sort_keys=True)
    with _STARTING:
        found = _started(python, content)
        if found.over:
            _started.cache_clear()
            found = _started(python, content)
        return found
