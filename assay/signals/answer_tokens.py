"""Which tokens of a response write its final answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.signals.steps import decoder, token_ends
from assay.types import Task
from assay.verify.answer.extract import check_rules
from assay.verify.answer.place import marked
from assay.verify.answer.spans import Span

Locate = Callable[[Task, str], Span | None]


@part("signal", "answer_tokens")
@dataclass(frozen=True, slots=True)
class AnswerTokens:
    r"""Signal ``answer_tokens`` ``(N, T)`` bool: the tokens with a character of the final answer in them.

    The answer stands where the task's verifier reads it. ``rules`` say otherwise: those of
    :func:`assay.verify.answer.extract.extract`, each narrowing what the one before it found. A response without an
    answer there, or with a blank one, has no such token.

    Args:
        rules: ``answer_tag``, ``boxed``, ``hashes``, ``phrase`` or ``regex:PATTERN``; ``None`` asks the verifier.

    Raises:
        UsageError: a rule that does not exist.
    """

    rules: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        rules = self.rules or ()
        check_rules(rules, "signal 'answer_tokens'")
        if any(rule.startswith("json:") for rule in rules):
            raise UsageError("signal 'answer_tokens': a rule json: says what the answer is, but not where it stands")

    @property
    def name(self) -> str:
        return "answer_tokens"

    def __call__(self, batch: Batch, models: Models) -> Bool[Tensor, "N T"]:
        decode = decoder(models)
        out = torch.zeros(batch.tokens.shape, dtype=torch.bool)
        for row, episode, task in zip(out, batch.episodes, batch.tasks, strict=True):
            first, end = answer_range(episode.tokens.tolist(), decode, self.place(task, models.answer))
            row[first:end] = True
        return out

    def place(self, task: Task, answer: Locate) -> Callable[[str], Span | None]:
        """Return what finds the answer to a task in a text; ``answer`` is the verifier's word on it."""
        if self.rules is None:
            return lambda text: answer(task, text)
        rules = self.rules
        return lambda text: marked(text, rules, "none")


def answer_range(
    tokens: Sequence[int], decode: Callable[[Sequence[int]], str], find: Callable[[str], Span | None]
) -> tuple[int, int]:
    """Return the range of tokens with a character of the final answer in them; empty if there is none.

    Args:
        tokens, decode: the response.
        find: where the answer stands in its text, see :meth:`AnswerTokens.place`.
    """
    place = find(decode(tokens))
    if place is None:
        return 0, 0
    ends, inner = token_ends(tokens, decode), range(len(tokens))
    # A token covers the text from where the one before it ends to where it ends itself.
    return bisect_right(inner, place.start, key=ends), min(bisect_left(inner, place.end, key=ends) + 1, len(tokens))


def opened(task: Task, text: str, open: str | None, close: str, models: Models) -> Span | None:
    """Return where a response has its answer: where the verifier reads it, or with ``open`` after the last one.

    An answer that no ``close`` ends after such an ``open`` has ``end == -1``.
    """
    if open is None:
        return models.answer(task, text)
    where = text.rfind(open)
    if where < 0:
        return None
    begins = where + len(open)
    stops = text.find(close, begins) if close else -1
    return Span(where, begins, stops, stops + len(close) if stops >= 0 else -1)
