"""Thousands, millions, lakhs and dozens after digits: ``2.5 million`` as ``2500000``."""

from __future__ import annotations

import re
from fractions import Fraction

_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "lakh": 5, "crore": 7}
_SCALES |= {
    "thousand million": 9,
    "mil millones": 9,
    "millones": 6,
    "millón": 6,
    "millionen": 6,
    "mio": 6,
    "milliarden": 9,
}
_SCALES |= {
    "mrd": 9,
    "milliard": 9,
    "milliarde": 9,
    "milliards": 9,
    "billones": 12,
    "billionen": 12,
    "mil": 3,
    "mille": 3,
}
_SCALES |= {
    "milhões": 6,
    "milioni": 6,
    "miliardi": 9,
    "тысяч": 3,
    "тысячи": 3,
    "миллион": 6,
    "миллиона": 6,
    "миллионов": 6,
}
_SCALES |= {"миллиард": 9, "миллиарда": 9, "миллиардов": 9, "tausend": 3}
_NAMES = "|".join(sorted({*_SCALES, "dozen"}, key=len, reverse=True))
_SCALED = re.compile(
    rf"(?<![0-9.,])([0-9]{{1,15}}(?:,[0-9]{{3}}){{0,5}}(?:\.[0-9]{{1,15}})?)\s?({_NAMES})s?\b",
    re.IGNORECASE,
)


def in_full(text: str) -> str:
    """Return ``text`` with every number before a scale written out, if that is an integer."""
    return _SCALED.sub(_scaled, text)


def _scaled(match: re.Match[str]) -> str:
    """``2.5 million`` as ``2500000``."""
    value = Fraction(match[1].replace(",", "")) * (12 if (word := match[2].lower()) == "dozen" else 10 ** _SCALES[word])
    return str(value) if value.denominator == 1 else match[0]
