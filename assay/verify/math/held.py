"""Whether an answer of the right value is given as the answer: every acceptance passes here."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from assay.verify.math.afterwords import taken_back
from assay.verify.math.context import Context
from assay.verify.math.contradicted import contradicted
from assay.verify.math.demanded import transforms, undemanded
from assay.verify.math.disowned import disowned, in_words
from assay.verify.math.elsewhere import elsewhere
from assay.verify.math.english import unfamiliar
from assay.verify.math.equal import matches
from assay.verify.math.final import Final
from assay.verify.math.foreign_after import from_abroad
from assay.verify.math.frames import strange
from assay.verify.math.governed import around, negated, softened
from assay.verify.math.grader import speaks_to_grader
from assay.verify.math.later import goes_on_working, states_another
from assay.verify.math.lead_in import gives_up, lead_in
from assay.verify.math.mentioned import mentioned
from assay.verify.math.multiplied import multiplied
from assay.verify.math.off_topic import off_topic
from assay.verify.math.offered import offered, repeated
from assay.verify.math.overtaken import overtaken
from assay.verify.math.owned import another
from assay.verify.math.quiet import quiet
from assay.verify.math.read import read
from assay.verify.math.reconsidered import reconsidered
from assay.verify.math.second import announced_again
from assay.verify.math.side_by_side import side_by_side
from assay.verify.math.signs import bounded, excluded, related
from assay.verify.math.stance import AGREEMENT, uncommitted
from assay.verify.math.stated_before import stated_before
from assay.verify.math.values import Date, Items, Matrix, Relation, Scalar, Truth


def refused(question: str, reference: str, final: Final, context: Context, response: str) -> str | None:
    """Say why an answer of the right value is none all the same, ``None`` if it is one."""
    if "[asy]" in final.after:
        final = replace(final, after=_DRAWING.sub("a drawing.", final.after))
    # The same few texts are asked about again and again, the answer itself most of all; it was found to be right.
    asked: dict[str, bool] = {}

    def agrees(text: str) -> bool:
        if (known := asked.get(text)) is None:
            known = asked[text] = _agrees(reference, context, final.text, text)
        return known

    alone = quiet(final)
    if not alone and not context.options and side_by_side(response, final.after, reference, agrees):
        return "another value stands beside it"
    if not alone and (reason := uncommitted(final, reference, agrees)) is not None:
        return reason
    if not alone and reconsidered(final.after, agrees):
        return "it goes on thinking about the answer"
    if speaks_to_grader(response.removesuffix(final.after), question):
        return "it speaks to the grader"
    if alone and gives_up(final, response):
        return "it says that it has no answer"
    if ("nless" in response or "pposite d" in response) and _UNLESS.search(response[-400:]) is not None:
        return "the answer depends on a condition"
    worded = not context.options and in_words(reference)
    if worded and (reason := disowned(question, reference, final, response, agrees)) is not None:
        return reason
    if not alone:
        if (reason := _spoken_against(question, reference, final, response, agrees)) is not None:
            return reason
    elif repeated(response, final.after, reference, agrees):
        return "another answer is offered beside it"
    elif (reason := contradicted(question, reference, final.lead, final.text, final.after, agrees)) is not None:
        return reason
    if not context.options and context.form and ("≈" in final.text or "approx" in final.text or transforms(question)):
        strictly = functools.partial(_agrees, reference, context.but(approximate=False, exact=True), "")
        if (reason := undemanded(question, reference, final.text, strictly)) is not None:
            return reason
        if "round" in question.casefold() and "=" not in final.text:
            before, behind = around(final.text, agrees)
            if before or behind:
                value = final.text[len(before) : len(final.text) - len(behind)]
                return undemanded(question, reference, value, strictly)
    return None


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
    if related(final.lead, final.text, question, reference, agrees):
        return "the answer is only compared with it"
    if mentioned(final.lead, said, final.after, question, reference, agrees):
        return "the answer is mentioned, not given"
    if multiplied(said, question, reference, agrees):
        return "a word behind the answer makes another number of it"
    if softened(final.lead, said, question, reference, agrees):
        return "the answer is a guess"
    if not final.framed and strange(final.lead, final.text, question, reference, agrees):
        return "words around the answer are not known to be harmless"
    if (words := from_abroad(question, reference, final, response, agrees)) is not None:
        return f"{words[:60]!r} beside the answer is not known to leave it as it is"
    start = response.rfind(final.text) if not final.marker else 0
    if start > 0 and stated_before(response[:start], final.text, question, agrees):
        return "what is asked for was stated as another value"
    if not final.marker and overtaken(said, reference, agrees):
        return "it goes on to another answer"
    told = "" if final.marker and agrees(final.text) else final.text  # the answer's own words are its own
    agreed = final.marker and AGREEMENT.search(final.after) is not None
    if not agreed and (word := unfamiliar(final.lead, told, line, question, reference, final.marker)) is not None:
        return f"{word!r} beside the answer is not known to be harmless"
    if final.marker and states_another(final.text, final.after, question, agrees):
        return "it goes on to another answer"
    if goes_on_working(final.text, "" if agrees(final.text) else around(final.text, agrees)[1], final.after):
        return "the work goes on after the answer"
    told_after = "" if in_words(reference) else _clause(final.text, agrees) + final.after
    if told_after and (doubt := taken_back(told_after, question, reference, agrees)) is not None:
        return f"{doubt[:60]!r} after the answer is not known to leave it as it is"
    if (words := another(_sentence(response, final), question)) is not None:
        return f"it is another answer: {words!r}"
    if (words := lead_in(final, response, question, reference, agrees)) is not None:
        return f"it is another thing than the answer: {words[:60]!r}"
    if announced_again(final.text, final.after, reference, agrees):
        return "it goes on to another answer"
    if not final.marker and (thing := elsewhere(final.lead, said, question, reference, agrees)) is not None:
        return f"it is about something else: {thing!r}"
    if (thing := off_topic(final, response, question, reference)) is not None:
        return f"nothing ties it to the question: {thing!r}"
    if "\n" in final.text and agrees(final.text):
        return None  # several answers, each on a line of its own
    if offered(response, said, final.after, reference, agrees):
        return "another answer is offered beside it"
    return contradicted(question, reference, final.lead, final.text, final.after, agrees)


def _clause(text: str, agrees: Callable[[str], bool]) -> str:
    """What an answer's text goes on to say in words: ``, and that is all``; or nothing."""
    for end in _BEFORE_WORDS.finditer(text[:400]):
        if agrees(text[: end.start()]):
            return text[end.start() :]
    return ""


def _sentence(response: str, final: Final) -> str:
    """The sentence that ends in the answer, its marker with it."""
    end = len(response) - len(final.after) if response.endswith(final.after) else len(response)
    return _SENTENCE_ENDS.split(response[max(end - 400, 0) : end].rstrip(" .!*$"))[-1]


_SENTENCE_ENDS = re.compile(r"[.!?\n](?:(?<=\n)|(?=\s))")
_BEFORE_WORDS = re.compile(r"[,;!](?=\s+[A-Za-z]{2})|\.(?=\s+[A-Z][A-Za-z])")
_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
_UNLESS = re.compile(r"\bunless (?:i|we|my|our|i'[a-z]+|we'[a-z]+)\b|\bopposite day\b", re.IGNORECASE)
"""Whoever may be wrong gives no answer."""


def _agrees(reference: str, context: Context, right: str, text: str) -> bool:
    """Say whether a text is the reference; ``right`` is one that is known to be, if it is a number."""
    if _NUMBER.fullmatch(text):
        if text == right:
            return True
        if text.isdecimal() and not context.base:
            if text[0] != "0" and _INTEGER.fullmatch(reference):
                return text == reference
            if _no_integer(reference, context):
                return False
    return matches(reference, text, context)


_NUMBER = re.compile(r"-?[0-9][0-9.,/]*")
_INTEGER = re.compile(r"[1-9][0-9]{0,14}")


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
