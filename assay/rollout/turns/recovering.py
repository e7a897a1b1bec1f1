"""Beside the tasks asked, how to get back from mistakes that were made in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine
from assay.environments.lines import last_line
from assay.errors import UsageError
from assay.registry import build, part
from assay.rollout.base import Rollout
from assay.types import Ask, Group


@part("rollout", "recovering")
@dataclass(slots=True)
class Recovering:
    """Judges the responses to single steps of an environment's plans, and asks how to get back from mistakes in them.

    A step is prone to error where some of its responses are right and some wrong. For such a step the environment is
    brought to it again, the first wrong gesture that can be made is made, and two further tasks come of it, each
    asked as often as the step was: on the screen that the mistake has led to, to go back (*escape*); on the step's own
    screen, with mistake and way back in the history, to do what was to be done (*back on track*). Their groups follow
    those of the tasks that were asked, and are learned from like these.

    Tasks are those of ``tasks.source = {name = "environment", environment = ..., steps = true}``; nothing is made of
    others.

    Args:
        sampling, judge, more, curriculum: supplied by the run.
        environment: that the steps are of: a part's name, or a table with ``name`` and options.
        inner: the rollout that answers the asks.
        most: steps that are made something of in a collection; ``None`` for any number.

    Raises:
        UsageError: an environment without single steps, or ``most`` below 0.

    Source: the error recovery scenarios of InfiGUI-R1 (arXiv 2504.14239), made there once, before training.
    """

    sampling: Any
    judge: Callable[[Sequence[Group]], list[Group]]
    environment: Any
    more: Any = None
    curriculum: Any = None
    inner: Any = "single_turn"
    most: int | None = None
    _inner: Rollout = field(init=False)
    _steps: Any = field(init=False)
    _seen: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        world = build("environment", self.environment)
        if not hasattr(world, "steps") or (self.most or 0) < 0:
            raise UsageError(
                f"rollout 'recovering': needs an environment with single steps, not {self.environment!r}, and most >= 0"
            )
        self._steps = world.steps()
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self.judge(self._inner.collect(asks, engine, rng))
        prone = [group for group in groups if "step" in group.task.meta and prone_to_error(group)]
        made = [Ask(task, group.ask.n) for group in prone[: self.most] for task in self._after(group)]
        further = self.judge(self._inner.collect(made, engine, rng)) if made else []
        self._seen = {"recovery/prone": len(prone) / max(1, len(groups)), "recovery/tasks": float(len(made))}
        for kind in ("escape", "again"):
            rights = [v.passed for g in further if g.task.meta["recovery"] == kind for v in g.verdicts]
            if rights:
                self._seen[f"recovery/{kind}"] = float(np.mean([right is True for right in rights]))
        return [*groups, *further]

    def metrics(self) -> dict[str, float]:
        """Share of tasks prone to error, tasks made of them, and the share of right responses to either kind."""
        return self._seen

    def _after(self, group: Group) -> list[Any]:
        """Return the tasks that come of the first wrong gesture that can be made."""
        for episode, verdict in zip(group.episodes, group.verdicts, strict=True):
            if verdict.passed is False and (found := self._steps.recovery(group.task, wrong_of(episode.text))):
                made: list[Any] = found
                return made
        return []


def prone_to_error(group: Group) -> bool:
    """Whether 0 < share of right responses < 1, of those that could be judged."""
    return {True, False} <= {verdict.passed for verdict in group.verdicts}


def wrong_of(text: str) -> str:
    """Return the line that a response gives as its action."""
    return re.sub(r"\s*\n\s*", " ", last_line(text))
