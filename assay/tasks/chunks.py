"""A text in contiguous chunks that together are the text: beginnings of a worked solution, passages of a document."""

from __future__ import annotations

import re

from assay.tasks.sentences import BLANK

ENDS = (
    BLANK,
    re.compile(r"\n+"),
    re.compile(r"(?<=[.!?])\s+|(?<=[。！？])"),
    re.compile(r"(?<=[;；])\s*"),
    re.compile(r"(?<=[,，])\s*"),
    re.compile(r"\s+"),
)
"""Where a text is cut, best first: paragraphs, lines, sentences, their parts, words."""
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


def sized_chunks(text: str, most: int, level: int = 0) -> list[str]:
    """Cut a text into contiguous chunks of at most ``most`` characters, as few as neighbours can be put together to.

    Together they are the text. It is cut where :data:`ENDS` says, at the best of these places that make the pieces
    short enough, and within a word where there is none.

    Args:
        text: of a document.
        most: characters of a chunk, at least 1.
        level: places that are not to be used any more, from the best.
    """
    if len(text) <= most:
        return [text] if text else []
    if level == len(ENDS):
        return [text[i : i + most] for i in range(0, len(text), most)]
    out: list[str] = []
    for piece in _cut(text, ENDS[level]):
        for part in sized_chunks(piece, most, level + 1):
            if out and len(out[-1]) + len(part) <= most:
                out[-1] += part
            else:
                out.append(part)
    return out


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
