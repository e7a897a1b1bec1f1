"""What simulated engines share: words as tokens, and tasks whose solutions are numbers anyone can check."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.types import Episode, Stop

_WORD = re.compile(r"\S+\s*|\s+")
_ANSWER = re.compile(r"^(?:\[\d+\] )?#### (\d+)", re.MULTILINE)


class Words:
    """A vocabulary that grows: a token is a word with the white space after it."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []

    def encode(self, text: str) -> np.ndarray:
        """Return the token ids of a text."""
        out = []
        for word in _WORD.findall(text):
            if word not in self._ids:
                self._ids[word] = len(self._texts)
                self._texts.append(word)
            out.append(self._ids[word])
        return np.array(out, dtype=np.int64)

    def decode(self, tokens: Iterable[Any]) -> str:
        """Return the text of token ids."""
        return "".join(self._texts[int(t)] for t in tokens)

    def episode(self, request: Request, pieces: Iterable[str]) -> Episode:
        """Return the response that pieces make, cut after a stop string or the longest response."""
        text, stop = "", "eos"
        tokens = self.encode("")
        for piece in pieces:
            text += piece
            found = [
                m.end() for s in request.sampling.stop if (m := re.search(re.escape(s) + r"\S*", text)) is not None
            ]
            if found:
                text, stop = text[: min(found)], "stop"
            tokens = self.encode(text)
            if len(tokens) >= request.sampling.max_tokens:
                tokens, stop = tokens[: request.sampling.max_tokens], "length"
            if stop != "eos":
                break
        prompt = np.concatenate([self.encode(str(request.prompt)), np.array(request.prefix, dtype=np.int64)])
        reason: Stop = "stop" if stop == "stop" else "length" if stop == "length" else "eos"
        return Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, self.decode(tokens), reason)


def right_step(task: int, k: int) -> int:
    """Return the number that step ``k`` of a task should give."""
    return (task * 31 + k * 17) % 89 + 10


def right_answer(task: int, length: int) -> int:
    """Return the sum of a task's steps."""
    return sum(right_step(task, k) for k in range(length))


def answer_of(text: str) -> int | None:
    """Return the last answer that a text states."""
    found = _ANSWER.findall(text)
    return int(found[-1]) if found else None
