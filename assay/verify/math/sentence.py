"""The answer within a sentence: "x = 5, because ...", "She has 5 apples left", "the set $\\{1, 2\\}$"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.verify.caseless import Caseless
from assay.verify.math.read import MAX_LENGTH, read
from assay.verify.math.values import Items, Scalar, Text

_SPAN = re.compile(
    r"\$\$?(?! )([^$]{1,1000})(?<! )\$\$?(?![0-9])|\\\(((?:(?!\\\().){1,1000}?)\\\)|"
    r"\\\[((?:(?!\\\[).){1,1000}?)\\\]|\*\*([^*\n]{1,400})\*\*",
    re.DOTALL,
)
_CONTRAST = re.compile(
    r"(?:[,;(–]\s*(?:and |but )?not|,?\s+(?:rather than|instead of|as opposed to|und nicht|nicht|et non|y no|"
    r"e non|e não|niet|en niet|inte|och inte|a nie|nie|а не))\s+[^,]{1,60}$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:,|;|:|\s[–—-])\s+(?=[A-Za-z])|\s+(?=(?:because|since|as|so|which|where|when|for all|with|by|"
    r"after|if|in total|altogether|in all|"
    r"per|each|every)\b)|\s+(?=\()|,?\s+(?:因为|porque|car|weil|denn|потому)",
    re.IGNORECASE,
)
HEDGE = Caseless(
    r"\b(?:not|never|neither|nor|or|either|maybe|perhaps|possibly|could be|might be|may be|between|"
    r"at least|at most|anything but|anything except|(?<!none )other than|except|apart from|aside from|save "
    r"for|ill-posed|no answer|only one of|no circumstances|contradiction|vicinity|would (?:only "
    r")?be\b[^.]{0,80}\bif|mark\b[^.]{0,40} as|key|placeholder|by no means|in no way|to be rejected|"
    r"(?:slightly|"
    r"just|a bit|a little|barely|shortly|nearly|almost) "
    r"(?:over|under|below|above|off|short)|excluding|far from|opposite of|"
    r"different from|unlike|nowhere near|hardly|cannot|doubt|unclear|ruled out|fails to|nothing to do|(?:more|"
    r"less|fewer|"
    r"greater|larger|smaller) than|"
    r"unsure|impossible|unknown|nobody|no one|unless|instead|wrong|incorrect|ni|nicht|kein|pas|ou|oder)\b|n't\b|"
    r"\b(?:square|cube|reciprocal|inverse|opposite|half|third|double|twice|triple|factorial|base|"
    r"loss)(?: of)?\s+\$?-?[0-9]|"
    r"\btoo (?:many|much|few|little|small|large|big|high|low|long|short)\b|\bmarked (?:as )?(?:correct|right|"
    r"true)\b|\bgrader\b|"
    r"\bno (?:es|son|hay|puede)\b|\bnão\b|\bnon (?:è|sono|può)\b|\bn'est\b|\bniet\b|\binte\b|\bnie jest\b|değil|"
    r"ليس|नहीं|아닙|아니|ではな|ません|"
    r"不是|或|不|не\b|\?|(?<![-=])[<>≠≤≥]|\\(?:neq?|geq?|leq?|gt|lt|geqslant|leqslant)\b|!=",
    frequent=True,
)
_COPULA = re.compile(
    r"(?:\b(?:is|are|was|were|equals|be|becomes|has|have|had|gets|makes|made|earns?|costs?|needs?|"
    r"takes?|sells|pays|spends?|saves?|total of|gives|to|at(?= [0-9])|es|est|ist|sind|son|"
    r"sono|é|è|são|font|fait|vaut|valent|vale|valen|tiene|tienen|jest|będzie|är|har|blir|hat|haben|ergibt|macht|là|"
    r"adalah|ada|είναι|έχει|uguale a|equivale a|fa|fanno|dá|geeft|будет|имеет|это|є|має|je|má)\b|"
    r"[=≈]|:(?![0-9])|是|为|有|は|равен|равно|составляет)\s*",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,/^*+×÷-])(?<![*/+×÷^]\s)(?:[$€£¥₹]\s?)?[-−]?(?:[$€£¥₹]\s?)?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|"
    r"[0-9]+)(?:\.[0-9]+)?(?:/[0-9]+)?(?:\s?%)?(?![A-Za-z0-9_^])(?!\s?[*/+×÷^]\s?(?:[0-9(]|$))(?!\s?[-+=]\s*$)"
)
_STATED = re.compile(r"\b(?:is|are|es|est|ist|sono|son|é|è)\s+(?=\$?[A-Za-z](?:_[0-9])?\s?=)")
"""In front of equations: "the solution is x = 2 and y = 3"."""
_ANY_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_CONCLUSION = re.compile(
    r"^\W*(?:so|therefore|thus|hence|in total|altogether|in all|finally|in conclusion|consequently|"
    r"overall|total|that (?:is|means|makes|gives)|this (?:gives|means|makes)|"
    r"所以|因此|por lo tanto|entonces|donc|also|somit|daher|поэтому|значит)\b",
    re.IGNORECASE,
)


def hedged(text: str) -> bool:
    """Say whether a sentence denies, doubts or gives alternatives, apart from a final ", not 6"."""
    return HEDGE.search(_CONTRAST.sub("", text)) is not None


def without_contrast(text: str) -> str:
    """``text`` without a final ", not 6"."""
    return _CONTRAST.sub("", text)


def candidates(sentence: str, marker: bool) -> Iterator[str]:
    """Yield parts of a sentence that may be the answer it states, best first; the first that can be read decides.

    ``marker`` tells that "the answer is" came before, so the sentence begins with the answer.
    """
    sentence = sentence.strip()
    if not sentence or len(sentence) > MAX_LENGTH:
        return
    if _CONTRAST.search(sentence):
        sentence = _CONTRAST.sub("", sentence)
        yield sentence
    if (stated := _STATED.search(sentence)) is not None:
        yield sentence[stated.end() :]
    spans = [next(g for g in m.groups() if g is not None).strip() for m in _SPAN.finditer(sentence)]
    spans = [s for s in spans if s]
    if spans:
        if len(set(spans)) == 1 or marker:
            outside = _SPAN.sub(" ", sentence)
            if _ANY_NUMBER.search(outside) is None:
                if marker and len(set(spans)) > 1 and sentence[:1] not in "$\\*":
                    yield spans[-1]
                else:
                    yield spans[0] if marker else spans[-1]
        tail = _after_copula(sentence)
        if tail is not None:
            yield tail
        if len(set(spans)) > 1 and not marker:
            yield spans[-1]
    if marker:
        head = _CLAUSE.split(sentence, maxsplit=1)[0].strip()
        if head and head != sentence:
            yield head
            inner = _CLAUSE.split(sentence)
            if len(inner) > 1:
                yield inner[0]
    tail = _after_copula(sentence)
    if tail is not None:
        yield tail
        yield _CLAUSE.split(tail, maxsplit=1)[0].strip()
        if (number := _NUMBER.match(tail)) is not None:
            yield _with_unit(tail, number.group())
    if not marker and (match := last_result(sentence)) is not None:
        yield match
    if any(_ANY_NUMBER.search(span) for span in spans):
        return
    numbers = [m.group() for m in _NUMBER.finditer(sentence)]
    everything = _ANY_NUMBER.findall(sentence)
    if numbers and (len(everything) == 1 or len(set(numbers)) == 1 == len({e.replace(",", "") for e in everything})):
        yield _with_unit(sentence, numbers[-1])
    elif numbers and (_CONCLUSION.match(sentence) or (marker and len(everything) == 1)):
        # A conclusion ends in its answer: "so 3 boxes of 4 make 12 eggs".
        yield _with_unit(sentence, numbers[-1])


_RESULT = re.compile(
    r"=\s*((?:[$€£¥₹]\s?)?-?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|"
    r"[0-9]+)(?:\.[0-9]+)?(?:\s?%)?)(?![\w^/*+])(?!\s?[-+*/×÷^=]\s?[0-9(])"
)


_ALONE = re.compile(r"(?:^|[A-Za-z:]\s+|\$)([0-9][0-9.,]*)\s*$")


def last_result(sentence: str) -> str | None:
    """The number after the last equals sign of a computation, if nothing after it doubts it."""
    last = None
    for match in _RESULT.finditer(sentence):
        last = match
    if last is None or "=" in sentence[last.end() :] or hedged(sentence[last.end() :]):
        return None
    alone = _ALONE.search(sentence[max(last.start() - 40, 0) : last.start()])
    if alone is not None and alone[1].replace(",", "") != last[1].replace(",", ""):
        return None  # "7 = 5"
    return _with_unit(sentence[last.start() :], last[1])


def _after_copula(sentence: str) -> str | None:
    formulas = [m.span() for m in _SPAN.finditer(sentence)]
    last = None
    for match in _COPULA.finditer(sentence):
        if any(start < match.start() < end for start, end in formulas):
            continue
        if sentence[match.end() :].strip():
            last = match
    return None if last is None else sentence[last.end() :].strip()


def _with_unit(sentence: str, number: str) -> str:
    """The number with the word after it, if the two read as a quantity."""
    rest = sentence[sentence.rfind(number) + len(number) :]
    match = re.match(r"\s{0,2}([^\W\d_]{1,20}|°\s?[CF]?)", rest)
    if match is not None:
        both = f"{number} {match[1]}"
        readings = read(both)
        if readings and any(isinstance(r, Scalar) and r.unit is not None and r.unit.known for r in readings):
            return both
    return number


def readable(text: str) -> bool:
    readings = read(text)
    return bool(readings) and not isinstance(readings[0], Text)


def single(text: str) -> bool:
    """Say whether ``text`` reads as one value."""
    readings = read(text)
    return bool(readings) and not isinstance(readings[0], Items)
