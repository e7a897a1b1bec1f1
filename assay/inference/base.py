"""The inference seam: what do we do at test time?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.types import Episode, Task


@dataclass(frozen=True, slots=True)
class Budget:
    """What a strategy may spend on each task, at most.

    Attributes:
        samples: responses that may be begun; a search that makes responses step by step follows as many at a time, or
            makes as many simulations. ``None`` for any number.
        tokens: tokens in all, counted as in :class:`Answer`. A strategy begins nothing for which, taken at its longest,
            they do not suffice, the scoring of what is begun included, except its first response, which is shortened to
            them, and goes without a score that they do not suffice for. ``None`` for any number.

    Raises:
        UsageError: neither is given, or one is below 1.
    """

    samples: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        given = [x for x in (self.samples, self.tokens) if x is not None]
        if not given or min(given) < 1:
            raise UsageError(f"a budget is a number of samples, of tokens or both, each at least 1, not {self}")

    @classmethod
    def of(cls, budget: Budget | int | str) -> Budget:
        """Read a budget: a number of samples, ``"16"`` or ``16``, or of tokens, ``"4096t"``.

        Raises:
            UsageError: it is neither.
        """
        if isinstance(budget, Budget):
            return budget
        if isinstance(budget, int):
            return cls(samples=budget)
        digits = budget.strip().removesuffix("t")
        if not (digits.isascii() and digits.isdigit()):
            raise UsageError(f"a budget is a number of samples such as 16, or of tokens such as 4096t, not {budget!r}")
        return cls(tokens=int(digits)) if budget.strip().endswith("t") else cls(samples=int(digits))

    def __str__(self) -> str:
        parts = [] if self.samples is None else [str(self.samples)]
        return " and ".join(parts if self.tokens is None else [*parts, f"{self.tokens}t"])


@dataclass(frozen=True, slots=True)
class Answer:
    """A strategy's final response, what it was made from and what it cost.

    Attributes:
        text: the response; ``None`` where the strategy abstains: it has looked and would rather not answer.
        episodes: what was sampled on the way, the responses it chose from.
        tokens: tokens spent: those the model generated, and those that verifiers, judges and value models read or
            generated to score them. The task's own prompt, and what continues a response that the model has just
            generated, are not counted again; any other prompt is.
        scoring: those of ``tokens`` that went into scoring.
        meta: anything else: scores, shares of votes; ``unscored``, the responses whose scorer could not tell, or
            for whose score the tokens did not suffice.
    """

    text: str | None
    episodes: tuple[Episode, ...]
    tokens: int
    meta: dict[str, Any] = field(default_factory=dict)
    scoring: int = 0

    @property
    def abstains(self) -> bool:
        return self.text is None


@runtime_checkable
class Strategy(Protocol):
    """Answers tasks with an engine under a budget for each; a plain number is one of samples.

    Every draw comes from ``rng``. Strategies that begin by sampling n whole responses take one seed per task from it
    first, so that they see the same responses under the same generator.
    """

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]: ...
