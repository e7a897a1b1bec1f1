"""Times of day: ``3:45 PM``, ``15h45``, ``1545 hours``, ``a quarter to four in the afternoon``, ``下午3点45分``."""

from __future__ import annotations

import functools
import re

from assay.verify.math import tables
from assay.verify.math.number_words import number_words
from assay.verify.math.values import Clock

_MILITARY = re.compile(r"([01][0-9]|2[0-3])([0-5][0-9])\s?(?:hours|hrs|h|uhr)")
_SPOKEN = re.compile(
    r"(?:at )?(?:an? )?(quarter|half|[a-z]+(?:[- ][a-z]+)?|[0-9]{1,2})(?: minutes?)? (past|after|to|before|till|of) "
    r"([a-z]+|[0-9]{1,2})(?: o'clock)?(?:\s?(a\.?\s?m\.?|p\.?\s?m\.?))?"
    r"(?:,? (?:in the |at )(morning|afternoon|evening|night))?"
)


@functools.cache
def _named() -> tuple[dict[str, Clock], frozenset[str], re.Pattern[str]]:
    """Times that have a name, the words for the first half of a day, and times in digits."""
    table = tables.load("calendar")
    named = dict.fromkeys(table["noon"], Clock(43200, "pm")) | dict.fromkeys(table["midnight"], Clock(0, "am"))
    half = "|".join((table["am"] + " " + table["pm"]).split())
    digits = re.compile(
        rf"(?:({half})\s?)?(?:{'|'.join(table['at'])})?([0-9]{{1,2}})"
        r"(?:\s?(?::|h|点|點|時|시)\s?([0-5][0-9])(?:[:分]([0-5][0-9]))?|\.([0-5][0-9])(?=\s?(?:[ap]\.?m|uhr)))?"
        rf"\s?[分분]?\s?(a\.?\s?m\.?|p\.?\s?m\.?|{'|'.join(table['hour'].split())})?"
        rf"(?: ?(?:in the |at |de la |du |in der )?({half}))?"
    )
    return named, frozenset(table["am"].split()), digits


def clock(text: str) -> Clock | None:
    """Read a time of day that is the whole of ``text``."""
    if len(text) > 60:
        return None
    low = text.casefold()
    named, morning, digits = _named()
    if low in named:
        return named[low]
    if (match := _MILITARY.fullmatch(low)) is not None:
        return _clock(int(match[1]), int(match[2]), 0, "")
    if (match := digits.fullmatch(low)) is None:
        return _spoken(low)
    before, hour, minute, second, dotted, suffix, after = match.groups()
    if not (minute or dotted or suffix or before or after):
        return None
    half = suffix[0] + "m" if suffix and suffix[0] in "ap" else ""
    if not half and (part := after or before):
        half = "am" if part in morning else "pm"
    return _clock(int(hour), int(minute or dotted or 0), int(second or 0), half)


def _clock(h: int, m: int, s: int, half: str) -> Clock | None:
    if half:
        if not 1 <= h <= 12:
            return None if h > 23 or half == "am" else Clock(h * 3600 + m * 60 + s, "pm")
        h = h % 12 + (12 if half == "pm" else 0)
    elif h > 24:
        return None
    return Clock(h % 24 * 3600 + m * 60 + s, half or ("pm" if h > 12 else ""))


def _spoken(low: str) -> Clock | None:
    match = _SPOKEN.fullmatch(low)
    if match is None:
        return None
    part, side, hour, suffix, time = match.groups()
    told = suffix or time or "o'clock" in low or "minute" in low or part in ("quarter", "half")
    if side in ("to", "of") and not told:
        return None  # "three to four" is a ratio
    minutes, h = {"quarter": 15, "half": 30}.get(part) or _small(part), _small(hour)
    if not minutes or minutes > 30 or h is None or not 1 <= h <= 12:
        return None
    total = _clock(h, 0, 0, suffix[0] + "m" if suffix else "" if not time else "am" if time == "morning" else "pm")
    if total is None:
        return None
    seconds = total.seconds + (minutes if side in ("past", "after") else -minutes) * 60
    return Clock(seconds % 86400, total.half)


def _small(text: str) -> int | None:
    if text.isdecimal():
        return int(text)
    value = number_words(text)
    return int(value) if value is not None and value.denominator == 1 else None
