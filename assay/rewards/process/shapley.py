"""What each piece of a response is worth: its share of the whole's score, told from scores of some of its pieces."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.rewards.function import load_function
from assay.signals.base import Models
from assay.signals.steps import Decode, Steps, decoder
from assay.types import Episode, Task, Verdict
from assay.verify.kind import KindVerifier

Form = Literal["shapley", "owen", "prefix"]
Score = Callable[[Sequence[tuple[Task, str]]], list[float | None]]


@dataclass(frozen=True)
class Shares:
    """Signal ``shares`` ``(N, T)``: phi_k on the last learnable token of piece k of a response, zero on the others.

    With v(S) the score of the text that the pieces in S make in their order, v() = 0, and n pieces:

    - ``shapley``: phi_k = sum over S without k of |S|! (n - |S| - 1)! / n! (v(S + k) - v(S)), the mean of what k adds
      over all orders in which the pieces may come;
    - ``owen``: the same over those orders alone that keep together each half of the response, each half of these, and
      so on, which takes about n^2 scores instead of 2^n;
    - ``prefix``: phi_k = v(1..k) - v(1..k-1), differences of a potential.

    In each the shares of a response add up to v of all its pieces. ``shapley`` is ``owen`` for more than ``exact``
    pieces. NaN on all tokens of a response where some score could not be told, or the verifier abstained.

    Source: L. S. Shapley (1953); G. Owen (1977); SCAR (arXiv 2505.20417) for their use as rewards.

    Args:
        score: v:

            - ``verifier``: the score of the verifier that the task's kind names; of the whole response, its verdict's;
            - a verifier, whose method ``verdicts`` (many at a time) is used where it has one; or a function, or
              ``path/to/file.py:name``: ``score(task, text)`` returns a number, a verdict, or ``None``.
        pieces: how a response is cut. A piece without a learnable token is a part of the next one.
        form: see above.
        exact: pieces up to which ``shapley`` is exact, at most 12: n pieces take 2^n - 1 scores.
        most: pieces a response is cut into; neighbours are joined beyond.

    Raises:
        UsageError: limits out of range, or nothing to score by.
        RunError: while scoring, a score that is not finite.
    """

    score: Any = "verifier"
    pieces: Steps = field(default_factory=lambda: Steps("sentence"))
    form: Form = "shapley"
    exact: int = 6
    most: int = 16

    name = "shares"

    def __post_init__(self) -> None:
        if not 0 <= self.exact <= 12 or self.most < 1:
            raise UsageError(f"shares: exact {self.exact} must be in [0, 12] and most {self.most} at least 1")
        # Made now, so that a name that stands for nothing is known before the run.
        assert self._score is not None

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        decode = decoder(models)
        out = torch.zeros_like(batch.logprobs)
        rows, asked = [], dict[tuple[int, str], tuple[Task, str]]()
        for i, (task, episode, verdict) in enumerate(zip(batch.tasks, batch.episodes, batch.verdicts, strict=True)):
            borders = self.borders(episode, decode)
            count = len(borders) - 1
            if self.score == "verifier" and verdict.passed is None:
                out[i] = math.nan
            elif count > 0:
                form = "owen" if self.form == "shapley" and count > self.exact else self.form
                coalitions, weights = game(form, count)
                whole = verdict.score if self.score == "verifier" else None
                texts = [part_of(episode, borders, s, decode) for s in coalitions]
                rows.append((i, borders, coalitions, weights, texts, whole))
                full = (1 << count) - 1
                wanted = (t for s, t in zip(coalitions, texts, strict=True) if whole is None or s != full)
                asked |= {(id(task), text): (task, text) for text in wanted}
        known = dict(zip(asked, self._score(list(asked.values())), strict=True))
        for i, borders, coalitions, weights, texts, whole in rows:
            full = coalitions[-1]
            found = [
                whole if whole is not None and s == full else known[id(batch.tasks[i]), text]
                for s, text in zip(coalitions, texts, strict=True)
            ]
            told = [v for v in found if v is not None]
            if len(told) < len(found):
                out[i] = math.nan
                continue
            for (a, b), share in zip(pairwise(borders), weights @ np.asarray(told), strict=True):
                out[i, a + int(np.flatnonzero(batch.episodes[i].mask[a:b])[-1])] = share
        return out

    @functools.cached_property
    def _score(self) -> Score:
        return score_of(self.score)

    def borders(self, episode: Episode, decode: Decode) -> list[int]:
        """Return where the pieces of a response begin, and the last one's end; nothing if there is nothing to learn."""
        spans = self.pieces.of(episode, decode)
        ends = [span.end for span in spans]
        kept: list[int] = [0]
        for end in ends:
            if episode.mask[kept[-1] : end].any():
                kept.append(end)
        if len(kept) == 1:
            return []
        kept[-1] = len(episode.tokens)
        count = len(kept) - 1
        if count > self.most:
            kept = [kept[k * count // self.most] for k in range(self.most + 1)]
        return kept


def part_of(episode: Episode, borders: Sequence[int], coalition: int, decode: Decode) -> str:
    """Return the text of the pieces whose bits are set in ``coalition``."""
    chosen = [range(a, b) for k, (a, b) in enumerate(pairwise(borders)) if coalition >> k & 1]
    return decode([int(episode.tokens[t]) for places in chosen for t in places])


@functools.lru_cache(maxsize=64)
def game(form: Form, count: int) -> tuple[list[int], np.ndarray]:
    """Return the coalitions to score, as bit masks in rising order without the empty one, and ``weights`` ``(n, M)``.

    phi = weights @ v of the coalitions. The last coalition is that of all pieces.
    """
    weights: dict[int, np.ndarray] = {}
    for piece, before, weight in marginals(form, count):
        for coalition, sign in ((before | 1 << piece, 1.0), (before, -1.0)):
            weights.setdefault(coalition, np.zeros(count))[piece] += sign * weight
    weights.pop(0, None)
    coalitions = sorted(weights)
    return coalitions, np.stack([weights[s] for s in coalitions], axis=1)


def marginals(form: Form, count: int) -> Iterator[tuple[int, int, float]]:
    """Yield each piece, a set of pieces (bit mask) that may come before it, and how often it is that set."""
    if form == "prefix":
        yield from ((k, (1 << k) - 1, 1.0) for k in range(count))
    elif form == "owen":
        yield from _nested(0, count, [0])
    else:
        for k in range(count):
            for before in range(1 << count):
                if not before >> k & 1:
                    size = before.bit_count()
                    yield k, before, 1 / (count * math.comb(count - 1, size))


def _nested(low: int, high: int, contexts: list[int]) -> Iterator[tuple[int, int, float]]:
    """The orders in which either half of pieces ``low`` to ``high`` comes first; ``contexts`` is what comes before."""
    if high - low == 1:
        yield from ((low, context, 1 / len(contexts)) for context in contexts)
        return
    middle = (low + high) // 2
    left, right = ((1 << b) - (1 << a) for a, b in ((low, middle), (middle, high)))
    yield from _nested(low, middle, [c | other for c in contexts for other in (0, right)])
    yield from _nested(middle, high, [c | other for c in contexts for other in (0, left)])


def score_of(spec: Any) -> Score:
    """Return what scores many texts at once, from a specification as in :class:`Shares`."""
    if spec == "verifier":
        spec = KindVerifier()
    elif isinstance(spec, str):
        spec = load_function(spec)
    many = getattr(spec, "verdicts", None)
    if many is None and not callable(spec):
        raise UsageError(f"shares: texts are scored by a verifier or a function score(task, text), not {spec!r}")

    def score(pairs: Sequence[tuple[Task, str]]) -> list[float | None]:
        found = many(pairs) if many is not None else [spec(task, text) for task, text in pairs]
        return [_number(value, task) for value, (task, _) in zip(found, pairs, strict=True)]

    return score


def _number(value: Any, task: Task) -> float | None:
    if isinstance(value, Verdict):
        return None if value.passed is None else value.score
    if value is None:
        return None
    if not math.isfinite(value):
        raise RunError(f"shares: the score of a part of a response to task {task.id} is {value!r}")
    return float(value)
