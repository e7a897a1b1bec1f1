"""One quantity in two units as one number: ``86°21'45"``, ``2h 30``, ``an hour and a half``, ``21 euros 18``."""

from __future__ import annotations

import re
from fractions import Fraction

_N = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_SPACE = r"[\s,]{0,3}(?:(?:and|et|und|y|e|и)\s)?"
_ANGLE = re.compile(
    rf"(-?){_N}\s?(?:°|º|deg(?:rees?|\.)?|d\b){_SPACE}{_N}\s?(?:'|\^\{{?'\}}?|arc ?min(?:ute)?s?|min(?:ute)?s?\.?)(?!')"
    rf"(?:{_SPACE}{_N}\s?(?:\"|''|\^\{{?''\}}?|arc ?sec(?:ond)?s?|sec(?:ond)?s?\.?|s\b))?",
    re.IGNORECASE,
)
_ONE_AND_A_HALF = re.compile(r"(?:an?|one|1) ([a-z]{3,12}) and an? (half|quarter|third)", re.IGNORECASE)
_AND_A_HALF = re.compile(r"([0-9]{1,9}) ([a-z]{3,12}) and an? (half|quarter|third)", re.IGNORECASE)
_HOURS = re.compile(
    r"([0-9]{1,4})\s?(?:h|hrs?|hours?|heures?|std\.?|stunden?|horas?|ore|uur|小时|小時|時間|시간|часов|часа|час|ч)\s?\.?"
    rf"{_SPACE}([0-9]{{1,2}})\s?(?:m|min|mins|minutes?|minuten|minutos?|minuti|分钟|分鐘|分|분|минут\w?|мин)?\.?"
    rf"(?:{_SPACE}([0-9]{{1,2}})\s?(?:s|sec|secs|seconds?|sekunden|segundos?|secondes?|秒|초|сек\w{{0,4}})\.?)?",
    re.IGNORECASE,
)
_CENTS = r"(?:p|ct|cts|¢|c|cents?|pence|penny|pennies|centimes|céntimos|centesimi)"
_MONEY = re.compile(
    rf"([0-9]{{1,9}})\s?(€|\$|£|euros?|dollars?|pounds?|quid|bucks?)(?:{_SPACE}([0-9]{{1,2}})\s?{_CENTS}|{_SPACE}([0-9]{{2}}))",
    re.IGNORECASE,
)
_SIGNED_MONEY = re.compile(rf"([$€£])\s?([0-9]{{1,9}})(?:\s|\sand\s|,\s)([0-9]{{1,2}})\s?{_CENTS}", re.IGNORECASE)
_PENCE = re.compile(r"([0-9]{1,9})\s?p")
_PARTS = {"half": 2, "quarter": 4, "third": 3}
_SIGNS = {
    "€": "euros",
    "$": "dollars",
    "£": "quid",
    "e": "euros",
    "d": "dollars",
    "p": "quid",
    "q": "quid",
    "b": "dollars",
}


def one_quantity(text: str) -> str | None:
    """Return ``text`` as one number with a unit, ``None`` if it is no quantity in two units."""
    if len(text) > 80:
        return None
    if " and " in text and (match := _ONE_AND_A_HALF.fullmatch(text)) is not None:
        return f"{1 + Fraction(1, _PARTS[match[2].lower()])} {match[1]}"
    if text[0] not in "-0123456789$€£":
        return None
    if (match := _AND_A_HALF.fullmatch(text)) is not None:
        return f"{int(match[1]) + Fraction(1, _PARTS[match[3].lower()])} {match[2]}"
    if (match := _ANGLE.fullmatch(text)) is not None:
        sign, degrees, minutes, seconds = match.groups()
        total = Fraction(degrees) + Fraction(minutes) / 60 + Fraction(seconds or 0) / 3600
        return f"{sign}{total} °" if Fraction(minutes) < 60 and Fraction(seconds or 0) < 60 else None
    if (match := _HOURS.fullmatch(text)) is not None:
        hours, minutes, seconds = match.groups()
        return f"{3600 * int(hours) + 60 * int(minutes) + int(seconds or 0)} seconds"
    if (match := _MONEY.fullmatch(text)) is not None:
        whole, currency, cents, bare = match.groups()
        return f"{whole}.{(cents or bare).zfill(2)} {_SIGNS[currency[0].lower()]}"
    if (match := _SIGNED_MONEY.fullmatch(text)) is not None:
        return f"{match[2]}.{match[3].zfill(2)} {_SIGNS[match[1]]}"
    if (match := _PENCE.fullmatch(text)) is not None:
        return f"{match[1]} pence"
    return None
