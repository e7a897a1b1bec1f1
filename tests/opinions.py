"""An engine that judges solutions as it is told to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.engines.base import Request
from assay.lab.settings.reasoning._words import Words
from assay.types import Episode

YES, NO, MUMBLE = r"so \boxed{True}", r"so \boxed{False}", "I cannot say"


class Opinions(Words):
    """Answers by the first word of the solution it is shown, with the replies given for it; ERROR is a failure."""

    def __init__(self, replies: dict[str, list[str]]):
        super().__init__()
        self.replies, self.asked = replies, []  # type: tuple[dict[str, list[str]], list[Request]]

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for r in requests:
            name = str(r.prompt).partition("Proposed solution:\n")[2].split()[0]
            row = [self.episode(r, [text]) for text in self.replies[name][: r.n]]
            out.append([_failed(e) if e.text == "ERROR" else e for e in row])
        return out


def _failed(e: Episode) -> Episode:
    return Episode(e.prompt, e.tokens, e.mask, None, YES, "error")
