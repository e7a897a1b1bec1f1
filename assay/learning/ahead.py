"""Verdicts on a batch that is still being generated: each response is judged as soon as it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from threading import Lock

import numpy as np

from assay.engines.base import Request
from assay.learning.worker import Worker
from assay.rollout.single_turn import full_prompt
from assay.types import Ask, Episode, Group, Task, Verdict

Judge = Callable[[Sequence[Group]], list[Group]]


class Ahead:
    """What an engine tells of is judged beside the rest of its generation; what a rollout makes of it gets its verdict.

    A response is taken for one to the ask whose prompt, hint and number of responses its request has. Should a rollout
    make something else of it, a verdict is in vain but never in the wrong place: an episode gets that on its own task
    and text, each verdict goes to one episode, and what has none is judged as ever.

    Args:
        asks: what the batch asks.
        judge: groups with verdicts of groups without; called in the worker's thread, one call at a time.
        worker: judges.
        whole: hand everything that waits to ``judge`` in one call (a pool does it side by side) instead of one by one.
    """

    def __init__(self, asks: Sequence[Ask], judge: Judge, worker: Worker, whole: bool = False):
        self.judge, self.worker, self.whole = judge, worker, whole
        self._asks: dict[str, Ask] = {}
        for ask in asks:
            self._asks.setdefault(repr(full_prompt(ask)), ask)
        self._waiting: list[tuple[Task, str]] = []
        self._lock = Lock()
        self._begun: list[Future[None]] = []
        # By the task itself, which the asks keep alive: two of a batch may have one id.
        self._found: dict[tuple[int, str], list[Verdict]] = {}

    def hear(self, request: Request, text: str) -> None:
        """Have a response judged that has ended."""
        ask = self._asks.get(repr(request.prompt))
        if ask is None or request.n != ask.n or len(request.prefix):
            return
        with self._lock:
            self._waiting.append((ask.task, text))
        self._begun.append(self.worker.submit(self._some))

    def finish(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups with verdicts, in the worker's thread once all has been generated.

        Raises:
            Exception: what went wrong with a verdict, the very error.
        """
        for future in self._begun:
            future.result()
        if not self._found:
            return self._judged(groups)
        known = [self._known(group) for group in groups]
        made = iter(
            self._judged(
                [
                    _part(group, [i for i, verdict in enumerate(verdicts) if verdict is None])
                    for group, verdicts in zip(groups, known, strict=True)
                    if None in verdicts or not verdicts
                ]
            )
        )
        out = []
        for group, verdicts in zip(groups, known, strict=True):
            if all(verdict is None for verdict in verdicts):
                out.append(next(made))
                continue
            others = iter(next(made).verdicts if None in verdicts else ())
            out.append(group.judged([next(others) if verdict is None else verdict for verdict in verdicts]))
        return out

    def _known(self, group: Group) -> list[Verdict | None]:
        """The verdicts that are there for a group's episodes; none for one that has its own."""
        if group.verdicts:
            return []
        out: list[Verdict | None] = []
        for episode in group.episodes:
            found = self._found.get((id(group.task), episode.text)) if episode.stop != "error" else None
            out.append(found.pop() if found else None)
        return out

    def _some(self) -> None:
        """In the worker's thread: judge what waits, or the first of it."""
        with self._lock:
            taken = self._waiting if self.whole else self._waiting[:1]
            self._waiting = self._waiting[len(taken) :]
        if not taken:  # an earlier call had it
            return
        groups = [Group(Ask(task, 1), (_said(text),)) for task, text in taken]
        for (task, text), group in zip(taken, self.judge(groups), strict=True):
            self._found.setdefault((id(task), text), []).append(group.verdicts[0])

    def _judged(self, groups: Sequence[Group]) -> list[Group]:
        out: list[Group] = []
        for piece in [groups] if self.whole else [[group] for group in groups]:
            self.worker.check()
            out += self.judge(piece) if piece else []
        return out


def _part(group: Group, episodes: Sequence[int]) -> Group:
    """A group of some of a group's episodes; the group itself if these are all, or it has verdicts."""
    if len(episodes) == len(group.episodes) or not episodes:
        return group
    ask = replace(group.ask, n=len(episodes))
    return replace(group, ask=ask, episodes=tuple(group.episodes[i] for i in episodes))


def _said(text: str) -> Episode:
    """An episode of which a verifier sees what it will see: the text."""
    none = np.zeros(0, dtype=np.int64)
    return Episode(none, none, none.astype(bool), None, text, "stop")
