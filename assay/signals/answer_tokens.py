"""Which tokens of a response write its final answer."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.segments import decoder, token_ends
from assay.signals.base import Models
from assay.verify.answer.extract import SPANS, check_rules

RULES = ("answer_tag", "boxed")


@part("signal", "answer_tokens")
@dataclass(frozen=True, slots=True)
class AnswerTokens:
    r"""Signal ``answer_tokens`` ``(N, T)`` bool: the tokens with a character of the final answer in them.

    The rules are those of :func:`assay.verify.answer.extract.extract`, each narrowing what the one before it found; a
    response without any of their markers, or whose answer is blank, has no such token.

    Args:
        rules: ``answer_tag``, ``boxed``, ``hashes``, ``phrase`` or ``regex:PATTERN``.

    Raises:
        UsageError: a rule that does not exist.
    """

    rules: tuple[str, ...] = RULES

    def __post_init__(self) -> None:
        check_rules(self.rules, "signal 'answer_tokens'")
        if any(rule.startswith("json:") for rule in self.rules):
            raise UsageError("signal 'answer_tokens': a rule json: says what the answer is, but not where it stands")

    @property
    def name(self) -> str:
        return "answer_tokens"

    def __call__(self, batch: Batch, models: Models) -> Bool[Tensor, "N T"]:
        decode = decoder(models)
        out = torch.zeros(batch.tokens.shape, dtype=torch.bool)
        for row, episode in zip(out, batch.episodes, strict=True):
            first, end = answer_range(episode.tokens.tolist(), decode, self.rules)
            row[first:end] = True
        return out


def answer_place(text: str, rules: Sequence[str] = RULES) -> tuple[int, int] | None:
    """Return where the final answer starts and ends, without white space around it; ``None`` if there is none."""
    start, end, found = 0, len(text), False
    for rule in rules:
        if rule.startswith("regex:"):
            matches = list(re.finditer(rule[6:], text[start:end], re.DOTALL))
            places = [m.span(1 if m.re.groups else 0) for m in matches]
        else:
            places = [(span.start, span.end) for span in SPANS[rule](text[start:end])]
        if places and places[-1][0] >= 0:
            start, end, found = start + places[-1][0], start + places[-1][1], True
    if not found or not text[start:end].strip():
        return None
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())


def answer_range(
    tokens: Sequence[int], decode: Callable[[Sequence[int]], str], rules: Sequence[str] = RULES
) -> tuple[int, int]:
    """Return the range of tokens with a character of the final answer in them; empty if there is none."""
    place = answer_place(decode(tokens), rules)
    if place is None:
        return 0, 0
    ends, inner = token_ends(tokens, decode), range(len(tokens))
    # A token covers the text from where the one before it ends to where it ends itself.
    return bisect_right(inner, place[0], key=ends), min(bisect_left(inner, place[1], key=ends) + 1, len(tokens))
