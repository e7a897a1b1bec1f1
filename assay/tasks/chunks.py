"""A text in contiguous chunks that together are the text: the beginnings of a worked solution."""

from __future__ import annotations

import re

from assay.tasks.sentences import BLANK

SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")


def solution_chunks(text: str, chunks: int, cut: str | None = None) -> list[str]:
    """Cut a solution into contiguous chunks of about as many paragraphs each, or sentences where these are too few.

    Together they are the text, and none is blank. A line is a sentence too. Fewer chunks come back where there are
    fewer sentences.

    Args:
        text: the solution.
        chunks: at least 1.
        cut: a regular expression behind whose matches the text may be cut, in place of paragraphs and sentences.
    """
    pieces: list[str] = []
    for pattern in (BLANK, SENTENCES) if cut is None else (re.compile(cut),):
        pieces = _cut(text, pattern)
        if len(pieces) >= chunks:
            break
    n = min(chunks, len(pieces))
    return ["".join(pieces[len(pieces) * i // n : len(pieces) * (i + 1) // n]) for i in range(n)]


def _cut(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Cut behind each match; what is blank stays with what is before it, or after it at the start."""
    ends = [m.end() for m in pattern.finditer(text)]
    pieces: list[str] = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        piece = text[start:end]
        if pieces and (not piece.strip() or not pieces[-1].strip()):
            pieces[-1] += piece
        elif piece:
            pieces.append(piece)
    return pieces
