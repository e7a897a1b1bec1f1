"""A second policy that is trained in turns with the first, by a method of its own: a verifier, say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import UsageError
from assay.types import Group, Task
from assay.verify.base import Verifier


@dataclass(frozen=True, slots=True)
class Turns:
    """Whose turn a step is, by its number alone: ``warm_up`` of the partner's, then ``every`` of the policy's and
    ``updates`` of the partner's, over and over.

    Raises:
        UsageError: ``warm_up`` below 0, ``every`` or ``updates`` below 1.
    """

    warm_up: int = 0
    every: int = 1
    updates: int = 1

    def __post_init__(self) -> None:
        if self.warm_up < 0 or self.every < 1 or self.updates < 1:
            raise UsageError(
                f"turns of a partner: needs warm_up >= 0, every >= 1 and updates >= 1, not {self.warm_up}, "
                f"{self.every} and {self.updates}"
            )

    def partners(self, step: int) -> bool:
        """Whether step ``step`` (0-based) is the partner's."""
        after = step - self.warm_up
        return after < 0 or after % (self.every + self.updates) >= self.every

    def own(self, steps: int) -> int:
        """How many of the first ``steps`` are the policy's."""
        rounds, rest = divmod(max(steps - self.warm_up, 0), self.every + self.updates)
        return rounds * self.every + min(rest, self.every)


@dataclass(frozen=True, slots=True)
class Partner:
    """How a second policy is trained beside the first.

    In a step of the partner's the policy answers as ever, ``per_prompt`` times, and is judged; ``tasks`` makes of that
    what the partner is asked, ``group`` responses each, which ``verifier`` judges and the partner's ``method`` learns
    from. In a step of the policy's the partner does not change; signals may ask it, see
    :attr:`assay.signals.base.Models.partner`. Each has weights, optimiser, reference and engine of its own.

    Attributes:
        method: its reward, credit, selection and objective; of curriculum and rollout nothing is read.
        tasks: what the partner is asked, of the policy's judged groups and how it decodes tokens.
        verifier: judges what it answers.
        turns: see :class:`Turns`.
        group: responses of the partner to each of its tasks.
        per_prompt: responses of the policy to each prompt in a step of the partner's.
        model: changes to the run's ``[model]`` table, ``{"source": ...}``; it begins as that model, never as the
            policy after a warm-up.
        max_tokens: longest response; as the policy's if ``None``.
        lr: highest learning rate; as the policy's if ``None``.
    """

    method: Any
    tasks: Callable[[Sequence[Group], Callable[[Sequence[int]], str]], list[Task]]
    verifier: Verifier
    turns: Turns = field(default_factory=Turns)
    group: int = 5
    per_prompt: int = 1
    model: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    lr: float | None = None

    def __post_init__(self) -> None:
        if self.group < 1 or self.per_prompt < 1:
            raise UsageError(f"a partner needs group >= 1 and per_prompt >= 1, not {self.group} and {self.per_prompt}")
