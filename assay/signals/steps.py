"""Where the steps of a response begin and end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies.tabular import text_of
from assay.signals.base import Models
from assay.types import Episode, Span

By = Literal["blank_line", "newline", "sentence", "step", "tag", "fixed", "whole"]
Decode = Callable[[Sequence[int]], str]

BLANK = re.compile(r"\n[^\S\n]*\n\s*")
NEWLINE = re.compile(r"\n\s*")
HEADING = re.compile(r"^[ \t]*[#>*_]*[ \t]*(?:step|Step|STEP)[ \t]*\d+", re.MULTILINE)
SENTENCE = re.compile(r"(?:[.!?]+[\"')\]*]*(?=\s|$)|[。！？])\s*")
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|Fig|Figs|Eq|Eqs|No|Dr|Mr|Mrs|Ms|St)|^\s*(?:\d+|[A-Za-z]))\.$")


@dataclass(frozen=True, slots=True)
class Steps:
    """Signal ``steps`` ``(N, T)`` int64: the step that each token of a response belongs to, from 0; -1 outside.

    Where an episode brings spans of kind ``step``, those are its steps. Else a response is cut by its text; separators
    belong to the step they end, a token over a border to the step it begins in, and pieces of white space to the step
    before them.

    Args:
        by: ``blank_line``; ``newline``; ``sentence`` (ends with . ! or ? before white space, known abbreviations and
            numbers of lists aside, or with a full stop of Chinese or Japanese); ``step`` (begins with a line "Step 3",
            which may be a heading or bold); ``tag`` (ends with ``</tag>``); ``fixed`` (every ``size`` tokens);
            ``whole`` (the response is one step).
        size: tokens of a ``fixed`` step.
        tag: name of the tag.

    Raises:
        UsageError: ``size`` below 1, or a ``tag`` that is no name.
    """

    by: By = "blank_line"
    size: int = 32
    tag: str = "step"

    def __post_init__(self) -> None:
        if self.size < 1 or not re.fullmatch(r"[\w:.-]+", self.tag):
            raise UsageError(
                f"steps: size {self.size} must be at least 1, and tag {self.tag!r} a name without brackets"
            )

    @property
    def name(self) -> str:
        return "steps"

    def __call__(self, batch: Batch, models: Models) -> Int[Tensor, "N T"]:
        decode = decoder(models)
        out = torch.full(batch.tokens.shape, -1, dtype=torch.int64)
        for row, episode in zip(out, batch.episodes, strict=True):
            for k, span in enumerate(self.of(episode, decode)):
                row[span.start : span.end] = k
        return out

    def of(self, episode: Episode, decode: Decode) -> tuple[Span, ...]:
        """Return the steps of an episode: its own spans of this kind if it has any, else those of :meth:`spans`."""
        own = tuple(span for span in episode.spans if span.kind == "step")
        return own or self.spans(episode.tokens.tolist(), decode)

    def spans(self, tokens: Sequence[int], decode: Decode) -> tuple[Span, ...]:
        """Return spans of kind ``step`` that together cover all of ``tokens``; none of them is empty."""
        if self.by == "fixed":
            borders = [*range(0, len(tokens), self.size), len(tokens)]
        else:
            ends = token_ends(tokens, decode)
            inner = [bisect_left(range(len(tokens)), c, key=ends) + 1 for c in self.cuts(decode(tokens))]
            borders = [0, *inner, len(tokens)]
        marks = sorted({b for b in borders if 0 <= b <= len(tokens)})
        return tuple(Span("step", a, b) for a, b in pairwise(marks))

    def cuts(self, text: str) -> list[int]:
        """Return the places within ``text`` at which one step ends and the next begins."""
        if self.by == "blank_line":
            found = [m.end() for m in BLANK.finditer(text)]
        elif self.by == "newline":
            found = [m.end() for m in NEWLINE.finditer(text)]
        elif self.by == "sentence":
            lines = ((m, text[text.rfind("\n", 0, m.start()) + 1 : m.start() + 1]) for m in SENTENCE.finditer(text))
            found = [m.end() for m, line in lines if not ABBREVIATION.search(line)]
        elif self.by == "step":
            found = [m.start() for m in HEADING.finditer(text)]
        elif self.by == "whole":
            return []
        else:
            found = [m.end() for m in re.finditer(rf"</{re.escape(self.tag)}\s*>\s*", text)]
        kept, start = [], 0
        for cut in found:
            # White space alone is no step.
            if text[start:cut].strip() and text[cut:].strip():
                kept.append(cut)
                start = cut
        return kept


def token_ends(tokens: Sequence[int], decode: Decode) -> Callable[[int], int]:
    """Return a function that says how many characters of the text stand before the end of a token."""
    pieces = {t: decode([t]) for t in set(tokens)}
    if "".join(pieces[t] for t in tokens) == decode(tokens):
        ends: list[int] = np.cumsum([len(pieces[t]) for t in tokens], dtype=np.int64).tolist()
        return ends.__getitem__
    # Some token's text depends on what stands before it, such as a part of a character.
    return lambda k: len(decode(tokens[: k + 1]))


def decoder(models: Models) -> Decode:
    """Return how the policy reads tokens; paths, where it is no language model."""
    return getattr(models.policy, "decode", text_of)


def step_texts(episode: Episode, steps: Sequence[Span], decode: Decode) -> list[str]:
    """Return the text of each step."""
    tokens = episode.tokens.tolist()
    return [decode(tokens[span.start : span.end]) for span in steps]
