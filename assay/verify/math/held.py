"""Whether an answer of the right value is given as the answer: every acceptance passes here."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from fractions import Fraction

from assay.verify.math.context import Context
from assay.verify.math.contradicted import contradicted
from assay.verify.math.demanded import transforms, undemanded
from assay.verify.math.elsewhere import elsewhere
from assay.verify.math.english import unfamiliar
from assay.verify.math.equal import matches
from assay.verify.math.final import Final
from assay.verify.math.frames import strange
from assay.verify.math.governed import around, negated, softened
from assay.verify.math.mentioned import mentioned
from assay.verify.math.multiplied import multiplied
from assay.verify.math.offered import offered, repeated
from assay.verify.math.overtaken import overtaken
from assay.verify.math.read import read
from assay.verify.math.second import announced_again
from assay.verify.math.signs import bounded, excluded
from assay.verify.math.stance import uncommitted
from assay.verify.math.values import Date, Items, Matrix, Relation, Scalar, Truth


def refused(question: str, reference: str, final: Final, context: Context, response: str) -> str | None:
    """Say why an answer of the right value is none all the same, ``None`` if it is one."""
    # The same few texts are asked about again and again, the answer itself most of all; it was found to be right.
    asked: dict[str, bool] = {}

    def agrees(text: str) -> bool:
        if (known := asked.get(text)) is None:
            known = asked[text] = _agrees(reference, context, final.text, text)
        return known

    if (reason := uncommitted(final, reference, agrees)) is not None:
        return reason
    if ("nless" in response or "pposite d" in response) and _UNLESS.search(response[-400:]) is not None:
        return "the answer depends on a condition"
    if not _PLAIN.fullmatch(f"{final.lead}|{final.text}|{final.after[:200]}"):
        if (reason := _spoken_against(question, reference, final, response, agrees)) is not None:
            return reason
    elif repeated(response, final.after, reference, agrees):
        return "another answer is offered beside it"
    if not context.options and context.form and ("≈" in final.text or "approx" in final.text or transforms(question)):
        strictly = functools.partial(_agrees, reference, context.but(approximate=False, exact=True), "")
        if (reason := undemanded(question, reference, final.text, strictly)) is not None:
            return reason
        before, behind = around(final.text, agrees)
        if (before or behind) and "round" in question.casefold() and "=" not in final.text:
            value = final.text[len(before) : len(final.text) - len(behind)]
            return undemanded(question, reference, value, strictly)
    return None


_PLAIN = re.compile(
    r"\W*(?:(?:so|thus|hence|therefore),? )?(?:(?:the|our|my) )?(?:(?:final|correct) )?(?:answer|result)?(?: is)?\W*\|"
    r"(?:[-+0-9.,/ {}$]|\\d?frac)*\|[\s$.*)\]\\}]{0,200}",
    re.IGNORECASE,
)
"""A number with nothing said around it."""


def _spoken_against(
    question: str, reference: str, final: Final, response: str, agrees: Callable[[str], bool]
) -> str | None:
    line = final.after.partition("\n")[0][:200]
    said = f"{final.text} {line}"
    if negated(final.lead, said, final.marker, reference, agrees):
        return "the answer is denied"
    if excluded(final.lead, said, reference, agrees):
        return "the answer is denied"
    if bounded(final.lead, said, question, reference, agrees):
        return "the answer is a bound or a start"
    if mentioned(final.lead, said, final.after, question, reference, agrees):
        return "the answer is mentioned, not given"
    if multiplied(said, question, reference, agrees):
        return "a word behind the answer makes another number of it"
    if softened(final.lead, said, question, reference, agrees):
        return "the answer is a guess"
    if not final.framed and strange(final.lead, final.text, question, reference, agrees):
        return "words around the answer are not known to be harmless"
    if not final.marker and overtaken(said, reference, agrees):
        return "it goes on to another answer"
    if not final.marker and (word := unfamiliar(final.lead, final.text, line, question, reference)) is not None:
        return f"{word!r} beside the answer is not known to be harmless"
    if announced_again(final.text, final.after, reference, agrees):
        return "it goes on to another answer"
    if not final.marker and (thing := elsewhere(final.lead, said, question, reference, agrees)) is not None:
        return f"it is about something else: {thing!r}"
    if "\n" in final.text and agrees(final.text):
        return None  # several answers, each on a line of its own
    if offered(response, said, final.after, reference, agrees):
        return "another answer is offered beside it"
    return contradicted(question, reference, final.lead, final.text, final.after, agrees)


_UNLESS = re.compile(r"\bunless (?:i|we|my|our|i'[a-z]+|we'[a-z]+)\b|\bopposite day\b", re.IGNORECASE)
"""Whoever may be wrong gives no answer."""


def _agrees(reference: str, context: Context, right: str, text: str) -> bool:
    """Say whether a text is the reference; ``right`` is one that is known to be, if it is a number."""
    if _NUMBER.fullmatch(text):
        if text == right:
            return True
        if text.isdecimal() and not context.base and _no_integer(reference, context):
            return False
    return matches(reference, text, context)


_NUMBER = re.compile(r"-?[0-9][0-9.,/]*")


@functools.lru_cache(2048)
def _no_integer(reference: str, context: Context) -> bool:
    """Say whether the reference is of a kind that no single whole number is."""
    kind = next(iter(read(reference)), None)
    if isinstance(kind, Scalar):
        if not isinstance(kind.node, Fraction):
            return kind.unit is None
        bare = kind.unit is None and not kind.percent and not kind.inexact and not context.percent
        return bare and kind.node.denominator != 1
    return isinstance(kind, Matrix | Relation | Truth | Date) or (isinstance(kind, Items) and len(kind.items) > 1)
