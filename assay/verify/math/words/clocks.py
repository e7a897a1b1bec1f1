"""Times of day: ``3:45 PM``, ``15h45``, ``1545 hours``, ``a quarter to four in the afternoon``, ``下午3点45分``."""

from __future__ import annotations

import functools
import re

from assay.verify.math import tables
from assay.verify.math.expressions.values import Clock
from assay.verify.math.words.number_words import in_digits

_MILITARY = re.compile(r"([01][0-9]|2[0-3])([0-5][0-9])\s?(?:hours|hrs|h|uhr)")
_SPOKEN = re.compile(
    r"(?:at )?(?:an? )?(\(1/[24]\)|[0-9]{1,2})( minutes?)? (past|after|to|before|till|of) ([0-9]{1,2})(\s?[a-z,].*)?"
)
_SIDE = re.compile(r" (?:past|after|to|before|till|of) ")


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
    """Minutes before or after an hour."""
    match = _SPOKEN.fullmatch(in_digits(low)) if _SIDE.search(low) is not None else None
    if match is None:
        return None
    part, named, side, hour, rest = match.groups()
    if side in ("to", "of") and not (named or rest or "/" in part):
        return None  # "three to four" is a ratio
    minutes = {"(1/4)": 15, "(1/2)": 30}.get(part) or int(part)
    full = clock(f"{hour}:00{(rest or '').replace(',', '')}")
    if full is None or not 0 < minutes <= 30 or not 1 <= int(hour) <= 12:
        return None
    seconds = full.seconds + (minutes if side in ("past", "after") else -minutes) * 60
    return Clock(seconds % 86400, full.half)
