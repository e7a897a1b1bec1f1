"""When two short answers are the same: equal after normalising, or equal as exact rational numbers."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from fractions import Fraction

MAX_LENGTH = 4000
"""Characters of the longest text read as a number; Python refuses to parse integers of more than 4300 digits."""

# The exponent is bounded because 1e999999999 is nine characters and a gigabyte of digits.
NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_NUMBER = re.compile(rf"([+-]?)\s?\$?\s?({NUMBER})(?:[eE]([+-]?[0-9]{{1,3}}))?(?:\s?/\s?([0-9]+))?\.?")
# A sign belongs to the number it touches, unless an operand stands before it: "3-5" and "3 -5" end in 5, "is -5" in -5;
# apart from its number it is an operator or the mark of a list item.
_SIGN = r"(?:(?<![0-9A-Za-z_)\].])(?<![0-9)\]][ \t])[+-])?"
_IN_TEXT = re.compile(rf"{_SIGN}\$?(?:{NUMBER})(?:[eE][+-]?[0-9]{{1,3}}(?![0-9]))?(?:/[0-9]+)?")

_LATEX = re.compile(r"\\(?:text|mathrm|mathbf)\s?\{([^{}]*)\}")
_DELIMITERS = re.compile(r"\\[()\[\]!,;]")
_AROUND = " \t\r\n`*\"'$"
_MINUS = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-"})


def normalise(text: str, ignore_case: bool = True) -> str:
    r"""Return ``text`` without what does not change an answer.

    Unicode compatibility forms (NFKC), typographic minus signs, LaTeX delimiters and ``\text{}``, surrounding
    quotes, asterisks, dollar signs and a final full stop, runs of white space, blanks after commas, and case.
    Text that consists of nothing else is kept as it is.
    """
    plain = _LATEX.sub(r"\1", unicodedata.normalize("NFKC", text).translate(_MINUS))
    plain = _DELIMITERS.sub(" ", plain).strip(_AROUND).rstrip(_AROUND + ".")
    plain = " ".join((plain or text).split()).replace(", ", ",")
    return plain.casefold() if ignore_case else plain


def parse_number(text: str) -> Fraction | None:
    """Return the number that the whole of ``text`` is, exactly; ``None`` if it is none.

    Integers, decimals, ``a/b``, ``1,234`` with complete groups of three, ``1.5e3``, a leading dollar sign, a final full
    stop. A percentage is not a number, and neither is anything longer than :data:`MAX_LENGTH` characters.
    """
    text = text.strip().translate(_MINUS)
    if len(text) > MAX_LENGTH:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, digits, exponent, denominator = match.groups()
    value = Fraction(digits.replace(",", "")) * Fraction(10) ** int(exponent or 0)
    if denominator is not None:
        if int(denominator) == 0:
            return None
        value /= int(denominator)
    return -value if sign == "-" else value


def last_number(text: str) -> str | None:
    """Return the last number written in ``text`` with its sign, as text; ``None`` if there is none. Linear time."""
    place = last_number_place(text)
    return None if place is None else text.translate(_MINUS)[place[0] : place[1]]


def last_number_place(text: str) -> tuple[int, int] | None:
    """Return where :func:`last_number` stands in ``text``."""
    # Each minus is one character for another, so that places stay.
    last = deque(_IN_TEXT.finditer(text.translate(_MINUS)), maxlen=1)
    return last[0].span() if last else None


def same(answer: str, reference: str, numeric: bool = True, ignore_case: bool = True) -> bool:
    """Say whether two answers are equal as normalised text or, if ``numeric`` and both are numbers, as numbers."""
    # A long answer cannot equal a short reference; not normalising it bounds the time.
    if len(answer) > 2 * max(len(reference), MAX_LENGTH):
        return False
    left, right = normalise(answer, ignore_case), normalise(reference, ignore_case)
    if left == right:
        return True
    if not numeric:
        return False
    value, wanted = parse_number(left), parse_number(right)
    return value is not None and value == wanted
