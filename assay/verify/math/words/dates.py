"""Days of the calendar: ``December 19, 1901``, ``19th of December 1901``, ``19. Dezember 1901``, ``1901-12-19``."""

from __future__ import annotations

import functools
import re

from assay.verify.math import tables
from assay.verify.math.expressions.values import Date

_DAY = r"([0-9]{1,2})(?:st|nd|rd|th|er|\.|º|ª)?"
_LETTERS = re.compile(r"[^\W\d_]{3}")
_ISO = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_CJK = re.compile(r"([0-9]{4})\s?[年년]\s?([0-9]{1,2})\s?[月월]\s?([0-9]{1,2})\s?[日일号號]?")
_NUMERIC = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")


@functools.cache
def _calendar() -> tuple[dict[str, int], re.Pattern[str], re.Pattern[str]]:
    """The numbers of the months by name, and days with the month before and after."""
    table = tables.load("calendar")
    months = {name: n for row in reversed(table["months"]) for n, name in enumerate(row.split(), 1)}
    month = "(" + "|".join(sorted(months, key=len, reverse=True)) + r")\.?"
    day = rf"(?:on |am |le |el )?(?:(?:{'|'.join(_weekdays()[0])})\.?,? )?(?:the |den |der )?"
    month_first = rf"{day}{month}\s(?:the )?{_DAY}(?:\s?,?\s([0-9]{{1,4}}))?"
    day_first = rf"{day}{_DAY}[\s-](?:of |de )?{month}(?:(?:\s?,?\s?|-)(?:de )?([0-9]{{1,4}}))?"
    return months, re.compile(month_first, re.IGNORECASE), re.compile(day_first, re.IGNORECASE)


@functools.cache
def _weekdays() -> tuple[dict[str, int], re.Pattern[str]]:
    """The numbers of the days of the week, and what stands before one."""
    table = tables.load("calendar")
    days = {name: n for row in table["weekdays"] for n, name in enumerate(row.split())}
    return days, re.compile("(?:" + "|".join(table["on"]) + ")?")


def weekday(words: str) -> int | None:
    """Return 0 for Monday to 6 for Sunday where ``words`` name a day of the week, else ``None``."""
    days, on = _weekdays()
    return days.get(on.sub("", words.casefold().strip(" ."), count=1))


def calendar_date(text: str) -> Date | None:
    """Return the day that the whole of ``text`` writes.

    Of two numbers before the year the one above 12 is the day; of two small ones the first, where points separate them,
    and otherwise it is not read, unless both are the same.
    """
    if not 5 <= len(text) <= 60:
        return None
    if _LETTERS.search(text) is not None:
        months, month_first, day_first = _calendar()
        if (match := month_first.fullmatch(text)) is not None:
            return _date(match[3], months[match[1].lower()], match[2])
        if (match := day_first.fullmatch(text)) is not None:
            return _date(match[3], months[match[2].lower()], match[1])
    if not text[0].isdecimal():
        return None
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


def _date(year: str | None, month: str | int, day: str) -> Date | None:
    m, d = int(month), int(day)
    return Date(int(year or 0), m, d) if 1 <= m <= 12 and 1 <= d <= 31 else None
