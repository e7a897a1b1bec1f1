"""Remarks, offers and wishes behind the statement of an answer, and where they begin.

``Here's why: ...``, ``(If order mattered, there would be 720.)``, ``Would you like to see an example?`` Only what is
understood is taken off; the statement before it then has to stand by itself as the end of the response.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.math.asides import MAX_LENGTH, WHOLE, remark
from assay.verify.math.courtesy import courteous, without_pictures
from assay.verify.math.figures import consistent, true_sums
from assay.verify.math.foreign_doubt import retracted
from assay.verify.math.frames import is_foreign
from assay.verify.math.remark_words import harmless_words
from assay.verify.math.tails import without_tail
from assay.verify.math.withdrawal import HARD

_UNITS = re.compile(r"(?<=[.!?])[)*_\"]{0,3}\s+(?=[^\sa-z0-9])|(?<=[.!?。])\s*(?=[(（])|(?<=[。！？।؟])|\n+")
_BLOCK = re.compile(
    r"(?:(?<=[.!?*)])\s+|\n+)[*_(]{0,3}(?:here(?:['’]s| is) (?:why|how|the reason)|why|reason(?:ing)?"
    r"|calculation|explanation|how it works)[*_]{0,2}\s?[:?][*_]{0,2}\s+",
    re.IGNORECASE,
)
MAX_REMARKS = 4
MAX_TAIL = 900


def last_sentence(text: str) -> str:
    """The last sentence of ``text``."""
    kept = text.rstrip()
    ends = [m.end() for m in _UNITS.finditer(kept, max(len(kept) - MAX_TAIL, 0)) if m.end() < len(kept)]
    return kept[ends[-1] :] if ends else kept[-MAX_TAIL:]


def without_remarks(text: str, question: str, closing: Callable[[str, str], bool]) -> str | None:
    """``text`` without the remarks, offers, wishes and pictures at its end, ``None`` where it ends in none.

    Args:
        text: a response.
        question: what is asked.
        closing: tells of further sentences that they add nothing.
    """
    whole = text.rstrip()
    kept = without_pictures(whole)
    found = kept != whole
    block = list(_BLOCK.finditer(kept, max(len(kept) - MAX_TAIL, 0)))
    if block and _block(kept[block[-1].end() :], kept[: block[-1].start()], question):
        return without_pictures(kept[: block[-1].start()])
    for _ in range(MAX_REMARKS):
        place = _last_unit(kept)
        if place is None:
            break
        last, before = kept[place:], kept[:place].rstrip()
        if not before:
            break
        if courteous(last) or remark(last, last_sentence(before), question, before):
            found = True
        elif not closing(last, question):
            break
        kept = without_pictures(before)
    return without_tail(kept, question) or (kept if found else None)


def _last_unit(text: str) -> int | None:
    """Where the last sentence begins, or the brackets that hold it."""
    said = text.rstrip(" .!*_")
    if said.endswith(")") and not said.endswith("\\)"):
        depth = 0
        for place in range(len(said) - 1, max(len(said) - MAX_LENGTH, 0), -1):
            depth += {")": 1, "(": -1}.get(said[place], 0)
            if depth == 0:
                front = text[:place].rstrip(" \t*_")
                if front.endswith((".", "!", "?", "\n", ")")):
                    return place
                break
    ends = [m.end() for m in _UNITS.finditer(text, max(len(text) - MAX_TAIL, 0)) if m.end() < len(text)]
    return ends[-1] if ends else None


def _block(told: str, before: str, question: str) -> bool:
    """Say whether all sentences of an explanation are understood."""
    pieces = [piece for piece in _UNITS.split(told) if piece.strip()]
    if not pieces or not WHOLE.search(told.rstrip()) or HARD.search(told) or retracted(told) or is_foreign(told):
        return False
    statement = last_sentence(before)
    for piece in pieces:
        plainly = re.sub(r"does not matter|doesn['’]t matter", " ", piece).strip()
        if remark(piece, statement, question, before):
            continue
        if _SUMS_UP.search(plainly) or not harmless_words(plainly, f"{question} {statement}"):
            return False
        if not consistent(plainly, statement, before, question):
            return False
    return len(told.split()) > 3 or true_sums(told)


_SUMS_UP = re.compile(
    r"\b(?:so|thus|hence|therefore|total|altogether|sum|in all)\b|^\W*(?:it|this|that|you|we've)\b", re.IGNORECASE
)
