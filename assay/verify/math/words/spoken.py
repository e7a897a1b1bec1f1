r"""Arithmetic in words: ``ten times the square root of six`` as ``10 * √6``, ``two to the tenth`` as ``2 ^{10}``."""

from __future__ import annotations

import functools
import re

from assay.verify.math import tables
from assay.verify.math.words.number_words import NUMBER_WORDS, in_digits, ordinal

_RANKS = ("st", "nd", "rd", "th", "ond", "ird")
_POWER = re.compile(r"\bto the ((?:[a-z]{3,12}[- ]){0,2}[a-z]{3,12}(?:[snr][td]|th))(?: power)?\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{2,}")


@functools.cache
def _rules() -> tuple[frozenset[str], frozenset[str], tuple[tuple[re.Pattern[str], str], ...]]:
    """All words of formulas, those that stay in one, and what takes the place of the others."""
    table = tables.load("formula_words")
    symbols = frozenset(table["symbols"].split())
    rules = tuple((re.compile(pattern, re.IGNORECASE), symbol) for pattern, symbol in table["rules"])
    return NUMBER_WORDS | symbols | frozenset(table["vocabulary"].split()), symbols, rules


def spoken(text: str) -> str | None:
    """Return the formula that ``text`` says in words, ``None`` if it holds other words or says none."""
    vocabulary, symbols, rules = _rules()
    words = _WORDS.findall(text.casefold()) if len(text) <= 200 else []
    if not words or not all(word in vocabulary or word.endswith(_RANKS) for word in words):
        return None
    formula = in_digits(_POWER.sub(lambda m: f"to the power of {ordinal(m[1]) or m[1]}", text))
    for pattern, symbol in rules:
        formula = pattern.sub(symbol, formula)
    formula = formula.strip()
    return None if formula == text or any(w not in symbols for w in _WORDS.findall(formula.casefold())) else formula
