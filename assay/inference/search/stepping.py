"""Responses made step by step, for searches that choose among their beginnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.engines.base import Engine, Request, Sampling
from assay.engines.joined import joined, stopped
from assay.errors import UsageError
from assay.inference.meter import Meter
from assay.types import Episode


@dataclass(frozen=True, slots=True)
class Stepping:
    """Where a step ends.

    Args:
        stop: strings that end a step; they belong to it.
        tokens: longest step.

    Raises:
        UsageError: ``tokens`` below 1.
    """

    stop: tuple[str, ...] = ("\n",)
    tokens: int = 256

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise UsageError(f"a step has at least 1 token, not {self.tokens}")

    def length(self, head: Episode | None, sampling: Sampling) -> int:
        """Return the most tokens of the next step."""
        return min(self.tokens, sampling.max_tokens - (0 if head is None else len(head.tokens)))

    def done(self, episode: Episode, sampling: Sampling) -> bool:
        """Say whether a beginning is a whole response: ended, at a stop of the response's own, or out of room."""
        if episode.stop in ("eos", "context", "error") or len(episode.tokens) >= sampling.max_tokens:
            return True
        return episode.stop == "stop" and any(s in episode.text for s in sampling.stop)

    def extend(
        self, meter: Meter, rows: Sequence[int], heads: Sequence[Episode | None], counts: Sequence[int], whole: bool
    ) -> list[list[Episode]]:
        """Sample continuations of the beginnings, of task ``rows[j]`` ``counts[j]`` of ``heads[j]``, by one step.

        Args:
            whole: to the end of the response instead.
        """
        asked = []
        for i, head, n in zip(rows, heads, counts, strict=True):
            sampling, used = meter.sampling, 0 if head is None else len(head.tokens)
            if whole:
                drawn = replace(sampling, max_tokens=sampling.max_tokens - used)
            else:
                drawn = replace(
                    sampling,
                    max_tokens=self.length(head, sampling),
                    stop=tuple(dict.fromkeys((*sampling.stop, *self.stop))),
                )
            left = meter.left(i)
            if left is not None:
                drawn = replace(drawn, max_tokens=max(1, min(drawn.max_tokens, left // max(n, 1))))
            prefix = () if head is None else tuple(int(t) for t in head.tokens)
            asked.append(Request(meter.tasks[i].prompt, n, drawn, int(meter.rng.integers(2**63)), prefix))
        found = meter.generate(rows, asked)
        return [
            [self.joined(h, e, meter.sampling, meter.engine) for e in many]
            for h, many in zip(heads, found, strict=True)
        ]

    def joined(self, head: Episode | None, rest: Episode, sampling: Sampling, engine: Engine) -> Episode:
        """Return a beginning with what goes on from it, as far as a stop of the response's own."""
        return rest if head is None else stopped(joined(head, rest, engine), sampling.stop, engine)
