"""Further spellings of an answer that people and programs use, each as one that the reader knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from assay.verify.math.arrays import in_brackets
from assay.verify.math.compounds import one_quantity
from assay.verify.math.congruence import without_parameter
from assay.verify.math.number_words import in_digits, ordinal
from assay.verify.math.numerals import chinese
from assay.verify.math.rates import as_formula
from assay.verify.math.spoken import spoken

_RANK = re.compile(
    r"(?:the |le |la |el |der |die |das )?(?:(?:no|nr|nº|num(?:ber)?|term)\.?\s?|#\s?|№\s?|第)"
    r"([0-9]{1,15})\s?\w{0,12}|(?:the |le |la |el )?([0-9]{1,15})(?:st|nd|rd|th|e|ème|er|º|ª|\.)(?: [^\W\d_]{2,12})?",
    re.IGNORECASE,
)
_SPOKEN_RANK = re.compile(r"(?:the )?((?:[a-z]{4,8}[- ])?[a-z]{4,11})(?: [a-z]{2,12})?", re.IGNORECASE)
_CHINESE_RANK = re.compile(r"第([零〇一二三四五六七八九十百]{1,8})\w?")
_CHINESE_PART = re.compile(r"([0-9]{1,15})\s?分(?:之|の)\s?([0-9]{1,15})")
_CHINESE_SCALE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s?([万萬亿億])\s?([0-9]{1,8})?")
_MENTIONED = re.compile(
    r"(?:an?|the) (?:[a-z]{3,15} ){0,3}?(?:of|is|equals) (?=[-+$€£¥₹(]?\s?[-0-9√\\.])", re.IGNORECASE
)
_MEASURES = re.compile(
    r"\b(?:speed|velocity|acceleration|rate|probability|chance|likelihood|total|value|amount|area|volume|"
    r"length|distance|"
    r"height|width|depth|cost|price|profit|average|mean|median|mode|weight|mass|time|duration|age|temperature|angle|"
    r"perimeter|circumference|radius|diameter|slope|ratio|percentage|score|maximum|minimum|balance|salary|"
    r"increase|odds|"
    r"change|capacity|density|pressure|force|energy|power|frequency|period|remainder|result|answer|"
    r"sum|number|count|interest|revenue|coefficient|gradient|magnitude|size|sentence|limit) (?:of|is|equals) $",
    re.IGNORECASE,
)
_RATIO = re.compile(
    r"([0-9]{1,9}) [^\W\d_]{2,20} (?:to|for every|per|for each|against|vs\.?|versus) ([0-9]{1,9}) [^\W\d_]{2,20}",
    re.IGNORECASE,
)
_RATIO_WORDS = re.compile(
    r"([0-9]{1,9})(?:-to-|\{:\}| is to | against | for every |"
    r" zu | a | à | к | до | do | tot | til | till | para |比|对)([0-9]{1,9})"
)
_RATIO_IS = re.compile(
    r"(?:the |their |its )?ratio (?:of [^\d:=]{1,60} )?(?:is|=|equals) (?=[0-9])|"
    r"[^\d:=]{1,40} ?: ?[^\d:=]{1,40} ?(?:=|is) ?(?=[0-9])",
    re.IGNORECASE,
)
_DESCRIBED = re.compile(
    r"(?:all|any|every|each|the set of|the (?:open|closed)|[a-z] (?:is|must|can|at|less|greater))\s", re.IGNORECASE
)
_TEMPERATURE = re.compile(r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?)\s?(?:deg(?:rees?)?\s?)?([CF])")
_CONDITION = re.compile(
    r"(?<=[^<>=!])\s?(?:,|;|\s(?:for|where|if|when|provided(?: that)?|with|and|\()|\()\s?(?:for |where |"
    r"provided |with )?[a-z] ?!= ?[^<>=!]{1,30}\)?$"
)
_BOUNDED = re.compile(r"[<>≤≥∞∈\[∪]|\\(?:le|ge|in|infty|cup)")
"""A set that a condition takes a point from, which is no mere remark."""
_ARROWS = re.compile(r"-?[0-9][0-9./]*(?:\s?(?:⇒|→|->|,? then)\s?-?[0-9][0-9./]*){2,20}")
_PRECISION = re.compile(
    r"\s?[,;(]\s?(?:correct |rounded |accurate )?(?:to |at )?(?:the )?(?:nearest \w+|(?:\w+ )?(?:d\.\s?p\.|dp|"
    r"decimals?(?: places?)?|"
    r"s\.\s?f\.|sf|sig(?:nificant|\.)? ?(?:fig(?:ure)?s?|digits?)\.?|decimal digits))\)?$",
    re.IGNORECASE,
)
_SPACED_LIST = re.compile(r"-?[0-9]{1,15}(?:\s+-?[0-9]{1,15}){1,40}")
_CROSS = re.compile(r"(?<=[0-9})])\sx\s(?=[0-9({])")
_UNIT_QUOTIENT = re.compile(r"\\frac\s?\{\s?([^\W\d_]{1,12})\s?\}\{\s?([^\W\d_]{1,12}(?:\^\{?[0-9]\}?)?)\s?\}$")
_REMARK = re.compile(
    r"\s?[,;(–—-]\s?(?:as (?:required|needed|desired|expected|claimed|requested|stated|asked|wanted|promised|"
    r"shown|before|above)|"
    r"exactly|in total|altogether|overall|of course|indeed|qed|done|to be exact|in all|all together|"
    r"in simplest form|in lowest terms|fully simplified|simplified|reduced|exact|verified|checked)\W{0,3}$",
    re.IGNORECASE,
)
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
    for change in (one_quantity, as_formula, in_brackets):
        said = change(text)
        if said is not None:
            yield said
    if (bare := without_parameter(text)) is not None:
        yield bare
    if (
        ("≠" in text or "!=" in text)
        and (match := _CONDITION.search(text)) is not None
        and not _BOUNDED.search(text[: match.start()])
    ):
        yield text[: match.start()]
    if text[-1] in "CF" and (match := _TEMPERATURE.fullmatch(text)) is not None:
        yield f"{match[1]} °{match[2].upper()}"
    if ("⇒" in text or "→" in text or "->" in text or "then" in text) and _ARROWS.fullmatch(text) is not None:
        yield ", ".join(re.split(r"\s?(?:⇒|→|->|,? then)\s?", text))
    if ("(" in text or "," in text) and (precise := _PRECISION.search(text)) is not None and precise.start():
        yield text[: precise.start()]
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
    if (said := _REMARK.sub("", text)) != text:
        text = said
        yield text
        yield from always(text)
    if text[:1] == "{" and text[-1:] == "}":
        yield text.strip("{} ")
    measured = _MENTIONED.match(text)
    if measured is not None and _MEASURES.search(measured.group()):
        text = text[measured.end() :]
        yield text
        yield from always(text)
    if (match := _RATIO_IS.match(text)) is not None:
        text = text[match.end() :]
        yield text
    digits = in_digits(text) if len(text) <= 400 else text
    for said in dict.fromkeys((text, digits)):
        if (match := _RATIO.fullmatch(said) or _RATIO_WORDS.fullmatch(said)) is not None:
            yield f"{match[1]} : {match[2]}"
    if (formula := spoken(text)) is not None:
        yield formula
    if _FORMULA.match(text) is not None and (product := _RUN.sub(lambda m: " ".join(m[0]), text)) != text:
        yield product
    if digits != text:
        yield from always(digits)
        yield digits
    if (rank := _rank(text)) is not None:
        yield rank


def _rank(text: str) -> str | None:
    match = _RANK.fullmatch(text)
    if match is not None:
        return match[1] or match[2]
    match = _SPOKEN_RANK.fullmatch(text)
    if match is None:
        return None
    found = ordinal(match[1]) or ordinal(match[1].split()[0])
    return None if found is None else str(found)


def _chinese(text: str) -> Iterator[str]:
    if (match := _CHINESE_RANK.fullmatch(text)) is not None and (rank := chinese(match[1])) is not None:
        yield str(rank)
    if (match := _CHINESE_PART.fullmatch(text)) is not None:
        yield f"{match[2]}/{match[1]}"
    if (match := _CHINESE_SCALE.fullmatch(text)) is not None:
        scale = 10**4 if match[2] in "万萬" else 10**8
        value = Fraction(match[1]) * scale + int(match[3] or 0)
        yield str(value)
