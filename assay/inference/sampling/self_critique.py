"""A dialogue of a model with itself: it attempts, says as its teacher would what is wrong, and attempts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.engines.base import Conversing, Request, Sampling, can
from assay.engines.tokens import Tokens
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.registry import part
from assay.types import Episode, Message, Task


@dataclass(slots=True)
class Talk:
    """A dialogue so far: the tokens it begins with, those since, its attempts and what was said of them."""

    prompt: np.ndarray
    since: list[int] = field(default_factory=list)
    attempts: list[Episode] = field(default_factory=list)
    critiques: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.prompt) + len(self.since)


@part("inference", "self_critique")
@dataclass(frozen=True, slots=True)
class SelfCritique:
    """Attempts at a task until the model has nothing to say against one, or the budget is spent; the last one answers.

    The dialogue is, token for token, the one that environment ``attempts`` holds. After an attempt the model takes the
    user's part: the user's message is begun as the chat template begins it, and the model goes on. That is what it has
    learned to predict where S153 trains it with ``prediction``; nobody tells it the answer, here or there. What begins
    with ``accepts`` ends the dialogue, and so does saying nothing. ``meta["critiques"]`` has what was said.

    A budget counts attempts as responses, and the tokens of both parts.

    Args:
        sampling: of attempts.
        words: tokens of a critique, at most.
        accepts: what a critique begins with that finds nothing wrong.

    Raises:
        UsageError: ``words`` below 1; of an engine that cannot go on from tokens.

    Source: self-improvement without a teacher in arXiv 2602.16066.
    """

    sampling: Sampling = field(default_factory=Sampling)
    words: int = 128
    accepts: str = "right"

    def __post_init__(self) -> None:
        if self.words < 1:
            raise UsageError(f"inference 'self_critique': words {self.words} must be at least 1")

    def __call__(self, tasks: list[Task], engine: Any, budget: Budget | int, rng: np.random.Generator) -> list[Answer]:
        if not can(engine, Conversing) or getattr(engine, "by_messages", False):
            raise UsageError(
                f"strategy 'self_critique' takes both parts of a dialogue, and {type(engine).__name__} cannot go on "
                "from tokens; take hf or vllm"
            )
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        talks = [Talk(_opening(task, engine)) for task in tasks]
        critic = replace(self.sampling, max_tokens=self.words)
        going = [i for i in range(len(tasks)) if meter.may(i, 1)]
        while going:
            for i in going:
                meter.begun[i] += 1
            made = self._said(meter, talks, going, [talks[i].since for i in going])
            for i, said in zip(going, made, strict=True):
                talks[i].attempts.append(said)
                talks[i].since += said.tokens.tolist()
            going = [
                i
                for i in going
                if talks[i].attempts[-1].stop != "error"
                and meter.may(i, 1, self.words + self.sampling.max_tokens)
                and talks[i].size + self.words + self.sampling.max_tokens < engine.window
            ]
            around = [_around(engine, talks[i].attempts[-1]) for i in going]
            begun = [[*talks[i].since, *begin] for i, (begin, _) in zip(going, around, strict=True)]
            replies = self._said(meter, talks, going, begun, critic)
            for i, (_, end), reply in zip(tuple(going), around, replies, strict=True):
                text = (reply.text.partition(end)[0] if end else reply.text).strip()
                talks[i].critiques.append(text)
                if not text or reply.stop == "error" or text.lower().startswith(self.accepts.lower()):
                    going.remove(i)
                talks[i].since += _bridge(engine, talks[i].attempts[-1], text)
        return [
            meter.answer(i, talk.attempts[-1].text if talk.attempts else None, talk.attempts, critiques=talk.critiques)
            for i, talk in enumerate(talks)
        ]

    def _said(
        self,
        meter: Meter,
        talks: Sequence[Talk],
        rows: Sequence[int],
        since: Sequence[Sequence[int]],
        sampling: Sampling | None = None,
    ) -> list[Episode]:
        """Return what is said next in some dialogues, after what has been since they began; by default an attempt."""
        asked = [
            Request(
                # What a dialogue begins with is its task's prompt, which is not charged.
                Tokens(talks[i].prompt) if after else meter.tasks[i].prompt,
                1,
                sampling or meter.shortened(i),
                seed,
                tuple(after),
            )
            for i, after, seed in zip(rows, since, meter.rng.integers(2**63, size=len(rows)).tolist(), strict=True)
        ]
        return [said for [said] in meter.generate(rows, asked)]


def _opening(task: Task, engine: Any) -> np.ndarray:
    prompt = task.prompt
    messages = (Message(role="user", content=prompt),) if isinstance(prompt, str) else tuple(prompt)
    ids: np.ndarray = engine.opening(messages, ())
    return ids


def _bridge(engine: Any, attempt: Episode, text: str) -> list[int]:
    """Return the tokens between an attempt and the next, with what was said of it."""
    found: list[int] = engine.bridge((Message(role="user", content=text),), attempt.stop == "eos").tolist()
    return found


def _around(engine: Any, attempt: Episode) -> tuple[list[int], str]:
    """Return the tokens after an attempt that begin a user's message, and the text that ends one: what two messages of
    other words have in common."""
    one, two = (_bridge(engine, attempt, text) for text in ("0", "1"))
    begin = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
    rest = [a for a, b in zip(reversed(one[begin:]), reversed(two[begin:]), strict=False) if a == b]
    return one[:begin], str(engine.decode(rest[::-1])) if rest else ""
