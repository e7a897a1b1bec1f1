"""What stands before and behind the right value in its own sentence, and the sentence before that."""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.math.final import Final
from assay.verify.math.governed import around
from assay.verify.math.units import lookup

MAX_BEFORE = 300
MAX_OPENING = 40
# The first character comes before all conditions, so that ``re`` can skip to where one is.
SENTENCE_ENDS = re.compile(
    r"[.!?\n<](?:(?<=[a-z0-9)$*}\]%\"'”][.!?])(?<!\be\.g.)(?<!\bi\.e.)\s+(?=[A-Z$\\*(0-9<])|(?<=\n)\n*|(?<=<)br\s?/?>)"
)
OPENED = re.compile(
    r"(?:\\(?:boxed|text|mathbf|textbf|fbox)\s*\{|<(?:final_)?answer>|\\[(\[]|\\[,;! ]|[$*_(\[`\"“\s#]|"
    r"\\left\s?[(\[])+$",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"^(?:</(?:final_)?answer>|\\[)\]]|\\right\s?[)\]]|[$*_)\]}`\"”])+", re.IGNORECASE)


def parts_around(
    final: Final, response: str, reference: str, agrees: Callable[[str], bool]
) -> tuple[str | None, str, str]:
    """What stands before the value in its sentence, ``None`` if it is not found, what behind it, and the one before."""
    text, after = final.text, final.after
    end = len(response) - len(after) if after and response.endswith(after) else len(response)
    place = response.rfind(text, 0, end)
    if place >= 0:
        front, rest = response[max(place - MAX_BEFORE, 0) : place], response[place + len(text) :][:200]
    else:
        front, rest = final.lead, after[:200]
    head = (_HEAD if final.marker else _REASON).split(text, maxsplit=1)[0]
    inner = behind = ""
    goes_on = _SPOKEN.search(text, len(head)) is not None
    if goes_on:
        inner, behind = around(head, agrees, reference)
    if goes_on and (inner or behind or agrees(head)):
        behind += text[len(head) :]  # what it says first: "42, because 17 + 25 = 42"
    elif "=" in text or _SPOKEN.search(text) is not None:
        inner, behind = around(text, agrees, reference)
    if not inner and not behind and not agrees(text):
        return None, "", ""
    if not inner:
        opened = _unopened(front)
        joined = "\n" not in front[len(opened) :] or _LEADS_ON.search(opened) is not None
        front = opened if joined else f"{opened}\n"
    pieces = SENTENCE_ENDS.split(f"{front}{inner}")
    earlier = next((piece for piece in reversed(pieces[:-1]) if piece.strip()), "")
    rest = SENTENCE_ENDS.split(_CLOSED.sub("", f"{behind}{rest}"))[0]
    while (unit := _UNIT.match(rest)) is not None and lookup(unit[1]) is not None:
        rest = rest[unit.end() :]
    before = _unopened(_at_end(_NAMED, _unopened(pieces[-1]).strip())).strip()
    return before, _CLOSED.sub("", rest), earlier


def _unopened(text: str) -> str:
    """A text without what opens a box, a formula or emphasis at its end."""
    return _at_end(OPENED, text)


def _at_end(pattern: re.Pattern[str], text: str) -> str:
    """A text without what a pattern finds at its end, where alone it is looked for; none ends in a letter or digit."""
    if text[-1:].isalnum():
        return text
    return text[:-MAX_OPENING] + pattern.sub("", text[-MAX_OPENING:])


_SPOKEN = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_LEADS_ON = re.compile(
    r"(?:[:=,]|\b(?:is|are|be|get|obtain|gives|have|so|thus|hence|therefore))[*_\s]*$", re.IGNORECASE
)
_UNIT = re.compile(r"\s*(?:(?:per|an?)\s|/\s?)?\s*([A-Za-z]{1,12})\b(?!['’])")
_REASON = re.compile(r",?\s+(?=(?:because|since)\b)")
_HEAD = re.compile(
    r"(?<=[\w)}$*%°])(?:[,;:]?\s+(?=\(|(?:because|since|as|so|which|where|when|for|by|after|with)\b)|[,;]\s+)"
)
_NAMED = re.compile(r"(?<![-+*/^A-Za-z0-9\\=}])(?<![-+*/^=] )[A-Za-z](?:\(\w\))?\s?=\s*$")


__all__ = ["OPENED", "SENTENCE_ENDS", "parts_around"]
