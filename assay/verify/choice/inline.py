r"""A response with its marked answers written as plain words: ``The answer is not \boxed{B}.`` says ``not B``.

A marker says where the answer stands, not that it is one: the words around it and in it are judged like any others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.verify.answer.spans import Span, boxes, hashes, tags

_MATH = re.compile(r"\$\$?|\\[\[\]()]")
_COMMAND = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|rm|bf|emph)\s?(?=\{)")
_CROSSED = re.compile(r"\\(?:[xb]?cancel|sout|st|phantom)\s?\{\s*(?:\\[a-z]+\s?\{)?\s?\(?(?:\\f?boxed|[A-Z0-9])")
_NEGATED = re.compile(
    r"(?:\\f?boxed\s?\{|<answer>|:|\bis)[\s{$(*]*(?:\\(?:text|mathrm)\s?\{)?\s?(?:\\(?:not|neg|lnot|neq?|sim)(?![A-Za-z])|[¬≠])|"
    r"(?:\\(?:not|neg|lnot|neq?)|[¬≠])\s*\\f?boxed"
)


def inlined(response: str) -> str:
    """Return ``response`` with the contents of boxes, tags and hashes in place of the markers; linear time."""
    text = response
    for spans in (tags, boxes):
        text = _opened(text, spans(text))
    if "####" in text:
        text = _opened(text, hashes(text))
    return _COMMAND.sub("", _MATH.sub("", text)) if "$" in text or "\\" in text else text


def struck(response: str, options: Mapping[str, str]) -> bool:
    r"""Say whether a label or a box near the end is crossed out or negated: ``\cancel{B}``, ``\boxed{\neg B}``."""
    text = response[-400:]
    if _CROSSED.search(text) is not None:
        return True
    formal = any(_NEGATED.search(f": {value}") for value in options.values())
    return not formal and _NEGATED.search(text) is not None


def _opened(text: str, spans: list[Span]) -> str:
    """Leave out the markers of ``spans``, which may hold one another."""
    cuts = sorted({(span.begin, span.start) for span in spans} | {(span.end, span.over) for span in spans})
    kept: list[str] = []
    place = 0
    for start, end in cuts:
        if start >= place:
            kept.append(text[place:start])
            place = end
    return "".join((*kept, text[place:]))
