"""Environments of ``verifiers``: their loop runs unchanged, and the policy answers when it asks a model."""

from __future__ import annotations

import queue
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.environments.base import Action, EnvironmentFailure, Observation, Step
from assay.environments.foreign.chat import Asked, Line, desk, goes_on, messages_of, said, tools_of
from assay.environments.foreign.verifiers.process import Ended, Process, started
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index
from assay.types import Message, Task, Verdict


@dataclass(frozen=True, slots=True)
class Places:
    """The taskset's tasks, by their places."""

    name: str
    count: int | None

    @property
    def size(self) -> int | None:
        return self.count

    def __getitem__(self, index: int) -> Task:
        check_index(index, self.count)
        # What the foreign loop asks a model first is the prompt; there is none before an episode has begun.
        return Task(f"verifiers/{self.name}/{index}", "", {"index": index}, "none", meta={"index": index})


@part("environment", "verifiers")
class Verifiers:
    """A taskset of ``verifiers`` with its own loop, tools, users and scoring, in a process of its own.

    The loop believes that it asks a model over OpenAI's chat protocol; what it asks is what the policy is shown, and
    the policy's turn is what it hears. So a turn goes on from the very tokens before it, as everywhere here. Calls of
    tools that can be read reach it as calls, and anything else as text.

    The verdict is its reward: the score is that, clipped to [0, 1], and it passes if the reward reaches ``passes``. A
    rollout with an ``error`` abstains. One that has spent its turns here hears that the context is full, and is scored
    as it then stands if the loop takes that for an end; otherwise it is wrong. A loop that rewrites the conversation
    (compaction) cannot be gone on with, and abstains.

    Args:
        taskset: its id, an installed module, or a table with ``id`` and options.
        env: anything else of the environment's configuration: its ``id``, each role's ``harness``, ``client``,
            ``max_turns``. Programs run on this machine (``runtime.type = "subprocess"``) and have no shell
            (``harness.id = "null"``) unless it says otherwise.
        role: whose turns are the policy's; by default the first that the environment declares. Every other one needs
            a ``client`` and a ``model``.
        python: an interpreter that has verifiers installed; by default this one.
        path: folders to import the taskset from.
        passes: reward that passes.
        seconds: that the loop may take between two turns.

    Raises:
        UsageError: the environment cannot be made.
    """

    def __init__(
        self,
        taskset: str | dict[str, Any],
        env: dict[str, Any] | None = None,
        role: str = "",
        python: str = sys.executable,
        path: Sequence[str] = (),
        passes: float = 1.0,
        seconds: float = 300.0,
    ):
        made = {"id": taskset} if isinstance(taskset, str) else dict(taskset)
        if not isinstance(made.get("id"), str) or seconds <= 0:
            raise UsageError("environment 'verifiers': taskset needs its id = \"...\", and seconds must be above 0")
        self.process: Process = started(python, {**(env or {}), "taskset": made}, role, list(path))
        self.passes, self.seconds = passes, seconds
        self._tasks = Places(made["id"], self.process.tasks)
        self.line: Line | None = None
        self.ended: Ended | None = None
        self.asked: Asked | None = None

    def tasks(self) -> Places:
        return self._tasks

    def reset(self, task: Task, seed: int) -> Observation:
        if "index" not in task.meta:
            raise UsageError(f"environment 'verifiers': task {task.id} has no meta['index']; take its own tasks")
        self.close()
        self.line = Line(desk())
        self.said: tuple[Message, ...] = ()
        self.turn, self.ended, self.asked, self.spent = 0, None, None, False
        self.run = self.process.run(int(task.meta["index"]), self.line)
        shown = self._next()
        if self.asked is None:
            raise EnvironmentFailure(f"it ended before it asked anything: {self._errors() or 'no error'}")
        return Observation(shown, tools_of(self.asked.body))

    def step(self, action: Action) -> Step:
        if self.asked is None or self.line is None:
            raise RuntimeError("no episode is under way; call reset first")
        message: Any = said(action, self.turn)
        self.turn += 1
        self.said = (*self.said, message)
        self.asked.answer(message)
        shown = self._next()
        if self.asked is None and self._errors():
            raise EnvironmentFailure(self._errors())
        return Step(Observation(shown), terminated=self.asked is None)

    def verdict(self) -> Verdict:
        if self.asked is not None:
            self._spend()
        if self.ended is None:
            return Verdict.wrong("no episode was begun")
        if self._errors() or "reward" not in self.ended.told:
            if self.spent:
                return Verdict.wrong("the turns are spent, and its loop does not end so")
            return Verdict.abstain(self._errors() or "it tells no reward", "infrastructure")
        reward = float(self.ended.told["reward"])
        notes: dict[str, float | None] = {f"{k} | reward": float(v) for k, v in self.ended.told["rewards"].items()}
        return Verdict(float(np.clip(reward, 0.0, 1.0)), reward >= self.passes, notes, f"reward {reward:.6g}")

    def close(self) -> None:
        line, self.line = self.line, None
        if line is not None:
            self.process.stop(self.run)
            if self.asked is not None:
                self.asked.refuse("the episode is over")
            line.close()
        self.asked = None

    def _next(self) -> tuple[Message, ...]:
        """Wait for what the loop asks next, or for its end; return the messages that are new."""
        assert self.line is not None
        self.asked = None
        try:
            event = self.line.events.get(timeout=self.seconds)
        except queue.Empty:
            raise EnvironmentFailure(f"its loop took longer than {self.seconds:g} s") from None
        if isinstance(event, Ended):
            self.ended = event
            return ()
        messages = messages_of(event.body)
        self.asked = event
        if self.said and not goes_on(self.said, messages):
            raise EnvironmentFailure("its loop has rewritten the conversation, which cannot be gone on with")
        shown, self.said = messages[len(self.said) :], messages
        return shown

    def _spend(self) -> None:
        """Tell the loop that nothing more comes, and hear how it ends."""
        assert self.line is not None
        self.spent = True
        while self.asked is not None:
            self.asked.refuse("This model's maximum context length is reached: the turns are spent")
            self.said = ()
            self._next()

    def _errors(self) -> str:
        return "; ".join(self.ended.told["errors"]) if self.ended is not None else ""
