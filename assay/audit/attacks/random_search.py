"""A text that a judge likes, found by changing one token at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Attributes:
        tokens: the text's.
        losses: of the text kept after each step, over as many items as it was judged on.
        items: how many those were.
    """

    tokens: tuple[int, ...]
    losses: tuple[float, ...]
    items: tuple[int, ...]


def random_search(
    losses: Callable[[Sequence[int], int], Sequence[float | None]],
    items: int,
    vocabulary: int,
    rng: np.random.Generator,
    *,
    length: int = 128,
    steps: int = 384,
    start: int = 0,
    first: int = 2,
    every: int = 16,
) -> Found:
    """Return tokens that make the mean loss over the items small.

    Each step replaces one token, at a random place, by a random one, and keeps that if the mean loss over the first M
    items is no larger than the best so far. M is ``first`` and grows by one every ``every`` steps, up to all items; the
    best so far is forgotten with each growth, so that the next change is kept whatever it does.

    Args:
        losses: of tokens, on each of the first M items; ``None`` where there is none, which is left out of the mean. A
            change for which nothing is left is as bad as can be.
        items, vocabulary: how many there are.
        length, steps: tokens, and changes that are tried.
        start: the token that all are at first.
        first, every: see above.

    Raises:
        UsageError: no item, or a number below 1.

    Source: "Cheating Automatic LLM Benchmarks" (arXiv 2410.07137), algorithm 1 and code.
    """
    if min(items, vocabulary, length, steps, first, every) < 1 or not 0 <= start < vocabulary:
        raise UsageError("a random search needs items, tokens, steps and a start among the tokens, each 1 or more")
    kept, best, m = [start] * length, math.inf, min(first, items)
    history: list[float] = []
    sizes: list[int] = []
    for step in range(steps):
        if step and step % every == 0 and m < items:
            m, best = m + 1, math.inf
        tried = list(kept)
        place = int(rng.integers(length))
        tried[place] = int(rng.integers(vocabulary))
        known = [x for x in losses(tried, m) if x is not None]
        loss = float(np.mean(known)) if known else math.inf
        if loss <= best:
            kept, best = tried, loss
        history.append(best)
        sizes.append(m)
    return Found(tuple(kept), tuple(history), tuple(sizes))
