"""A judge of pairs that likes responses by a score of their text, and perhaps the first place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.types import Episode

NOBODY = np.zeros(0, dtype=np.int64)


def characters(text: str) -> float:
    """A score that differs between short texts of an untrained model."""
    return (sum(map(ord, text)) % 7) / 2


class Prefers:
    """An engine: P(first) = sigmoid(score(first) - score(second) + bias), said by the names m and M of the answers.

    Args:
        score: of a text; ``None`` for one on which nothing can be read.
        bias: for the first place.
    """

    def __init__(self, score: Callable[[str], float | None] = characters, bias: float = 0.0):
        self.score, self.bias, self.asked = score, bias, list[str]()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            self.asked.append(str(request.prompt))
            first, second = (
                self.score(json.loads(f'"{text}"'))
                for text in re.findall(r'"output": """(.*?)"""}', str(request.prompt))
            )
            if first is None or second is None:
                out.append([self.said(2, 0.0)])
                continue
            gap = first - second + self.bias
            out.append([self.said(k, -math.log1p(math.exp(-g))) for k, g in ((0, gap), (1, -gap))])
        return out

    def said(self, token: int, logprob: float) -> Episode:
        tokens = np.array([token], dtype=np.int64)
        return Episode(NOBODY, tokens, tokens >= 0, np.array([logprob], dtype=np.float32), "", "length")

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(("m", " M", "?")[int(t)] for t in tokens)

    def encode(self, prompt: Any) -> np.ndarray:
        return NOBODY

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NOBODY
