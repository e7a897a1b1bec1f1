"""A judge of an answer's sentences, as a scorer of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import ask, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.tasks.judging.sentence_labels import asked
from assay.types import Task
from assay.verify.grounding.sentence_labels import TEMPLATE, Label, read_labels


@dataclass(frozen=True, slots=True)
class SentenceJudge:
    """2 c_j - 1 of each step of a response: whether a judge, which says first whether the documents of the task,
    ``meta["documents"]``, say so, and gives a reason, calls it correct. ``None`` where it cannot be read.

    Args:
        engine: an engine, or the specification of one; greedy.
        max_tokens: of a reply.
        template: of the prompt, with ``{question}``, ``{documents}`` and ``{sentences}``.

    Raises:
        UsageError: no engine.

    Source: TRM (arXiv 2509.25409).
    """

    engine: Any
    max_tokens: int = 4096
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        if self.engine is None:
            raise UsageError("sentences need a judge: give an engine, such as judge = {name = ...}")
        object.__setattr__(self, "engine", judge_of(self.engine, "a judge of sentences"))

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float] | None]:
        """Return the score of each sentence of each response, 1 or -1; ``None`` where they cannot be had."""
        prompts = [asked(t.question, t.meta.get("documents"), s, self.template) for t, s in responses if s]
        replies = iter(ask(self.engine, prompts, Sampling(self.max_tokens, 0.0)))
        out: list[list[float] | None] = []
        for _, sentences in responses:
            labels: list[Label] | None = []
            if sentences:
                reply = next(replies)
                labels = None if reply.stop == "error" else read_labels(reply.text, len(sentences))
            out.append(None if labels is None else [2.0 * c - 1 for _, c in labels])
        return out
