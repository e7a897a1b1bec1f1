# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Days of the calendar: ``December 19, 1901``, ``19th of December 1901``, ``1901-12-19``."""

from __future__ import annotations

import re

from assay.verify.math.values import Date

_MONTHS = "january february march april may june july august september october november december".split()
_NUMBER_OF = (
    {name: n for n, name in enumerate(_MONTHS, 1)} | {name[:3]: n for n, name in enumerate(_MONTHS, 1)} | {"sept": 9}
)
_NAME = "(" + "|".join(sorted(_NUMBER_OF, key=len, reverse=True)) + r")\.?"
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:on )?(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?(?:the )?"
_MONTH_FIRST = re.compile(rf"{_WEEKDAY}{_NAME}\s(?:the )?{_DAY}(?:\s?,?\s([0-9]{{1,4}}))?", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"{_WEEKDAY}{_DAY}\s(?:of )?{_NAME}(?:\s?,?\s?([0-9]{{1,4}}))?", re.IGNORECASE)
_ISO = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_CJK = re.compile(r"([0-9]{4})\s?[年년]\s?([0-9]{1,2})\s?[月월]\s?([0-9]{1,2})\s?[日일号號]?")
_NUMERIC = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")


def calendar_date(text: str) -> Date | None:
    """Return the day that the whole of ``text`` writes.

    Of two numbers before the year the one above 12 is the day; of two small ones the first, where points separate them,
    and otherwise it is not read, unless both are the same.
    """
    if not 5 <= len(text) <= 60 or not any(c.isdigit() for c in text):
        return None
    if (match := _MONTH_FIRST.fullmatch(text)) is not None:
        return _date(match[3], str(_NUMBER_OF[match[1].lower()]), match[2])
    if (match := _DAY_FIRST.fullmatch(text)) is not None:
        return _date(match[3], str(_NUMBER_OF[match[2].lower()]), match[1])
    if (match := _ISO.fullmatch(text)) is not None:
        return _date(match[1], match[3], match[4])
    if (match := _CJK.fullmatch(text)) is not None:
        return _date(match[1], match[2], match[3])
    if (match := _NUMERIC.fullmatch(text)) is not None:
        first, separator, second, year = match.groups()
        if int(first) > 12 or separator == "." or first == second:
            return _date(year, second, first)
        return _date(year, first, second) if int(second) > 12 else None
    return None


def _date(year: str | None, month: str, day: str) -> Date | None:
    m, d = int(month), int(day)
    return Date(int(year or 0), m, d) if 1 <= m <= 12 and 1 <= d <= 31 else None
