# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Days of the calendar: ``December 19, 1901``, ``19th of December 1901``, ``19. Dezember 1901``, ``1901-12-19``."""

from __future__ import annotations

import re

from assay.verify.math.values import Date

_MONTHS = "january february march april may june july august september october november december".split()
_NUMBER_OF = (
    {name: n for n, name in enumerate(_MONTHS, 1)} | {name[:3]: n for n, name in enumerate(_MONTHS, 1)} | {"sept": 9}
)
_FOREIGN = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
)
_NUMBER_OF |= {name: n for names in _FOREIGN for n, name in enumerate(names.split(), 1) if name not in _NUMBER_OF}
_WEEKDAYS = {
    name: n
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "mon tue wed thu fri sat sun",
        "mon tues weds thur fri sat sun",
        "mon tue wed thurs fri sat sun",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "lunes martes miércoles jueves viernes sábado domingo",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "понедельник вторник среда четверг пятница суббота воскресенье",
        "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
        "月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日",
        "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
    )
    for n, name in enumerate(names.split())
}
_ON = ("on ", "on a ", "a ", "am ", "el ", "le ")
_NAME = "(" + "|".join(sorted(_NUMBER_OF, key=len, reverse=True)) + r")\.?"
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th|er|\.|º|ª)?"
_WEEKDAY = (
    r"(?:on |am |le |el )?(?:(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?|"
    r"[^\W\d_]{2,8}(?:tag|di|woch)|"
    r"lunes|martes|miércoles|jueves|viernes|sábado|domingo),? )?(?:the |den |der )?"
)
_MONTH_FIRST = re.compile(rf"{_WEEKDAY}{_NAME}\s(?:the )?{_DAY}(?:\s?,?\s([0-9]{{1,4}}))?", re.IGNORECASE)
_DAY_FIRST = re.compile(
    rf"{_WEEKDAY}{_DAY}[\s-](?:of |de )?{_NAME}(?:(?:\s?,?\s?|-)(?:de )?([0-9]{{1,4}}))?", re.IGNORECASE
)
_LETTERS = re.compile(r"[^\W\d_]{3}")
_ISO = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_CJK = re.compile(r"([0-9]{4})\s?[年년]\s?([0-9]{1,2})\s?[月월]\s?([0-9]{1,2})\s?[日일号號]?")
_NUMERIC = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")


def weekday(words: str) -> int | None:
    """Return 0 for Monday to 6 for Sunday where ``words`` name a day of the week, else ``None``."""
    word = words.casefold().strip(" .")
    for start in _ON:
        word = word.removeprefix(start)
    return _WEEKDAYS.get(word)


def calendar_date(text: str) -> Date | None:
    """Return the day that the whole of ``text`` writes.

    Of two numbers before the year the one above 12 is the day; of two small ones the first, where points separate them,
    and otherwise it is not read, unless both are the same.
    """
    if not 5 <= len(text) <= 60:
        return None
    if _LETTERS.search(text) is not None:
        if (match := _MONTH_FIRST.fullmatch(text)) is not None:
            return _date(match[3], str(_NUMBER_OF[match[1].lower()]), match[2])
        if (match := _DAY_FIRST.fullmatch(text)) is not None:
            return _date(match[3], str(_NUMBER_OF[match[2].lower()]), match[1])
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
