"""Whether a text says something in passing."""

from __future__ import annotations

import re
from fractions import Fraction

_MARKUP = re.compile(r"\\boxed|\\text|\\mathrm|[${}\\]")
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?")


def mentions(text: str, reference: str) -> bool:
    """Say whether ``text`` holds ``reference`` as a word of its own or, if it is a number, a number equal to it."""
    plain = " ".join(_MARKUP.sub(" ", reference).split()).casefold()
    if not plain:
        return False
    number = _NUMBER.fullmatch(plain.lstrip("-"))
    if number is not None:
        value = Fraction(number.group())
        return any(Fraction(m.group()) == value for m in _NUMBER.finditer(text[:100_000]))
    return re.search(rf"(?<![^\W_]){re.escape(plain)}(?![^\W_])", text.casefold()) is not None
