"""A language model that says which of two answers is better, read by the probabilities of its first token."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.batch import Batch
from assay.engines.asking import escaped, filled, judge_of, likeliest
from assay.errors import UsageError
from assay.verify.pair_name import NAMES, TEMPLATE


@dataclass(frozen=True, slots=True)
class PairJudge:
    """Which of two answers a model prefers, and how surely.

        P(first) = p(name of the first) / (p(name of the first) + p(name of the second))

    over its first token, of which the ``n`` likeliest are known: 1 or 0 where only one name is among them, and nothing
    where neither is.

    Args:
        judge: an engine, or the specification of one.
        template: with ``{question}``, ``{first}`` and ``{second}``.
        names: of the answer shown first and second, one token each.
        escape: whether answers are shown with quotes and line breaks escaped, so that they cannot end their quotation.
        n: see above.

    Raises:
        UsageError: no engine, or a template that does not show both answers.
    """

    judge: Any
    template: str = TEMPLATE
    names: tuple[str, str] = NAMES
    escape: bool = True
    n: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "judge", judge_of(self.judge, "the judge of pairs"))
        if any(f"{{{name}}}" not in self.template for name in ("question", "first", "second")):
            raise UsageError("the judge of pairs: the template must show {question}, {first} and {second}")

    def prompt(self, question: str, first: str, second: str) -> str:
        """Return what the judge is asked."""
        shown = (escaped(first), escaped(second)) if self.escape else (first, second)
        return filled(self.template, question=question, first=shown[0], second=shown[1])

    def logprobs(self, items: Sequence[tuple[str, str, str]]) -> list[tuple[float | None, float | None]]:
        """Return for each (question, first, second) the log-probabilities of both names, ``None`` if unknown."""
        said = likeliest(self.judge, [self.prompt(*item) for item in items], self.n)
        return [(row.get(self.names[0]), row.get(self.names[1])) for row in said]

    def preferences(self, items: Sequence[tuple[str, str, str]]) -> list[float | None]:
        """Return P(first) for each (question, first, second)."""
        out: list[float | None] = []
        for first, second in self.logprobs(items):
            if first is None or second is None:
                out.append(None if first is second else float(second is None))
            else:
                out.append(1 / (1 + math.exp(min(second - first, 700.0))))
        return out

    def both_orders(self, items: Sequence[tuple[str, str, str]]) -> list[float | None]:
        """Return (P(first | it is shown first) + 1 - P(second | it is shown first)) / 2 for each, without preference
        for a place; ``None`` where one order cannot be read."""
        said = self.preferences([*items, *((question, second, first) for question, first, second in items)])
        return [
            None if p is None or r is None else (p + 1 - r) / 2
            for p, r in zip(said[: len(items)], said[len(items) :], strict=True)
        ]

    def compared(self, batch: Batch, pairs: Sequence[tuple[int, int]]) -> list[float | None]:
        """Return :meth:`both_orders` for pairs of rows of a batch, each of one task."""
        texts = [e.text for e in batch.episodes]
        return self.both_orders([(batch.tasks[i].question, texts[i], texts[j]) for i, j in pairs])


def pair_judge_of(spec: Any) -> PairJudge:
    """Return the judge of pairs that something stands for: itself, a table of its options, or that of an engine."""
    if isinstance(spec, PairJudge):
        return spec
    return PairJudge(**spec) if isinstance(spec, Mapping) and "judge" in spec else PairJudge(spec)
