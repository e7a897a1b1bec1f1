"""Thousands, millions, lakhs and dozens after digits: ``2.5 million`` as ``2500000``."""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from assay.verify.math import tables


@functools.cache
def _scales() -> tuple[dict[str, int], re.Pattern[str]]:
    powers = tables.load("number_words")["scales"].items()
    scales = {word.replace("_", " "): 10 ** int(n) for n, words in powers for word in words.split()} | {"dozen": 12}
    names = "|".join(sorted(scales, key=len, reverse=True))
    digits = r"(?<![0-9.,])([0-9]{1,15}(?:,[0-9]{3}){0,5}(?:\.[0-9]{1,15})?)"
    return scales, re.compile(rf"{digits}\s?({names})s?\b", re.IGNORECASE)


def in_full(text: str) -> str:
    """Return ``text`` with every number before a scale written out, if that is an integer."""
    scales, pattern = _scales()

    def written(match: re.Match[str]) -> str:
        value = Fraction(match[1].replace(",", "")) * scales[match[2].lower()]
        return str(value) if value.denominator == 1 else match[0]

    return pattern.sub(written, text)
