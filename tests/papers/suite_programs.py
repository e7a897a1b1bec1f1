"""What the tests of suite-writing papers share: a problem with right and wrong programs, and an engine that recites."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from assay.audit.suite.trials import Problem
from assay.engines.base import Request
from assay.types import Episode

LARGEST = "n = int(input())\na = list(map(int, input().split()))\nprint(max(a))\n"
PROBLEM = Problem("Given n and then n integers, print the largest. 1 <= n <= 5, -9 <= a_i <= 9.", LARGEST)
RIGHT = (
    LARGEST,
    "input()\na = sorted(map(int, input().split()))\nprint(a[-1])\n",
    "input()\nbest = -10\nfor x in map(int, input().split()):\n    if x > best:\n        best = x\nprint(best)\n",
)
FIRST = "input()\nprint(input().split()[0])\n"
LAST = "input()\nprint(input().split()[-1])\n"
ABOVE_ZERO = "input()\nb = 0\nfor x in map(int, input().split()):\n    b = max(b, x)\nprint(b)\n"
CRASHES = "n = int(input())\na = list(map(int, input().split()))\nif n == 5: raise ValueError\nprint(max(a))\n"
WRONG = (FIRST, LAST, ABOVE_ZERO, CRASHES)


class Scripted:
    """An engine that gives replies in turn, and keeps what it was asked. A reply may be made from the prompt."""

    def __init__(self, *replies: str | Callable[[str], str]):
        self.replies = iter(replies)
        self.asked: list[str] = []
        self.seeds: list[int] = []

    def encode(self, prompt: object) -> np.ndarray:
        return np.frombuffer(str(prompt).encode(), dtype=np.uint8).astype(np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: object) -> str:
        return bytes(np.asarray(tokens, dtype=np.uint8)).decode()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = []
        for request in requests:
            assert request.n == 1 and isinstance(request.prompt, str)
            self.asked.append(request.prompt)
            self.seeds.append(request.seed)
            reply = next(self.replies)
            text = reply if isinstance(reply, str) else reply(request.prompt)
            tokens = self.encode(text)
            mask, zero = np.ones(len(tokens), dtype=bool), np.zeros(len(tokens), dtype=np.float32)
            made.append([Episode(self.encode(request.prompt), tokens, mask, zero, text, "eos")])
        return made
