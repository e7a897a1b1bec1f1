"""Running text in segments: sentences, lines or paragraphs."""

from __future__ import annotations

import re
from typing import Literal

Unit = Literal["sentence", "line", "paragraph"]

BLANK = re.compile(r"\n[^\S\n]*\n\s*")
_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[\"”’」』）]*")
# What a full stop shortens, and something always follows: titles, references, Latin.
_NEVER = re.compile(
    r"(?:^|[\s(\[\"“])(?:mr|mrs|ms|dr|prof|rev|hon|st|gen|col|capt|lt|sgt|gov|sen|rep|e\.g|i\.e|cf|vs|viz|approx|ca|"
    r"figs?|eqs?|secs?|chaps?|vols?|pp|nos?|refs?|eds?)\.$",
    re.IGNORECASE,
)
# Initials, and the numbers and letters of a list.
_INITIAL = re.compile(r"(?:^|[\s(\[.])[A-HJ-Z]\.$")
_ITEM = re.compile(r"(?:^|\n)\s*(?:\d{1,3}|[A-Za-z])\.$")


def segments(text: str, unit: Unit = "sentence") -> list[str]:
    """Return the segments of a text in order, none empty, white space within each reduced to single blanks.

    A blank line ends every segment. A sentence ends at ``.``, ``!``, ``?`` or ``…`` (and closing quotes and brackets)
    before white space, unless a small letter follows, the stop belongs to an abbreviation such as "Dr." or "e.g.", an
    initial or the number of a list; and at the full stops of Chinese and Japanese.
    """
    paragraphs = BLANK.split(text)
    if unit == "line":
        pieces = [line for p in paragraphs for line in p.splitlines()]
    elif unit == "sentence":
        pieces = [sentence for p in paragraphs for sentence in _sentences(p)]
    else:
        pieces = paragraphs
    return [plain for piece in pieces if (plain := " ".join(piece.split()))]


def _sentences(text: str) -> list[str]:
    found, start = [], 0
    for end in _END.finditer(text):
        if _ends(text, start, end):
            found.append(text[start : end.end()])
            start = end.end()
    return [*found, text[start:]]


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether a sentence that began at ``start`` is over after the mark ``end``."""
    if end.group()[0] in "。！？":
        return True
    after = re.compile(r"\s*[\"'“‘«(\[]*").match(text, end.end())
    assert after is not None
    if text[after.end() : after.end() + 1].islower():
        return False
    if end.group() != ".":
        return True
    # The longest abbreviation, and what stands before it, fit into the last characters; "-" stands for what is cut off.
    cut = max(start, end.end() - 12)
    tail = ("-" if cut > start else "") + text[cut : end.end()]
    return not any(pattern.search(tail) for pattern in (_NEVER, _INITIAL, _ITEM))
