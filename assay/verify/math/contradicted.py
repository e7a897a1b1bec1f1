"""Whether what stands beside a bare value contradicts the question or the reference: a unit, a direction.

``\\boxed{68}`` metres where centimetres are asked for, "a decrease of 25 %" where the increase is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.governed import BREAK, around
from assay.verify.math.latex import plain
from assay.verify.math.read import read
from assay.verify.math.units import lookup, read_unit
from assay.verify.math.values import Named, Scalar

_NAME = (
    r"(?:(?:square|cubic|sq\.?|cu\.?) "
    r")?[A-Za-zµΩ°′″'\"%€£¥]{1,16}(?: (?:squared|cubed)|\s?\^\s?\{?[23]\}?|[²³])?(?:\s?/\s?[a-z]{1,4}|"
    r" per [a-z]{1,10})?"
)
_BEHIND = re.compile(
    rf"^(?:[\s$)\]}}*~]|\\[\])]|\\[,;:! ]|</answer>){{0,12}}\(?(?:in )?(?:\\(?:text|mathrm|"
    rf"textrm)\s?\{{\s*)?(?P<unit>{_NAME})(?P<end>[\s}}$).,;:!*\\]|$)"
)
_INSIDE = re.compile(
    rf"\b[Ii]n (?P<unit>{_NAME})(?: is| are| equals|,|:| =)\s+(?P<value>\$?-?[0-9][0-9.,/]*\$?)[\s.*]*$"
)
_CIRC = re.compile(r"^[\s$)\]}*]*\^\s?\{?\\circ|^[\s$)\]}*]*\\degree")
_BEFORE = re.compile(rf"\b(?:in|\(in) (?P<unit>{_NAME})(?:\)|,|:|\s)(?:[^.,;0-9]{{0,30}})$", re.IGNORECASE)
_NO_UNITS = frozenset(
    [
        "in",
        "a",
        "as",
        "at",
        "an",
        "am",
        "so",
        "is",
        "or",
        "if",
        "to",
        "of",
        "and",
        "the",
        "by",
        "it",
        "no",
        "on",
        "we",
        "i",
        "be",
        "he",
        "for",
    ]
)
_CLOSING = re.compile(r"^[\s}$).*\\\])]*(?:[.,;:!\n]|$)")


def unit_beside(lead: str, text: str, after: str, closing: bool = False) -> str | None:
    """Return the known unit written right after, or announced before, a bare value; ``None`` if there is none.

    With ``closing``, a unit that more words follow is passed over: ``grams per cubic centimetre``.
    """
    unit = _named_beside(lead, after, closing)
    return unit if unit is not None and _bare(text) else None


def _named_beside(lead: str, after: str, closing: bool) -> str | None:
    if _CIRC.match(after):
        return "°"
    match = _BEHIND.match(after)
    if match is not None:
        unit = re.sub(r"\s?\^\s?\{?([23])\}?", r"^\1", match["unit"].strip())
        short = (closing or len(unit) < 3) and _CLOSING.match(after[match.end("unit") :]) is None
        if unit.casefold() not in _NO_UNITS and not short and _known(unit):
            return unit
    before = _BEFORE.search(f"{lead} ")
    if before is not None and len(before["unit"]) > 1 and _known(before["unit"]):
        return before["unit"]
    return None


def _bare(text: str) -> bool:
    readings = read(text)
    if not readings:
        return False
    value = readings[0].value if isinstance(readings[0], Named) else readings[0]
    return isinstance(value, Scalar) and value.unit is None and not re.search(r"%|percent", text)


def _asked_in(unit: str, question: str) -> bool:
    return len(unit) > 2 and re.search(rf"\b(?:in|how many) {re.escape(unit)}\b", question, re.IGNORECASE) is not None


@functools.lru_cache(1024)
def _known(name: str) -> bool:
    unit = read_unit(name) or lookup(name)
    return unit is not None and unit.known


# --- minutes and seconds of arc ---------------------------------------------------------------------------------------

_DEGREE = re.compile(r"°|\\circ|\bdegrees?\b")
_SECOND = re.compile(r"″|''|\"|′′|\bseconds?\b|\^\{?\\prime\s?\\prime")
_MINUTE = re.compile(r"′|'|\bminutes?\b|\\prime")


def other_marks(reference: str, answer: str) -> bool:
    """Say whether an angle in degrees and minutes is answered with seconds in their place, or the reverse."""
    if not (_DEGREE.search(reference) and _DEGREE.search(answer)):
        return False
    return _marks(reference) != (own := _marks(answer)) and bool(own) and not {"S", "M"} <= own


def _marks(text: str) -> frozenset[str]:
    seconds = _SECOND.search(text) is not None
    minutes = _MINUTE.search(_SECOND.sub(" ", text)) is not None
    return frozenset("S" * seconds + "M" * minutes)


# --- directions -------------------------------------------------------------------------------------------------------

_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{left})\b", re.IGNORECASE), re.compile(rf"\b(?:{right})\b", re.IGNORECASE))
    for left, right in (
        (
            r"increas\w+|r[io]se[sn]?|rising|grow(?:th|s|n)?|grew|up|went up|gain(?:s|ed)?|more(?! than)|"
            r"higher(?! than)|climb\w*|raise[sd]?|rais\w+|"
            r"(?:warmer|larger|greater|bigger|taller|heavier|longer)(?! than)",
            r"decreas\w+|f[ae]ll(?:s|en|ing)?|drop(?:s|ped)?|declin\w+|down|loss(?:es)?|los[et]s?|less(?! "
            r"than)|fewer(?! than)|lower(?:ed)?(?! than)|"
            r"reduc\w+|shr[aiu]nk\w*|sank|sinks?|cut|discount|(?:colder|cooler|smaller|shorter|lighter)(?! than)",
        ),
        (r"(?:is|are|has|have) left|remain(?:s|ed|ing)?", r"used|missing|spent|gone|consumed|lost|loses|sold|eaten"),
        (r"(?:does|do|will|would|did) \w+(?: \w+)? have|has", r"owes?|owed|lacks?|lost|loses|missing|short"),
        (r"profits?|earn(?:s|ed|ings)?", r"loss(?:es)?|los[et]s?|deficit|debt"),
        (r"older|elder", r"younger"),
        (r"faster|quicker", r"slower"),
        (r"early|earlier|before", r"late|later|after"),
        (r"north(?:ward)?s?", r"south(?:ward)?s?"),
        (r"east(?:ward)?s?", r"west(?:ward)?s?"),
        (r"above", r"below|beneath|under"),
        (r"clockwise", r"counter-?clockwise|anti-?clockwise"),
        (r"surplus", r"deficit|shortage"),
        (r"maximum|largest|greatest|highest", r"minimum|smallest|least|lowest"),
    )
)
_PER = re.compile(r"[0-9}$] ?(?:[^\W\d_]{1,12} )?per (?!cent|mil|bil|thousand|hundred)[a-z]{3,12}\b")
_RATE = Caseless(
    r"\b(?:per|each|every|rate|speed|fast|velocity|average|unit|price|density|an? (?:second|minute|hour|day|"
    r"week|month|year))\b|/",
)
_ASKS = re.compile(r"[^.?!\n]*\?|\b(?:find|calculate|compute|determine|give|state)\b[^.?!\n]*", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:.!?]\s|\b(?:so|after|if|when|then|and|which|as|because)\b")
_CONTRAST = re.compile(r"[,;(]\s*(?:and |but )?not\b.*$", re.IGNORECASE | re.DOTALL)


def _asking(question: str) -> str:
    """The last sentences of a question that ask for something."""
    return " ".join(_ASKS.findall(question[-4000:])[-2:])


_DIRECTION = Caseless("|".join(side.pattern for pair in _OPPOSITES for side in pair))
"""A first look: any word of :data:`_OPPOSITES`."""


def other_direction(question: str, reference: str, said: str) -> bool:
    """Say whether the sentence with the answer speaks of the opposite of what the question asks for."""
    said = _CONTRAST.sub("", said)
    if len(said) > 300 or not _TWO_LETTERS.search(said):
        return False
    if _DIRECTION.search(said) is None:
        return False
    asked = _asking(question)
    if not asked:
        return False
    for one, other in _OPPOSITES:
        for mine, opposite in ((one, other), (other, one)):
            if (
                opposite.search(said)
                and mine.search(asked)
                and not opposite.search(asked)
                and not mine.search(said)
                and not opposite.search(reference)
            ):
                return True
    return False


def _total(question: str, reference: str) -> bool:
    """Say whether a question asks how much there is, and nothing per anything."""
    asked = _asking(question)
    return (
        re.search(r"\bhow (?:many|much)\b", asked, re.IGNORECASE) is not None
        and _RATE.search(asked) is None
        and re.search(r"[A-Za-z]", reference) is None
    )


# These begin with letters, to which ``re`` can skip.
_RATIO = Caseless(
    r"ratio(?<=\bratio) of (?:the )?(?:number of )?(?P<one>\w+) to (?:the )?(?:number of )?(?P<other>\w+)",
    frequent=True,
)
_IN_RADIANS = Caseless(r"radian(?:(?<=\bto radian)|(?<=\bin radian)|(?<=\binto radian))s?\b", frequent=True)
_DEGREES = re.compile(r"(?:°|\bdegrees?|\bgrad|\^\s?\{?\\circ)\Z", re.IGNORECASE)


def _swapped(question: str, said: str) -> bool:
    """Whether the ratio of boys to girls is given for that of girls to boys."""
    asked = _RATIO.search(question)
    if asked is None:
        return False
    one, other = re.escape(asked["one"]), re.escape(asked["other"])
    return (
        re.search(rf"\b{other}\b[^.]{{0,12}}(?: to |:)[^.]{{0,12}}\b{one}\b", said, re.IGNORECASE) is not None
        and re.search(rf"\b{one}\b[^.]{{0,12}}(?: to |:)[^.]{{0,12}}\b{other}\b", said, re.IGNORECASE) is None
    )


def _same_money(reference: str, text: str) -> bool:
    """Say whether no other currency is named; what counts in 円 may be read without, as a bare number."""
    wanted, said = (
        {value.unit.dimension for value in read(one) if isinstance(value, Scalar) and value.unit is not None}
        for one in (reference, text)
    )
    return not wanted or not said or not wanted.isdisjoint(said)


_TWO_LETTERS = re.compile(r"[A-Za-z]{2}")
_SPOKEN = re.compile(r"(?<!\\)\b[A-Za-z]{3}")


def contradicted(
    question: str, reference: str, lead: str, text: str, after: str, agrees: Callable[[str], bool]
) -> str | None:
    """Say what beside the answer contradicts it, ``None`` if nothing does; ``agrees`` tells whether a text is right."""
    unit = unit_beside(lead, text, after)
    if (
        unit is not None
        and not _asked_in(unit, question)
        and not agrees(f"{text} {unit}")
        and not agrees(f"{plain(text)} {unit}")
    ):
        return "the unit beside the answer contradicts it"
    inside = _INSIDE.search(text)
    if inside is not None and len(inside["unit"]) > 1 and _known(inside["unit"]):
        value = inside["value"].strip("$").rstrip(".,")
        if agrees(value) and not agrees(f"{value} {inside['unit']}"):
            return "the unit beside the answer contradicts it"
    if ("円" in reference or "元" in reference) and not _same_money(reference, text):
        return "the currency is another one"
    if other_marks(reference, text):
        return "minutes and seconds are mixed up"
    before, behind = around(text, agrees) if _SPOKEN.search(text) else ("", "")
    line = "" if after.lstrip(" $.*").startswith("[asy]") else after.partition("\n")[0]
    if before or behind:
        value = text[len(before) : len(text) - len(behind)].strip("$ ")
        beside = unit_beside("", value, behind, closing=True)
        if beside is not None and not _asked_in(beside, question) and not agrees(f"{value} {beside}"):
            return "the unit beside the answer contradicts it"
        near = f"{BREAK.split(before)[-1]} @ {BREAK.split(behind)[0]}"
    else:
        near = f"{_CLAUSE.split(lead)[-1][-60:]} {text} {_CLAUSE.split(line)[0][:40]}"
    if other_direction(question, reference, near):
        return "the direction is the opposite of what is asked for"
    if _swapped(question, f"{lead} {text}"):
        return "the ratio is the other way round"
    if _IN_RADIANS.search(question) and _DEGREES.search(f"{text} {line[:20]}".rstrip(" .*$}")) is not None:
        return "the unit beside the answer contradicts it"
    if _PER.search(f"{text} {line[:40]}") and _total(question, reference):
        return "a rate is stated where none is asked for"
    return None
