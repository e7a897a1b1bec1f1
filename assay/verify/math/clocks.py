"""Times of day: ``3:45 PM``, ``15h45``, ``1545 hours``, ``a quarter to four in the afternoon``, ``下午3点45分``."""

from __future__ import annotations

import re

from assay.verify.math.number_words import number_words
from assay.verify.math.values import Clock

_CLOCK = re.compile(
    r"(?:at |um |à |a las |alle |às |в )?([0-9]{1,2})(?:\s?(?::|h|点|點|時|시)\s?([0-5][0-9])(?:[:分]([0-5][0-9]))?|"
    r"\.([0-5][0-9])(?=\s?(?:[ap]\.?m|uhr)))?"
    r"\s?(分|분)?\s?(a\.?\s?m\.?|p\.?\s?m\.?|o'clock|uhr|heures?|hrs?|horas|ore|часов|点钟?|點鐘?|時|시|h)?"
    r"(?: ?(?:in the |at |de la |du |in der )?(morning|afternoon|evening|night|matin|soir|après-midi|tarde|"
    r"mañana|noche))?",
    re.IGNORECASE,
)
_AT = ("at ", "um ", "à ", "a las ", "alle ", "às ", "в ")
_MILITARY = re.compile(r"([01][0-9]|2[0-3])([0-5][0-9])\s?(?:hours|hrs|h|uhr)", re.IGNORECASE)
_SPOKEN = re.compile(
    r"(?:at )?(?:an? )?(quarter|half|[a-z]+(?:[- ][a-z]+)?|[0-9]{1,2})(?: minutes?)? (past|after|to|before|till|"
    r"of) ([a-z]+|[0-9]{1,2})"
    r"(?: o'clock)?(?:\s?(a\.?\s?m\.?|p\.?\s?m\.?))?(?:,? (?:in the |at )(morning|afternoon|evening|night))?",
    re.IGNORECASE,
)
_HALF_BEFORE = re.compile(r"(上午|早上|凌晨|下午|晚上|午前|午後|오전|오후)\s?(.+)")
_MORNING = ("上午", "早上", "凌晨", "午前", "오전")
_EARLY = frozenset(("morning", "matin", "mañana"))


def clock(text: str) -> Clock | None:
    """Read a time of day that is the whole of ``text``."""
    if len(text) > 60:
        return None
    low = text.casefold()
    if low in ("noon", "12 noon", "12:00 noon", "midday", "mediodía", "midi", "mittag"):
        return Clock(43200, "pm")
    if low in ("midnight", "12 midnight", "12:00 midnight", "medianoche", "minuit", "mitternacht"):
        return Clock(0, "am")
    before = ""
    if not low.isascii() and (match := _HALF_BEFORE.fullmatch(low)) is not None:
        before, low = "am" if match[1] in _MORNING else "pm", match[2]
    if (match := _MILITARY.fullmatch(low)) is not None:
        return _clock(int(match[1]), int(match[2]), 0, "")
    match = _CLOCK.fullmatch(low) if low[0].isdigit() or low.startswith(_AT) else None
    if match is None:
        return _spoken(low)
    hour, minute, second, dotted, _, suffix, part = match.groups()
    if minute is None and dotted is None and suffix is None and not (part or before):
        return None
    half = before
    if suffix and suffix[0] in "ap" and "m" in suffix:
        half = suffix[0] + "m"
    elif part:
        half = "am" if part in _EARLY else "pm"
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
    if (
        part not in ("quarter", "half")
        and side in ("to", "of")
        and not (suffix or time or "o'clock" in low or "minute" in low)
    ):
        return None  # "three to four" is a ratio
    minutes = {"quarter": 15, "half": 30}.get(part) or _small(part)
    h = _small(hour)
    if not minutes or minutes > 30 or h is None or not 1 <= h <= 12:
        return None
    half = suffix[0] + "m" if suffix else "" if not time else "am" if time == "morning" else "pm"
    total = _clock(h, 0, 0, half)
    if total is None:
        return None
    seconds = total.seconds + (minutes if side in ("past", "after") else -minutes) * 60
    return Clock(seconds % 86400, half)


def _small(text: str) -> int | None:
    if text.isdecimal():
        return int(text)
    value = number_words(text)
    return int(value) if value is not None and value.denominator == 1 else None
