"""One episode in a world that may fail: what breaks is played again from its beginning, or given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from assay.environments.base import Action, Environment, EnvironmentFailure, Observation, Step
from assay.environments.hosted.host import Lost
from assay.types import Task, Verdict


class _Diverged(EnvironmentFailure):
    """Played again, it is another episode."""


class Played:
    """Calls an environment, and where it raises, makes another, plays the same actions and tries again.

    With ``patience`` another is made as well where a call takes longer than so many seconds, and a further one where
    that is late too: what answers first counts, as an environment that repeats itself gives the same answer, and the
    others are left alone. They are of the ``attempts``; so a call that hangs costs little more than ``patience``, and
    not the time it may take.

    Args:
        make: makes an environment; those of :class:`~assay.environments.hosted.worlds.Worlds` may be lost for what
            another episode did, which is no attempt of this one.
        task, seed: what is played.
        attempts: environments in all, at least 1; one that does not repeat itself has no second.
        oracle: ask the environment's oracle of every action before it is taken; what it says is the step's ``verdict``.
        patience: see above; only of environments in processes of their own.

    Attributes:
        seconds: wall time that the environment's calls have taken; ``processor``: its processor time.
    """

    def __init__(
        self,
        make: Callable[[], Environment],
        task: Task,
        seed: int,
        attempts: int = 2,
        oracle: bool = False,
        patience: float | None = None,
    ):
        self.make, self.task, self.seed, self.attempts, self.oracle = make, task, seed, attempts, oracle
        self.patience = patience
        self.seen: list[Any] = []  # what each action, and the beginning, led to
        self.actions: list[Action] = []
        self.world: Environment | None = None
        self.seconds = self.processor = 0.0

    def reset(self) -> Observation:
        """Begin.

        Raises:
            EnvironmentFailure: it failed in every attempt.
        """
        shown = self._tried(Played._begun)
        self.seen = [shown]
        return shown

    def step(self, action: Action) -> Step:
        """Take an action.

        Raises:
            EnvironmentFailure: it failed in every attempt.
        """
        made: Step = self._tried(lambda one: one._taken(one._again(), action))
        self.actions.append(action)
        self.seen.append(made)
        return made

    def ask(self, method: str, *arguments: Any) -> Any:
        """Return what the environment says by a method that changes nothing, such as ``gold``.

        Raises:
            EnvironmentFailure: it failed in every attempt.
        """
        return self._tried(lambda one: getattr(one._again(), method)(*arguments))

    def verdict(self) -> Verdict:
        """Judge the state; abstains where that fails in every attempt."""
        try:
            found = self._tried(lambda one: one._again().verdict())
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

    def _timed(self, call: Callable[[Played], Any]) -> Any:
        before, used = time.monotonic(), time.thread_time()
        try:
            return call(self) if self.patience is None else self._hedged(call, self.patience)
        finally:
            self.seconds += time.monotonic() - before
            # A hosted world counts for itself.
            self.processor = getattr(self.world, "processor", self.processor + time.thread_time() - used)

    def _hedged(self, call: Callable[[Played], Any], patience: float) -> Any:
        """Return what a call returns, of this environment or of others, one more each time that all are late."""
        last = self._like(self.world)
        asked = {_beside(call, last): last}
        while True:
            more = self.attempts > 1 and getattr(last.world, "repeats", True)
            done, _ = wait(asked, patience if more else None, FIRST_COMPLETED)
            # One that failed is none as long as another may answer.
            answer = next((a for a in asked if a in done and (a.exception() is None or len(done) == len(asked))), None)
            if answer is not None:
                break
            for failed in done:
                asked.pop(failed).close()
            if not done:
                self.attempts -= 1
                before, last = last, self._like(None)
                if (elsewhere := getattr(self.make, "beside", None)) is not None:
                    last.make = partial(elsewhere, before.world)
                asked[_beside(call, last)] = last
        self.world = asked.pop(answer).world
        for late, played in asked.items():
            late.add_done_callback(partial(_left, played))
        return answer.result()

    def _like(self, world: Environment | None) -> Played:
        """Return an episode that has come as far, in an environment that has, or in none yet."""
        made = Played(self.make, self.task, self.seed, 1, self.oracle)
        made.seen, made.actions, made.world = list(self.seen), list(self.actions), world
        return made

    def _tried(self, call: Callable[[Played], Any]) -> Any:
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


def _left(played: Played, answer: Future[Any]) -> None:
    """Free an episode that nobody waits for, once it has answered."""
    played.close()


def _beside(call: Callable[[Played], Any], played: Played) -> Future[Any]:
    """Return what a call will return, made in a thread of its own, which nobody waits for at the end."""
    answer: Future[Any] = Future()

    def make() -> None:
        try:
            answer.set_result(call(played))
        except BaseException as error:  # who waits for it is told
            answer.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    return answer
