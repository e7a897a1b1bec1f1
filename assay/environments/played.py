"""One episode in a world that may fail: what breaks is played again from its beginning, or given up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from assay.environments.base import Action, Environment, EnvironmentFailure, Observation, Step
from assay.environments.hosted.host import Lost
from assay.types import Task, Verdict


class _Diverged(EnvironmentFailure):
    """Played again, it is another episode."""


class Played:
    """Calls an environment, and where it raises, makes another, plays the same actions and tries again.

    Args:
        make: makes an environment; those of :class:`~assay.environments.hosted.worlds.Worlds` may be lost for what
            another episode did, which is no attempt of this one.
        task, seed: what is played.
        attempts: environments in all, at least 1; one that does not repeat itself has no second.
        oracle: ask the environment's oracle of every action before it is taken; what it says is the step's ``verdict``.

    Attributes:
        seconds: wall time that the environment's calls have taken; ``processor``: its processor time.
    """

    def __init__(self, make: Callable[[], Environment], task: Task, seed: int, attempts: int = 2, oracle: bool = False):
        self.make, self.task, self.seed, self.attempts, self.oracle = make, task, seed, attempts, oracle
        self.seen: list[Any] = []  # what each action, and the beginning, led to
        self.actions: list[Action] = []
        self.world: Environment | None = None
        self.seconds = self.processor = 0.0

    def reset(self) -> Observation:
        """Begin.

        Raises:
            EnvironmentFailure: it failed in every attempt.
        """
        shown = self._tried(self._begun)
        self.seen = [shown]
        return shown

    def step(self, action: Action) -> Step:
        """Take an action.

        Raises:
            EnvironmentFailure: it failed in every attempt.
        """
        made: Step = self._tried(lambda: self._taken(self._again(), action))
        self.actions.append(action)
        self.seen.append(made)
        return made

    def ask(self, method: str, *arguments: Any) -> Any:
        """Return what the environment says by a method that changes nothing, such as ``gold``.

        Raises:
            EnvironmentFailure: it failed in every attempt.
        """
        return self._tried(lambda: getattr(self._again(), method)(*arguments))

    def verdict(self) -> Verdict:
        """Judge the state; abstains where that fails in every attempt."""
        try:
            found = self._tried(lambda: self._again().verdict())
        except EnvironmentFailure as error:
            return Verdict.abstain(str(error), "infrastructure")
        if not isinstance(found, Verdict):
            return Verdict.abstain(f"the environment's verdict is a {type(found).__name__}", "infrastructure")
        return found

    def close(self) -> None:
        """Free what is held; what goes wrong with that is nobody's concern any more."""
        world, self.world = self.world, None
        if world is not None:
            with suppress(Exception):
                world.close()

    def _begun(self) -> Observation:
        self.close()
        self.world = self.make()
        return self.world.reset(self.task, self.seed)

    def _again(self) -> Environment:
        """Return the environment, after a failure another one that has come to the same place."""
        if self.world is None:
            shown = self._begun()
            if shown != self.seen[0]:
                raise _Diverged("played again, it begins differently")
            for action, before in zip(self.actions, self.seen[1:], strict=True):
                if self._taken(self.world, action) != before:
                    raise _Diverged("played again, it takes another course")
        assert self.world is not None
        return self.world

    def _taken(self, world: Any, action: Action) -> Step:
        """Take an action, which is judged before where that is wanted."""
        judged = world.judge(action) if self.oracle else None
        made: Step = world.step(action)
        return replace(made, verdict=judged) if self.oracle else made

    def _timed(self, call: Callable[[], Any]) -> Any:
        before, used = time.monotonic(), time.thread_time()
        try:
            return call()
        finally:
            self.seconds += time.monotonic() - before
            # A hosted world counts for itself.
            self.processor = getattr(self.world, "processor", self.processor + time.thread_time() - used)

    def _tried(self, call: Callable[[], Any]) -> Any:
        while True:
            try:
                return self._timed(call)
            except (Exception, SystemExit) as error:
                if isinstance(error, Lost):
                    # One at a time the next, if it may have been this one's doing: then it is known.
                    self.make = getattr(self.make, "alone", self.make) if error.suspect else self.make
                else:
                    self.attempts -= 1
                repeats = getattr(self.world, "repeats", True)
                self.close()
                if self.attempts < 1 or not repeats or isinstance(error, _Diverged):
                    reason = " ".join(str(error).split())[:300]
                    raise EnvironmentFailure(f"the environment failed: {type(error).__name__}: {reason}") from error
