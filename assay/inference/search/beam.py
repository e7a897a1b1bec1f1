"""Beam search over steps: the best-scored beginnings go on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.inference.scoring.base import Score
from assay.inference.scoring.scorers import as_scorer
from assay.inference.search.stepping import Stepping
from assay.registry import part
from assay.types import Episode, Task


@part("inference", "beam")
@dataclass(frozen=True, slots=True)
class Beam:
    """N beginnings at a time, N being the budget's samples; of each N the best N / ``branch`` are kept.

    From the prompt N first steps are sampled. Then again and again: the beginnings that are not whole responses yet are
    scored, the best max(1, n / branch) of n kept, and as many steps sampled after them, in equal shares, as there are
    places; a whole response keeps its place. The answer is the best-scored whole response; where tokens do not suffice
    for one, the best beginning, finished as far as they go. With ``branch`` 1 it is best-of-n.

    Source: the beam search over steps against a process reward model of arXiv 2408.03314.

    Args:
        scorer: of beginnings and of whole responses, see :func:`~assay.inference.scoring.scorers.as_scorer`.
        sampling: how tokens are drawn.
        branch: steps sampled after each kept beginning.
        stop, step: see :class:`~assay.inference.search.stepping.Stepping`.

    Raises:
        UsageError: ``branch`` or ``step`` below 1.
    """

    scorer: Any = "confidence"
    sampling: Sampling = field(default_factory=Sampling)
    branch: int = 4
    stop: tuple[str, ...] = ("\n",)
    step: int = 256

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorer", as_scorer(self.scorer))
        if self.branch < 1:
            raise UsageError(f"inference 'beam': branch {self.branch} must be at least 1")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling, self.scorer)
        stepping = Stepping(self.stop, self.step)
        places = meter.samples
        live: list[list[tuple[Episode | None, Score]]] = [[(None, Score(None))] for _ in tasks]
        whole: list[list[tuple[Episode, Score]]] = [[] for _ in tasks]
        missed = [0] * len(tasks)
        while True:
            rows: list[int] = []
            heads: list[Episode | None] = []
            counts: list[int] = []
            for i, beginnings in enumerate(live):
                n = min(places - len(whole[i]), self._affordable(meter, stepping, i, beginnings))
                if not beginnings or n < 1:
                    continue
                kept = _top(beginnings, max(1, n // self.branch))
                shares = [n // len(kept) + (k < n % len(kept)) for k in range(len(kept))]
                rows += [i] * len(kept)
                heads += [head for head, _ in kept]
                counts += shares
                meter.begun[i] = places
            if not rows:
                break
            found = stepping.extend(meter, rows, heads, counts, whole=False)
            each = [i for i, many in zip(rows, found, strict=True) for _ in many]
            grown = [e for many in found for e in many]
            scores = meter.score(each, grown)
            for i in set(rows):
                live[i] = []
            for i, episode, score in zip(each, grown, scores, strict=True):
                missed[i] += score.value is None
                (whole if stepping.done(episode, self.sampling) else live)[i].append((episode, score))
        self._finish(meter, stepping, live, whole)
        out = []
        for i in range(len(tasks)):
            known = [(e, s) for e, s in [*whole[i], *([] if whole[i] else live[i])] if e is not None]
            [(episode, score)] = _top(known, 1)
            meta = {"score": score.value, "whole": len(whole[i]), "unscored": missed[i]}
            out.append(meter.answer(i, episode.text, [e for e, _ in known], **meta))
        return out

    def _finish(
        self,
        meter: Meter,
        stepping: Stepping,
        live: list[list[tuple[Episode | None, Score]]],
        whole: list[list[tuple[Episode, Score]]],
    ) -> None:
        """Go on with the best beginning of each task that has no whole response, without opinions of it."""
        rows = [i for i, found in enumerate(whole) if live[i] and not found and meter.left(i)]
        best = [_top(live[i], 1)[0] for i in rows]
        ends = stepping.extend(meter, rows, [head for head, _ in best], [1] * len(rows), whole=True)
        for i, (_, score), [end] in zip(rows, best, ends, strict=True):
            live[i] = [(end, score)]

    def _affordable(self, meter: Meter, stepping: Stepping, i: int, live: list[tuple[Episode | None, Score]]) -> int:
        """Return how many next steps the tokens that are left pay for, scoring included."""
        left = meter.left(i)
        if left is None or not live:
            return meter.samples
        longest = max((0 if e is None else len(e.tokens) for e, _ in live), default=0)
        step = min(self.step, self.sampling.max_tokens - longest)
        cost = step + self.scorer.most(meter.tasks[i], longest + step, meter.engine)
        return max(left // cost, 0 if meter.spent[i] else 1)


def _top(found: list[tuple[Any, Score]], n: int) -> list[tuple[Any, Score]]:
    """Return the ``n`` best-scored, the first of equals; what has no score comes last."""
    return sorted(found, key=lambda pair: math.inf if pair[1].value is None else -pair[1].value)[:n]
