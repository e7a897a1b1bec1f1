"""Signs and words before a value that make it no answer: ``x ≠ 5``, ``under 18``, ``O(16)``, a start at ``x_0``."""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.governed import around

_EXCLUDED = re.compile(
    r"(?:≠|(?<![0-9A-Za-z)}])!=|<>|=/=|\\neq?(?![a-z])|\\not\s?(?:=|\\in(?![a-z])|\\equiv(?![a-z]))|∉|∌|"
    r"\\notin(?![a-z])|≢|"
    r"\\nsim(?![a-z])|≁|¬|\\(?:neg|lnot)(?![a-z]))[\s$({\[\\]*$"
)
_SIGN = re.compile(r"[≠∉∌≢≁¬]|!=|<>|=/=|\\n(?:e|ot|sim)|\\lnot")
_VALUE = re.compile(r"[-−]?[0-9][0-9.,/]*")
_NO_NUMBER = re.compile(r"^[^0-9\\]*$|\\(?:text|mathrm|infty|cup)|[∞∪]")
_BOUND = re.compile(
    r"\b(?:under|over|below|above|beyond|beneath|past|exceeds?|exceeding|"
    r"(?<!add )(?<!adds )(?<!adding )(?<!added )(?<!sum )(?<!sums )up to|upwards? of|(?:of|on) (?:the|an) order of|"
    r"(?<![0-9] )times|bounded (?:above |below )?by)[\s$*\\({]*$|"
    r"(?<![\w\\])\\?(?:mathcal\{)?[oOΘΩο]\}?\s?(?:\\left)?\(\s?$",
    re.IGNORECASE,
)
_RELATED = Caseless(
    r"\b(?:(?:less|more|greater|fewer|smaller|larger|bigger|higher|lower|(?<!none )other|rather|different|better|"
    r"worse) than|"
    r"at (?:least|most)|twice|half(?: of)?|almost|nearly|nowhere near|far from|close to|divisible by|proportional to|"
    r"(?:double|triple|square|cube|negative|reciprocal|inverse|opposite|multiple|factor|divisor|root|part) of|"
    r"similar to|"
    r"different from|distinct from|(?<!nothing )(?<!none )but|short of)(?: the (?:value|number|answer|"
    r"result))?[\s$*\\({]*(?:[a-z]\s?=\s*)?$",
)
"""A relation in words that the answer has to the value."""
_COMPARED = re.compile(r"[<>≤≥∞]|\\[lg]e(?:q|qslant)?(?![a-z])|\\[lg]t(?![a-z])|\\infty|\bthan\b|\bat (?:least|most)\b")
_EXTREME = Caseless(r"\b(?:greatest|largest|biggest|smallest|least|most|maximum|minimum|maximal|minimal|how many)\b")
_START = re.compile(
    r"\b(?:(?:we|i|you|one|me|us|let'?s) (?:can |could |may |will |now |first )?(?:start|begin)\b|(?:start|begin|"
    r"initiali[sz])\w*\b"
    r"(?=[^0-9]{0,80}[A-Za-z]\s?_?\{?[0₀]\}?\s?=)|(?:starting|initial|first|trial) (?:values?|points?|guess|estimate|"
    r"approximation|iterate|seed)\b)[^0-9,;.]{0,60}(?:[A-Za-z]\s?_?\{?[0₀]\}?\s?=\s?)?[\s$*\\({]*$",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[a-z]{3,}", re.IGNORECASE)
_TRIGGER = Caseless(
    r"\b(?:under|over|below|above|beyond|beneath|past|exceed\w*|up to|upwards? of|order of|times|bounded (?:\w+ "
    r")?by)\b|"
    r"[oθωο]\}?\s?(?:\\left)?\(\s?[-−]?[0-9]|"
    r"start|begin|initial|guess|estimate|first|trial"
)
"""A first look: a word of a bound or of a search."""
_SOMEWHERE = re.compile(
    "|".join(p.pattern.replace(r"[\s$*\\({]*$", "").replace(r"\(\s?$", r"\(") for p in (_BOUND, _START)), re.IGNORECASE
)
"""A second one: such words wherever they stand, which is cheaper to ask than where the value is."""


def excluded(lead: str, said: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a sign of inequality or of non-membership stands before the right value, wherever it is stated.

    Args:
        lead: what stands before ``said`` in its sentence.
        said: the text that states the right value, and the rest of its line.
        reference: one that holds such a sign is not asked about.
        agrees: whether a text is the reference.
    """
    text = f"{lead} {said}"[-1200:]
    if _SIGN.search(text) is None or _SIGN.search(reference):
        return False
    places = [value.start() for value in _VALUE.finditer(text) if agrees(value.group().rstrip(".,"))]
    written = reference.strip(" $.")
    if not places and written:
        places = [match.start() for match in re.finditer(re.escape(written), text)]
    return bool(places) and all(_EXCLUDED.search(text[max(place - 16, 0) : place]) for place in places)


def bounded(lead: str, said: str, question: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether the right value is a bound, an order of magnitude or the start of a search that nobody asked for.

    Args:
        lead: what stands before ``said`` in its sentence.
        said: the text that states the right value, and the rest of its line.
        question: a word of it is no reason against an answer.
        reference: one without a number, and one that compares, is not asked about.
        agrees: whether a text is the reference.
    """
    if _NO_NUMBER.search(reference) or _COMPARED.search(reference) or _TRIGGER.search(f"{lead} {said}") is None:
        return False
    if _SOMEWHERE.search(f"{lead} {said}") is None:
        return False
    before, _ = around(f"{lead} {said}", agrees, reference)
    for pattern in (_BOUND, _START):
        if (found := pattern.search(before[-120:])) is not None:
            word = _ASKED.search(found.group())
            return word is None or word.group().casefold() not in question.casefold()
    return False


def related(lead: str, text: str, question: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether words before the right value compare the answer with it: ``The answer is less than 42.``

    Args:
        lead: what stands before ``text`` in its sentence.
        text: the text that states the right value.
        question: where it asks for an extreme, a bound is the answer.
        reference: one that compares is not asked about.
        agrees: whether a text is the reference.
    """
    before = "" if agrees(text) else around(text, agrees, reference)[0]
    found = _RELATED.search(f"{lead} {before}"[-80:])
    if found is None or _COMPARED.search(reference):
        return False
    return not (found.group().casefold().startswith("at ") and _EXTREME.search(question))


__all__ = ["bounded", "excluded", "related"]
