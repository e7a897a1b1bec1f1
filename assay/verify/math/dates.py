"""Days of the calendar: ``December 19, 1901``, ``19th of December 1901``, ``19. Dezember 1901``, ``1901-12-19``."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from assay.verify.math import tables
from assay.verify.math.values import Date

_DAY = r"([0-9]{1,2})(?:st|nd|rd|th|er|\.|º|ª)?"
_LETTERS = re.compile(r"[^\W\d_]{3}")
_ISO = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_CJK = re.compile(r"([0-9]{4})\s?[年년]\s?([0-9]{1,2})\s?[月월]\s?([0-9]{1,2})\s?[日일号號]?")
_NUMERIC = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")


@dataclass(frozen=True, slots=True)
class _Calendar:
    """Names by their number, and days with the month before and after."""

    months: dict[str, int]
    weekdays: dict[str, int]
    on: tuple[str, ...]
    month_first: re.Pattern[str]
    day_first: re.Pattern[str]


@functools.cache
def _calendar() -> _Calendar:
    table = tables.load("calendar")
    months = {name: n for row in reversed(table["months"]) for n, name in enumerate(row.split(), 1)}
    weekdays = {name: n for row in table["weekdays"] for n, name in enumerate(row.split())}
    month = "(" + "|".join(sorted(months, key=len, reverse=True)) + r")\.?"
    weekday = rf"(?:on |am |le |el )?(?:(?:{'|'.join(weekdays)})\.?,? )?(?:the |den |der )?"
    return _Calendar(
        months,
        weekdays,
        tuple(table["on"]),
        re.compile(rf"{weekday}{month}\s(?:the )?{_DAY}(?:\s?,?\s([0-9]{{1,4}}))?", re.IGNORECASE),
        re.compile(rf"{weekday}{_DAY}[\s-](?:of |de )?{month}(?:(?:\s?,?\s?|-)(?:de )?([0-9]{{1,4}}))?", re.IGNORECASE),
    )


def weekday(words: str) -> int | None:
    """Return 0 for Monday to 6 for Sunday where ``words`` name a day of the week, else ``None``."""
    word = words.casefold().strip(" .")
    for start in _calendar().on:
        word = word.removeprefix(start)
    return _calendar().weekdays.get(word)


def calendar_date(text: str) -> Date | None:
    """Return the day that the whole of ``text`` writes.

    Of two numbers before the year the one above 12 is the day; of two small ones the first, where points separate them,
    and otherwise it is not read, unless both are the same.
    """
    if not 5 <= len(text) <= 60:
        return None
    if _LETTERS.search(text) is not None:
        calendar = _calendar()
        if (match := calendar.month_first.fullmatch(text)) is not None:
            return _date(match[3], str(calendar.months[match[1].lower()]), match[2])
        if (match := calendar.day_first.fullmatch(text)) is not None:
            return _date(match[3], str(calendar.months[match[2].lower()]), match[1])
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


def _date(year: str | None, month: str, day: str) -> Date | None:
    m, d = int(month), int(day)
    return Date(int(year or 0), m, d) if 1 <= m <= 12 and 1 <= d <= 31 else None
