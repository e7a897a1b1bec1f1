"""One quantity in two units as one number: ``86°21'45"``, ``2h 30``, ``an hour and a half``, ``21 euros 18``."""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from assay.verify.math import tables

_N = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_AND = r"[\s,]{0,3}(?:(?:and|et|und|y|e|и)\s)?"
_AND_A_HALF = re.compile(r"(an?|one|[0-9]{1,9}) ([a-z]{3,12}) and an? (half|quarter|third)", re.IGNORECASE)
_PARTS = {"half": 2, "quarter": 4, "third": 3}
_SIGN_FIRST = re.compile(r"([$€£])\s?([0-9]{1,9})(?=[^0-9.]+[0-9]{1,2}\s?[^\W\d]|[^0-9.]+[0-9]{1,2}\s?¢)")
_TWO_NUMBERS = re.compile(r"[-$€£]?\s?[0-9.]+[^0-9.=+*/()]+[0-9]")
_PENCE = re.compile(r"([0-9]{1,9})\s?p")


@functools.cache
def _kinds() -> tuple[tuple[str, int, re.Pattern[str]], ...]:
    """The first units, with how many of the next they are, and what quantities in them and the next look like."""
    kinds = []
    for unit, kind in tables.load("compounds").items():
        called = [
            "|".join(re.escape(name).replace("_", " ?") for name in row.split()) for row in kind["names"].split(";")
        ]
        bare = "|(?<=[0-9]{2})" if kind["bare"] else ""
        pattern = rf"{_N}\s?(?:{called[0]})\.?{_AND}{_N}(?:\s?(?:{called[1]})\.?{bare})"
        pattern += "".join(rf"(?:{_AND}{_N}\s?(?:{name})\.?)?" for name in called[2:])
        kinds.append((unit, kind["each"], re.compile(pattern, re.IGNORECASE)))
    return tuple(kinds)


def one_quantity(text: str) -> str | None:
    """Return ``text`` as one number with a unit, ``None`` if it is no quantity in two units."""
    if len(text) > 80:
        return None
    if " and a" in text and (match := _AND_A_HALF.fullmatch(text)) is not None:
        count = int(match[1]) if match[1].isdecimal() else 1
        return f"{count + Fraction(1, _PARTS[match[3].lower()])} {match[2]}"
    if (match := _PENCE.fullmatch(text)) is not None:
        return f"{match[1]} pence"
    if _TWO_NUMBERS.match(text) is None:
        return None
    sign = "-" if text[0] == "-" else ""
    plain = _SIGN_FIRST.sub(r"\2 \1", text.removeprefix("-"), count=1)
    for unit, each, pattern in _kinds():
        if (match := pattern.fullmatch(plain)) is not None:
            whole, *parts = (Fraction(n or 0) for n in match.groups())
            if any(part >= each for part in parts):
                return None
            return f"{sign}{whole + sum(part / each**n for n, part in enumerate(parts, 1))} {unit}"
    return None
