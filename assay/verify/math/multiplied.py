"""Words behind a value that make another number of it: ``3 dozen eggs``, ``5 million``, ``7 tenths``."""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.math.governed import around

_NAMES = (
    r"dozens?|hundreds?|thousands?|millions?|[bt]illions?|lakhs?|crores?|"
    r"halves|thirds|fourths|fifths|sixths|sevenths|eighths|ninths|tenths?|hundredths?|thousandths?|millionths?|"
    r"dutzend|tausend|million(?:en)?|milliarden?|zehntel|hundertstel|tausendstel|douzaines?|milliers?|milliards?|"
    r"dixi[eè]mes?|centi[eè]mes?|docenas?|cientos|mil|mill[oó]n(?:es)?|d[ée]cimas?|cent[ée]simas?|dozzin[ae]|"
    r"migliaia|milion[ei]|miliard[oi]|d[úu]zias?|milh(?:ão|ões|ares)|bilh(?:ão|ões)|dozijn|duizend|miljoen|miljard|"
    r"dussin|tusen|miljon(?:er)?|tuzin\w*|tysi\w+|milion\w*|miliard\w*|tucet\w*|tisíc\w*|дюжин\w*|сотен|сотни|тысяч\w*|"
    r"миллион\w*|миллиард\w*|тисяч\w*|мільйон\w*|düzine|milyon|milyar|lusin|ribu|juta|chục|nghìn|ngàn|triệu"
)
_WORD = re.compile(
    rf"[\s$)*\]}}]*(?:\\text(?:rm)?\s?\{{\s*|\\[,;:! ]\s?)*(?:(?P<word>{_NAMES})(?![^\W\d_])|"
    r"(?P<sign>[十万萬亿億打]|百(?!帕|分)|千(?![瓦克米赫卡帕伏焦])|ダース|[십백천만억](?![^\W\d_])))",
)
_STEM = 4
"""Letters by which a question's word for the same count is known."""
_COUNTS = (
    r"\b(?:how many|number of|in|per|to the nearest|wie viele|cu[áa]nt[oa]s|combien de|quant[ioea]s?|сколько|скільки|"
    r"ile|kolik|hoeveel|hur många|en|em|в|w|v)\s(?:\w+\s){0,2}?"
)


def multiplied(said: str, question: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a count word follows the right value and multiplies it, which the question does not do itself.

    Args:
        said: the answer, or the sentence that states it, and the rest of its line.
        question: what it counts in ("how many dozen") is no reason against an answer.
        reference: neither is what the reference names.
        agrees: whether a text is the reference.
    """
    if _ANY.search(said.casefold()) is None:
        return False
    before, behind = around(said, agrees)
    match = _WORD.match(behind.casefold()) if before or behind else None
    if match is None:
        return False
    word = match["word"] or match["sign"]
    stem = word[:_STEM]
    if stem in reference.casefold() or re.search(rf"{_COUNTS}{stem}|{stem}\w*\s(?:digit|place)", question, re.I):
        return False
    return not (word.endswith(("ths", "th", "thirds")) and stem in question.casefold())


_ANY = re.compile(rf"[0-9](?:{_WORD.pattern})")
