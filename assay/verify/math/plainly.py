# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""What the last sentence of a plain English statement ends in: ``64 = 2^6, so x + 1 = 6 and x = 5.``

Where every word of a sentence belongs to plain statements, and none denies, doubts or opposes anything, the value at
its end is its answer, whatever it says before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.verify.math.english import known_words, plain_words
from assay.verify.math.foreign_doubt import prose
from assay.verify.math.frames import is_foreign
from assay.verify.math.read import read
from assay.verify.math.values import Text

MAX_LENGTH = 400
_ENDS = re.compile(r"(?<=[a-z0-9)$*}\]][.!])\s+(?=[A-Z0-9$\\*(])|\n+")
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_OPPOSING = frozenset(
    "not no nor neither none without if whether or but would can could may might should until unless however although "
    "though instead rather wait other another only than versus between under over above below least most about around "
    "nearly almost roughly what who why how try first start starts started starting begin begins example "
    "minus plus times actually let suppose possible question same unlike different don doesn isn aren wouldn".split()
)
_STATED = re.compile(
    r"(?:\b(?:is|are|was|were|equals?|gives?|yields?|confirms?|leaves?|makes?|have|has|had|gets?|got|needs?|costs?|takes?|"
    r"pays?|earns?|becomes?|remain|obtain|find|thus|so|hence|therefore|totals?|lasts?|left with|arrived? at|"
    r"(?:comes?|amounts?|equal|adds up|works out|reduces?|simplif(?:y|ies)|leads?) to)|"
    r"\b(?:in short|in total|in all|in conclusion|in the end|to summari[sz]e|altogether|so|hence|thus|therefore),|"
    r"(?<![0-9] ):|[=→⇒]|=>|\band(?=\s+\$?[a-zA-Z]\s?=))\s+\**$",
    re.IGNORECASE,
)
_PLACES = re.compile(r"(?<=\s)(?=[$\\\w(\[{*√π−+-])")
_IN_THE_END = re.compile(
    r",? (?:in the end|in total|in all|altogether|overall|as claimed|as required|exactly)(?=[.!]*$)"
)


def plainly(text: str, question: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before a value that ends a plain statement, and the value; the longest first.

    Args:
        text: what may hold the statement; its last sentence is looked at.
        question: its words are known.
    """
    if len(text) > MAX_LENGTH or "?" in text or "≠" in text or "\\ne" in text:
        return
    sentences = [piece for piece in _ENDS.split(text.strip()) if piece.strip()]
    if not sentences:
        return
    sentence = _IN_THE_END.sub("", sentences[-1].strip()).rstrip(".! ")
    if is_foreign(sentence) or not _plain(sentence, question):
        return
    for place in _PLACES.finditer(sentence):
        before, value = sentence[: place.start()], sentence[place.start() :].strip(" *")
        if _STATED.search(before) is None:
            continue
        readings = read(value)
        if readings and not isinstance(readings[0], Text):
            yield before, value


def _plain(sentence: str, question: str) -> bool:
    words = [match.group() for match in _LETTERS.finditer(prose(sentence))]
    return bool(words) and all(
        word.lower() not in _OPPOSING
        and (len(word) < 3 or word.lower() in plain_words() or word[0].isupper() or known_words(word, question))
        for word in words
    )
