"""The words of a text, and whether they are the question's own or known from a list, units and numbers."""

from __future__ import annotations

import functools
import re

from assay.verify.math.foreign_doubt import prose
from assay.verify.math.units import lookup
from assay.verify.math.words import number_words

_WORD = re.compile(r"(?<![\\\w])[A-Za-z]+(?:['’][a-z][A-Za-z]*)*")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{([^{}]*)\}")


def unknown(text: str, lexicon: frozenset[str], asked: frozenset[str]) -> str | None:
    """Return the first word of a text that is neither in a list nor of the question, a unit or a number."""
    for word in spoken(text):
        if (len(word) < 3 and word not in ("up", "if")) or word in lexicon or is_asked(word, asked):
            continue
        if lookup(word) is None and number_words(word) is None:
            return word
    return None


def spoken(text: str) -> list[str]:
    """The words of a text outside its formulas, in small letters; names in capitals alone are left out."""
    text = _ABBREVIATED.sub(" ", text)
    plain = prose(_TEXT.sub(r" \1 ", text)) if any(map(text.__contains__, "$\\{<")) else text
    return [match.group().casefold().replace("’", "'") for match in _WORD.finditer(plain)]


_ABBREVIATED = re.compile(r"(?<![A-Za-z\\])(?!NOT\b|OLD\b|NO\b|WAS\b)[A-Z]{1,4}(?![A-Za-z'’])")


def is_asked(word: str, asked: frozenset[str]) -> bool:
    """Say whether the question, of which ``asked`` are the :func:`stems`, has a word in this or another inflection."""
    return len(word) > 2 and word[:_STEM] in asked


def all_asked(words: str, asked: frozenset[str]) -> bool:
    """Say whether the question has all the longer of some words, and there are any."""
    long = [word for word in spoken(words) if len(word) > 3]
    return bool(long) and all(is_asked(word, asked) for word in long)


_STEM = 5


@functools.lru_cache(256)
def stems(text: str) -> frozenset[str]:
    """The first letters of a text's words, by which they are known in other inflections."""
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()) if len(word) > 2)


__all__ = ["all_asked", "is_asked", "spoken", "stems", "unknown"]
