"""Responses scored by implicit process rewards: how much likelier each step is to a model that outcomes taught."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.inference.scoring.base import Score
from assay.inference.scoring.scorers import OF_CHANCES, Reduce, reduced
from assay.registry import part
from assay.rewards.process.implicit_prm import ImplicitPRM, Of
from assay.signals.steps import Steps
from assay.types import Episode, Task


@part("scorer", "implicit")
@dataclass(frozen=True, slots=True)
class ByImplicitReward:
    """sigmoid of the steps' scores in one number, see :class:`assay.rewards.process.implicit_prm.ImplicitPRM`.

    As a weight of votes it is positive; who is best it does not change.

    Args:
        prm: folder of the run that trained it, or an :class:`~assay.rewards.process.implicit_prm.ImplicitPRM`.
        reference: ``initial``, what that run began with, ``none``, or a model.
        by: where steps end.
        reduce: ``min``, ``sum``, ``mean``, ``last`` or ``max`` over the steps.
        beta, of: of the reward model that ``prm`` names.

    Raises:
        UsageError: ``reduce`` is one of probabilities.
    """

    prm: Any
    reference: str = "initial"
    by: Steps = field(default_factory=lambda: Steps("newline"))
    reduce: Reduce = "min"
    beta: float = 0.05
    of: Of = "reward"
    _made: ImplicitPRM = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reduce in OF_CHANCES:
            raise UsageError(f"scorer 'implicit': reduce {self.reduce!r} is of probabilities, and these are none")
        made = self.prm
        if not isinstance(made, ImplicitPRM):
            made = ImplicitPRM.of_run(made, self.reference, beta=self.beta, of=self.of)
        object.__setattr__(self, "_made", made)

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        own = hasattr(self._made.policy, "encode_response")  # a model of text reads it in its own tokens
        read = [(task, self._made.episode(task, e.text) if own else e) for task, e in pairs]
        decode = getattr(self._made.policy, "decode", engine.decode)
        out = []
        for (_, e), rewards in zip(read, self._made.token_rewards(read), strict=True):
            ends = [span.end for span in self.by.of(e, decode)]
            value = reduced(self._made.scored(rewards, ends), self.reduce) if ends else None
            out.append(Score(None if value is None else _sigmoid(value), self._passes * _read(e)))
        return out

    @property
    def _passes(self) -> int:
        return 1 + (self._made.reference is not None)

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        length = response if isinstance(response, int) else len(response.tokens)
        return self._passes * (len(engine.encode(task.prompt)) + length)


def _sigmoid(x: float) -> float:
    return math.exp(min(x, 0.0)) / (1 + math.exp(-abs(x)))


def _read(episode: Episode) -> int:
    return len(episode.prompt) + len(episode.tokens) if len(episode.tokens) else 0
