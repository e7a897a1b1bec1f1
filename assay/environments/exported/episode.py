"""An episode for whoever plays elsewhere: text in, text out, and the verdict in the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.environments.base import Action, Observation, Step
from assay.environments.calls import find_calls
from assay.environments.hosted.worlds import Worlds
from assay.environments.played import Played
from assay.tasks.base import TaskSource
from assay.types import Tool, Verdict


class Episodes:
    """An environment's episodes, one after the other.

    Args:
        environment: its name, ``file.py:Class``, or a table with ``name`` and options.
        workers: processes that environments live in; 0 for this one.
        seconds: of one step, in a process.

    Raises:
        UsageError: there is no such environment.
    """

    def __init__(self, environment: str | Mapping[str, Any], workers: int = 0, seconds: float = 60.0):
        self.worlds = Worlds(environment, workers, seconds)
        self.source: TaskSource = self.worlds.here().tasks()
        self.played: Played | None = None
        self.tools: tuple[Tool, ...] = ()
        self.over = True

    def begin(self, index: int, seed: int) -> Observation:
        """Begin an episode of the task at a place.

        Raises:
            EnvironmentFailure: the environment fails.
        """
        self.close()
        self.played = Played(self.worlds, self.source[index], seed)
        shown = self.played.reset()
        self.tools, self.over = shown.tools, False
        return shown

    def act(self, text: str) -> Step:
        """Take a turn; the tool calls in it are made.

        Raises:
            EnvironmentFailure: the environment fails.
            RuntimeError: no episode is under way.
        """
        if self.played is None or self.over:
            raise RuntimeError("no episode is under way; call reset first")
        step = self.played.step(Action(text, find_calls(text, self.tools) if self.tools else ()))
        self.over = step.terminated or step.truncated
        return step

    def verdict(self) -> Verdict:
        """Judge the state."""
        if self.played is None:
            return Verdict.wrong("no episode was begun")
        return self.played.verdict()

    def close(self) -> None:
        played, self.played, self.over = self.played, None, True
        if played is not None:
            played.close()


def text_of(shown: Observation) -> str:
    """Return an observation as one text."""
    return "\n".join(str(m["content"]) for m in shown.messages)
