"""Engines that say what they are told, one character a token, and what they were asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.registry import build
from assay.types import Ask, Episode, Group, Message, Task, Tool, Verdict

Answer = Callable[[list[dict[str, Any]], list[str]], str]
OPEN, CLOSE = "\x02", "\x03"


class Shared:
    """Beside an engine: that of one of several processes, which divide ``items`` and are all told what came of them."""

    divisions: int = 0

    def divided(self, items: Sequence[Any], work: Callable[[Sequence[Any], Any], list[Any]]) -> list[Any]:
        self.divisions += 1
        return [found for item in items for found in work([item], self)]


class Scripted:
    """Responses come from a list; continuations of a prefix from a function of its text.

    Args:
        responses: text and stop of each response without a prefix, in turn.
        answer: of the prefix's text; a text, or a text and the entropy of each of its tokens.
        entropies: whether they are reported.
    """

    def __init__(
        self,
        responses: Iterable[tuple[str, str]] = (),
        answer: Callable[[str], Any] = lambda prefix: "1",
        entropies: bool = True,
    ):
        self.responses, self.answer, self.entropies = iter(responses), answer, entropies
        self.asked: list[Request] = []

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([ord(c) for c in prompt], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return "".join(map(chr, tokens))

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            self.asked.append(request)
            row = []
            for _ in range(request.n):
                text, stop, uncertain = self._next(request)
                tokens = self.encode(text)
                prompt = np.concatenate([self.encode(request.prompt), np.array(request.prefix, dtype=np.int64)])
                told = np.full(len(tokens), uncertain, dtype=np.float32) if self.entropies else None
                row.append(Episode(prompt, tokens, tokens > 0, 0 * tokens.astype(np.float32), text, stop, told))
            out.append(row)
        return out

    def _next(self, request: Request) -> tuple[str, Any, float]:
        if not request.prefix:
            return *next(self.responses), 0.0
        found = self.answer(self.decode(request.prefix))
        text, uncertain = found if isinstance(found, tuple) else (found, 0.0)
        return text, "eos", uncertain


class Talking(Scripted):
    """Can be given tokens and be asked for the next turn of a conversation.

    Args:
        answer: from the messages so far, and the names of the tools, to what is said.
        window: tokens of a conversation.
    """

    def __init__(self, answer: Answer, window: int = 100_000):
        super().__init__()
        self.reply, self.window = answer, window

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        told = json.dumps([t.name for t in tools])
        return self.encode(told + "".join(map(_written, messages)) + f"{OPEN}assistant:")

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        return self.encode(CLOSE + "".join(map(_written, messages)) + f"{OPEN}assistant:")

    def encode(self, prompt: Any) -> np.ndarray:
        return prompt.ids if hasattr(prompt, "ids") else super().encode(prompt)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            self.asked.append(request)
            context = np.concatenate([self.encode(request.prompt), np.array(request.prefix, dtype=np.int64)])
            tools, *said = self.decode(context).split(OPEN)
            parts = [one.rstrip(CLOSE).partition(":") for one in said[:-1]]
            messages = [{"role": role, "content": content} for role, _, content in parts]
            text = self.reply(messages, json.loads(tools))[: request.sampling.max_tokens]
            tokens = self.encode(text)
            stop = "length" if len(text) == request.sampling.max_tokens else "eos"
            zeros = np.zeros(len(tokens), dtype=np.float32)
            out.append([Episode(context, tokens, tokens > 0, zeros, text, stop, zeros)])  # type: ignore[arg-type]
        return out


def _written(message: Message) -> str:
    return f"{OPEN}{message['role']}:{message['content']}{CLOSE}"


def judge(groups: Sequence[Group]) -> list[Group]:
    """A text that ends in 1 is right, one that ends in ? is not judged."""

    def verdict(text: str) -> Verdict:
        if text.endswith("?"):
            return Verdict.abstain("timed out")
        return Verdict.right() if text.endswith("1") else Verdict.wrong()

    return [g if g.verdicts else g.judged([verdict(e.text) for e in g.episodes]) for g in groups]


def ask(n: int, prompt: str = "Q:", reference: str = "1") -> Ask:
    return Ask(Task("t", prompt, reference), n)


class Told(Scripted):
    """Says what a function of the prompt's text and the number of the response says; ``prompts`` were asked."""

    def __init__(self, says: Callable[[str, int], str], goes_on: Callable[[str], Any] = lambda prefix: "1"):
        super().__init__((), goes_on)
        self.says = says

    @property
    def prompts(self) -> list[str]:
        return [str(request.prompt) for request in self.asked]

    def generate(self, requests: Sequence[Request]) -> list[list[Any]]:
        out = []
        for request in requests:
            texts = [self.says(str(request.prompt), i) for i in range(request.n)]
            if not request.prefix:
                self.responses = iter([(text, "eos") for text in texts])
            out += super().generate([request])
        return out


def operated(
    rollout: dict[str, Any], engine: Any, task: Task, n: int = 4, step: int = 0, steps: int = 10, **given: Any
) -> tuple[Group, Any]:
    """One group under a rollout in a run's step, and the rollout. Right is what ends in 1."""
    made = build(
        "rollout",
        rollout,
        **{"sampling": Sampling(40), "judge": judge, "progress": lambda: (step, steps), **given},
    )
    [group] = made.collect([Ask(task, n)], engine, np.random.default_rng(0))
    return group, made
