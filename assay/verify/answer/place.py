"""Where in a response, as it stands, a verifier reads the final answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from assay.types import Task
from assay.verify.answer.extract import RULES, SPANS, Fallback, finder
from assay.verify.answer.spans import Span


class _Reads(Protocol):
    @property
    def rules(self) -> Sequence[str]: ...

    @property
    def fallback(self) -> Fallback: ...


class Marked:
    """The method ``answer`` of a verifier that reads what its ``rules`` mark, and else its ``fallback``."""

    __slots__ = ()

    def answer(self: _Reads, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`."""
        return marked(response, self.rules, self.fallback)


def marked(text: str, rules: Sequence[str] = RULES, fallback: Fallback = "line") -> Span | None:
    """Return where :func:`~assay.verify.answer.extract.extract` finds the answer, without white space around it.

    The mark begins where the first rule that found one did, so that ``<answer>It is 5</answer>`` is opened by
    ``<answer>``. ``None`` for an answer that is blank. A rule ``json:`` says what the answer is and not where: it is
    looked for by its text.
    """
    begin, over = 0, len(text)
    start, end, found = 0, len(text), False
    for rule in rules:
        span = _by_rule(rule, text[start:end])
        if span is None:
            continue
        if not found:
            begin, over = start + span.begin, start + span.over
        start, end, found = start + span.start, start + span.end, True
    if not found:
        if fallback == "none":
            return None
        kept = text.rstrip()
        start = begin = kept.rfind("\n") + 1 if fallback == "line" else 0
        end = over = len(kept)
    place = stripped(text, Span(begin, start, end, over))
    # Nothing opens an unmarked answer.
    return place if place is None or found else Span(place.start, place.start, place.end, place.end)


def within(text: str, said: str, span: Span | None = None) -> Span | None:
    """Return where ``said`` stands last in a text; with a mark, within it, and opened and closed by it."""
    said = said.strip()
    if not said:
        return None
    start = text.rfind(said, *((span.start, span.end) if span is not None else (0, len(text))))
    if start < 0:
        return None if span is None else stripped(text, span)
    end = start + len(said)
    return Span(start, start, end, end) if span is None else Span(span.begin, start, end, span.over)


def stripped(text: str, span: Span) -> Span | None:
    """Return a place without the white space around its answer; ``None`` if that is all there is."""
    inner = text[span.start : span.end]
    if not inner.strip():
        return None
    start, end = span.start + len(inner) - len(inner.lstrip()), span.end - len(inner) + len(inner.rstrip())
    return Span(span.begin, start, end, span.over)


def _by_rule(rule: str, text: str) -> Span | None:
    if rule in SPANS:
        return next(reversed(SPANS[rule](text)), None)
    if not rule.startswith("regex:"):
        said = finder(rule)(text)
        return None if said is None else within(text, said)
    last = None
    for last in re.finditer(rule[6:], text, re.DOTALL):  # noqa: B007  the last one is wanted
        pass
    if last is None or last.start(last.re.groups and 1) < 0:
        return None
    return Span(last.start(), *last.span(1 if last.re.groups else 0), last.end())
