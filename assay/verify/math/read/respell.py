"""Further spellings of an answer that people and programs use, each as one that the reader knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from assay.verify.math.expressions.congruence import without_parameter
from assay.verify.math.words.compounds import one_quantity
from assay.verify.math.words.number_words import in_digits, ordinal
from assay.verify.math.words.numerals import chinese
from assay.verify.math.words.rates import as_formula
from assay.verify.math.words.spoken import spoken

_RANK = re.compile(
    r"(?:the )?(?:(?:no|nr|number|term)\.?\s?|#\s?|№\s?|第)([0-9]{1,15})\s?\w{0,12}|"
    r"(?:the )?([0-9]{1,15})(?:st|nd|rd|th|e|º|ª|\.)(?: [^\W\d_]{2,12})?",
    re.IGNORECASE,
)
_SPOKEN_RANK = re.compile(r"(?:the )?((?:[a-z]{4,8}[- ])?[a-z]{4,11})(?: [a-z]{2,12})?", re.IGNORECASE)
_CHINESE_RANK = re.compile(r"第([零〇一二三四五六七八九十百]{1,8})\w?")
_CHINESE_PART = re.compile(r"([0-9]{1,15})\s?分(?:之|の)\s?([0-9]{1,15})")
_CHINESE_SCALE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s?([万萬亿億])\s?([0-9]{1,8})?")
_RATIO = re.compile(
    r"([0-9]{1,9})(?: [^\W\d_]{2,20})?(?:-to-|\{:\}| is to | to | for every | against |比|对)([0-9]{1,9})"
    r"(?: [^\W\d_]{2,20})?"
)
_TEMPERATURE = re.compile(r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?)\s?(?:deg(?:rees?)?\s?)?([CF])")
_CONDITION = re.compile(
    r"(?<=[^<>=!])\s?(?:,|;|\s(?:for|where|if|when|with|and|\()|\()\s?(?:for |where |with )?"
    r"[a-z] ?!= ?[^<>=!]{1,30}\)?$"
)
_BOUNDED = re.compile(r"[<>≤≥∞∈\[∪]|\\(?:le|ge|in|infty|cup)")
"""A set that a condition takes a point from, which is no mere remark."""
_ARROWS = re.compile(r"-?[0-9][0-9./]*(?:\s?(?:⇒|→|->)\s?-?[0-9][0-9./]*){2,20}")
_SPACED_LIST = re.compile(r"-?[0-9]{1,15}(?:\s+-?[0-9]{1,15}){1,40}")
_CROSS = re.compile(r"(?<=[0-9})])\sx\s(?=[0-9({])")
_UNIT_QUOTIENT = re.compile(r"\\frac\s?\{\s?([^\W\d_]{1,12})\s?\}\{\s?([^\W\d_]{1,12}(?:\^\{?[0-9]\}?)?)\s?\}$")
_FORMULA = re.compile(r"(?!.*(?<![\\A-Za-z])[A-Za-z]{4})(?=.*[=^/{(+])", re.DOTALL)
_RUN = re.compile(
    r"(?<![\\A-Za-z])(?!(?:ln|log|lg|sin|cos|tan|exp|lim|max|min|mod|gcd|lcm|deg|and|or|if|for|not|is|in|of|to|at|"
    r"by|as|on|are|the|an|no|we|it|all|but|per|iff)\b)[A-Za-z]{2,3}(?![A-Za-z])"
)
"""Letters that stand side by side as factors."""
_ONE_WAY = re.compile(r"(?:[-+0-9.{}()^/*\s=√π!_xyn]|\\frac|\\sqrt)*")
_SIDE_BY_SIDE = re.compile(r"[0-9)}]\s(?:[0-9]|[xy]\s)")
"""Formulas that can be read in one way only are the first of these without the second."""


def always(text: str) -> Iterator[str]:
    """Yield what ``text`` may mean besides what it says at first sight."""
    if _ONE_WAY.fullmatch(text) is not None and _SIDE_BY_SIDE.search(text) is None:
        return
    for change in (one_quantity, as_formula, without_parameter):
        said = change(text)
        if said is not None:
            yield said
    if ("≠" in text or "!=" in text) and (match := _CONDITION.search(text)) is not None:
        yield from [text[: match.start()]] if not _BOUNDED.search(text[: match.start()]) else []
    if text[-1] in "CF" and (match := _TEMPERATURE.fullmatch(text)) is not None:
        yield f"{match[1]} °{match[2].upper()}"
    if ("⇒" in text or "→" in text or "->" in text) and _ARROWS.fullmatch(text) is not None:
        yield ", ".join(re.split(r"\s?(?:⇒|→|->)\s?", text))
    if " " in text and _SPACED_LIST.fullmatch(text) is not None:
        yield ", ".join(text.split())
    if " x " in text and (product := _CROSS.sub(" * ", text)) != text:
        yield product
    if "frac" in text and (unit := _UNIT_QUOTIENT.sub(r" \1/\2", text)) != text:
        yield unit
    if not text.isascii():
        yield from _chinese(text)


def unread(text: str) -> Iterator[str]:
    """Yield spellings of a text in which no mathematics could be read, the likeliest first."""
    if text[:1] == "{" and text[-1:] == "}":
        yield text.strip("{} ")
    digits = in_digits(text) if len(text) <= 400 else text
    for said in dict.fromkeys((text, digits)):
        if (match := _RATIO.fullmatch(said)) is not None:
            yield f"{match[1]} : {match[2]}"
    if (formula := spoken(text)) is not None:
        yield formula
    if _FORMULA.match(text) is not None and (product := _RUN.sub(lambda m: " ".join(m[0]), text)) != text:
        yield product
    if digits != text:
        yield from always(digits)
        yield digits
    if (match := _RANK.fullmatch(text)) is not None:
        yield match[1] or match[2]
    elif (match := _SPOKEN_RANK.fullmatch(text)) is not None:
        found = ordinal(match[1]) or ordinal(match[1].split()[0])
        if found is not None:
            yield str(found)


def _chinese(text: str) -> Iterator[str]:
    if (match := _CHINESE_RANK.fullmatch(text)) is not None and (rank := chinese(match[1])) is not None:
        yield str(rank)
    if (match := _CHINESE_PART.fullmatch(text)) is not None:
        yield f"{match[2]}/{match[1]}"
    if (match := _CHINESE_SCALE.fullmatch(text)) is not None:
        yield str(Fraction(match[1]) * (10**4 if match[2] in "万萬" else 10**8) + int(match[3] or 0))
