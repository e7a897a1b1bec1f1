"""Which options a text names, and which of them it chooses."""

from __future__ import annotations

import bisect
import itertools
import operator
import re
from dataclasses import dataclass
from typing import NamedTuple

from assay.verify.answer.commit import alternatives, denied, negated
from assay.verify.answer.options import Options, folded, plain

DENIED = "it only says what it is not"
MAX_CHARS = 4000
"""Characters at the beginning of an answer that are read."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a text says of the options.

    Attributes:
        chosen: the labels it chooses; several where it lists them as one.
        named: all labels it names, by letter or by text.
        fault: why it chooses none although it names some.
    """

    chosen: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    fault: str = ""


class _Place(NamedTuple):
    start: int
    end: int
    labels: frozenset[str]


def read(text: str, options: Options, content: bool = True) -> Said:
    """Return what ``text`` chooses: its first label, or without labels the first option whose text it holds.

    A text that touches the label must be its own, and labels that a comma, a short word or an "or" joins to it are
    chosen, too, or make it no choice. What comes after other words is not looked at: reasons speak of other options.

    Args:
        text: what a mark frames, or a sentence.
        options: what may be chosen.
        content: an option may be named by its text.
    """
    text = plain(text[:MAX_CHARS])
    if (label := options.bare(text)) is not None:
        return Said(frozenset([label]), frozenset([label]))
    if content and (same := options.named(text)):
        return Said(same, same) if len(same) == 1 else Said(frozenset(), same, "two options read so")
    if _glued(text, options):
        return Said(frozenset(text), frozenset(text))
    texts, taken = _texts(text, options)
    labels = _labels(text, options, texts, taken)
    places = labels or (texts if content else [])
    if not places:
        return Said()
    named = frozenset[str]().union(*(place.labels for place in places))

    def at_fault(reason: str) -> Said:
        return Said(frozenset(), named, reason)

    if _denied(text[max(places[0].start - 40, 0) : places[0].start]) or _refuted(text[places[0].end :]):
        return at_fault(DENIED)
    for one, other in itertools.pairwise(sorted([*labels, *texts], key=_START)):
        joint = text[one.end : other.start]
        if not one.labels & other.labels and alternatives(joint) and _JOINT.fullmatch(joint):
            return at_fault(f"it does not choose between {show(one.labels | other.labels)}")
    chosen, over = frozenset[str](), 0
    for k, place in enumerate(places):
        between = text[over : place.start]
        if k and not place.labels <= chosen:
            if alternatives(between):
                return at_fault(f"it does not choose between {show(named)}")
            if _denied(between) or not _JOINT.fullmatch(between):
                break
        if labels and (own := _beside(place, text, texts, before=k == 0)) is not None:
            if not place.labels & own.labels:
                return at_fault(f"{show(place.labels)} with the text of {show(own.labels)}")
            over = max(over, own.end)
        elif len(place.labels) > 1:
            return at_fault("two options read so")
        chosen, over = chosen | place.labels, max(over, place.end)
    return Said(chosen, named)


def _glued(text: str, options: Options) -> bool:
    """Whether a text is labels without anything between them, ``ACD``; in their order, where any word may be meant."""
    ordered = options.texts or list(text) == sorted(text)
    return bool(1 < len(text) == len(set(text)) and ordered and set(text) <= options.written.keys())


def show(labels: frozenset[str]) -> str:
    """Return labels for a line of feedback."""
    return ", ".join(sorted(labels)) or "nothing"


_LETTER = r"[^\W\u0e00-\u0e7f\u2e80-\uffff]"  # scripts without blanks touch a label: 选B
_TOKEN = re.compile(
    rf"(?<!{_LETTER})(?<!['’^\\])(?<![A-Za-z]-)(?<!\b[Nn]/)[A-Za-z0-9]{{1,3}}"
    rf"(?!{_LETTER}|\^|-[A-Za-z]|['’](?:s|m|d|ve|ll|re)\b)"
)
_CUE = re.compile(r"(?:options?|choices?|answers?|letters?)(?: (?:is|are))?\s?:?\s?\(?$", re.IGNORECASE)
_ARTICLE = re.compile(r" ((?!(?:is|was|are|and|as|because|since|but|not|for|with|to|through)\b)[a-z]\w*)")
_OPENS = re.compile(r"$|[),:;]|\.(?!\d)|(?<=[b-hj-z]) (?=[a-z])")


def _labels(text: str, options: Options, texts: list[_Place], taken: bytearray) -> list[_Place]:
    """The labels that stand by themselves; an article, a pronoun, a number and a small letter in prose are none."""
    found = []
    for match in _TOKEN.finditer(text):
        symbol, (start, end) = match.group(), match.span()
        label = options.label(symbol)
        if label is None or taken[start]:
            continue
        cued = _CUE.search(text, max(start - 20, 0), start) is not None
        word = _ARTICLE.match(text, end) if symbol in "AaIi" and not cued else None
        if word is not None and not alternatives(word[1]):
            own = _behind(texts, end)
            if own is None or own.start != end + 1 or label not in own.labels:
                continue
        plainly = symbol == label and len(symbol) == 1 and symbol.isupper()
        framed = text[start - 1 : start] == "(" and text[end : end + 1] == ")"
        opens = not text[:start].strip("( ") and _OPENS.match(text, end) is not None
        if plainly or framed or opens or cued:
            found.append(_Place(start, end, frozenset([label])))
    return found


def _texts(text: str, options: Options) -> tuple[list[_Place], bytearray]:
    """Where options' texts stand as whole words, the longest first where two overlap, and a 1 for each character."""
    low, taken = folded(text), bytearray(len(text) + 1)
    found: list[_Place] = []
    for said, labels in options.texts:
        start = low.find(said)
        while start >= 0:
            end = start + len(said)
            if _whole(low, start, end) and not any(taken[start:end]):
                taken[start:end] = b"\1" * len(said)
                found.append(_Place(start, end, labels))
            start = low.find(said, end)
    return sorted(found, key=_START), taken


_START = operator.attrgetter("start")


def _behind(texts: list[_Place], place: int) -> _Place | None:
    """The first text that begins at a place or later."""
    at = bisect.bisect_left(texts, place, key=_START)
    return texts[at] if at < len(texts) else None


_SPACED = re.compile(_LETTER)
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{2}")
_GOES_ON = re.compile(r"\s?[+*/^=<>%_\\-]|[.,]?\d|\s\d")
_BEGAN = re.compile(r"[+*/^\\<>_-]\s?$|\d[., ]?$")


def _whole(text: str, start: int, end: int) -> bool:
    """Say whether ``text[start:end]`` is no part of a longer word, number or formula."""
    if text[start].isalnum() and _SPACED.match(text[start - 1 : start]):
        return False
    if text[end - 1].isalnum() and _SPACED.match(text, end):
        return False
    if _WORD.search(text, start, end) is not None:
        return True
    return not (_BEGAN.search(text[max(start - 2, 0) : start]) or _GOES_ON.match(text, end))


_DRESS = r"[\s().,:;=<>#/&+|\-—]*"
_GAP = re.compile(_DRESS)
_JOINT = re.compile(
    rf"{_DRESS}(?:(?:[^\W\d_]{{1,3}}|as well as|through|options?|choices?|answers?)(?![^\W\d_]){_DRESS}){{0,2}}",
    re.IGNORECASE,
)
"""What joins two labels: at most two short words, in any language."""


def _beside(label: _Place, text: str, texts: list[_Place], before: bool) -> _Place | None:
    """The text that a label touches: the one behind it or, if ``before``, else the one before it."""
    other = _behind(texts, label.end)
    if other is not None and _GAP.fullmatch(text, label.end, other.start):
        return other
    at = bisect.bisect_left(texts, label.start, key=_START) if before else 0
    return texts[at - 1] if at and _GAP.fullmatch(text, texts[at - 1].end, label.start) else None


_STRUCK = re.compile(r"(?:!=?|\\(?:neg|lnot|not|[bx]?cancel|sout)) ?\(?$")


def _denied(before: str) -> bool:
    """Say whether what comes before a label denies it: ``not``, ``!``, a stroke through it."""
    before = _CUE.sub("", before)
    return denied(before) or _STRUCK.search(before) is not None


_COPULA = re.compile(r"\)?\s(?:is|are|was|were|do|does|did|can|could|would|must)(?=\s|n['’]t\b|not\b)")


def _refuted(after: str) -> bool:
    """Say whether what comes after a label denies it: ``is not``, ``isn't``."""
    copula = _COPULA.match(after)
    return copula is not None and (after[copula.end()] in "n" or negated(after[copula.end() :]))


__all__ = ["DENIED", "MAX_CHARS", "Said", "read", "show"]
