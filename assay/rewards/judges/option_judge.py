"""A language model that chooses among letters, by their probabilities summed over several ways to ask."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from assay.engines.asking import filled, likeliest
from assay.engines.base import Engine


def option_chances(
    judge: Engine, instructions: Sequence[str], shown: Sequence[Mapping[str, str]], options: Sequence[str]
) -> list[np.ndarray | None]:
    """Return for each item the sum over instructions of the softmax over the options' first tokens, ``(options,)``.

        s_o = sum over instructions k of  p_k(o) / sum over options o' of p_k(o')

    An instruction after which none of the options is among the likeliest tokens says nothing; ``None`` where none says
    anything, as where the judge failed.

    Args:
        judge: an engine whose beam search has log-probabilities.
        instructions: templates.
        shown: of each item, what they are filled with.
        options: letters.

    Raises:
        RunError: the judge reports no log-probabilities.

    Source: KALMV (arXiv 2310.12836), its ensemble of instructions.
    """
    prompts = [filled(text, **item) for item in shown for text in instructions]
    found = [np.array([math.exp(said.get(o, -math.inf)) for o in options]) for said in likeliest(judge, prompts)]
    out: list[np.ndarray | None] = []
    for i in range(len(shown)):
        rows = [p / p.sum() for p in found[i * len(instructions) : (i + 1) * len(instructions)] if p.sum() > 0]
        out.append(np.sum(rows, axis=0) if rows else None)
    return out
