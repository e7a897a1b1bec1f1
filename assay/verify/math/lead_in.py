# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Whose answer a sentence gives, of what, and how: what stands around the value of an answer in its own sentence.

Nobody can list all that is no answer to the question: ``Tom's answer is 42``, ``At first sight the answer is 42``,
``The answer is a long way from 42``, ``Old: 42``. So the rule is turned round, part by part. Known have to be the
words that own the answer, those between "answer" and its verb, those between the verb and the value, the phrase
before all of that, the words of a label, and what is said of a value that is the subject. The question's words are
known, units and numbers too. Sentences in another language than English are not asked about.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.asked_words import all_asked, spoken, stems
from assay.verify.math.disowned import in_words
from assay.verify.math.elsewhere import NO_THINGS, is_english
from assay.verify.math.english import plain_words
from assay.verify.math.final import Final
from assay.verify.math.frames import is_foreign, known_words
from assay.verify.math.in_front import ENGLISH_LABELS, in_front
from assay.verify.math.mentioned import UNSOLVED
from assay.verify.math.said_of import said_of
from assay.verify.math.value_parts import OPENED, SENTENCE_ENDS, parts_around

MAX_TAIL = 120
_TERM = re.compile(
    r"^\W*(?:-\s?[a-z]|[0-9]+\s?[*·]?\s?[a-z]|[a-z]\s?[-+*/^]\s?[0-9]+|[0-9]+\s?[-+/^]\s?[a-z]|"
    r"\\[dt]?frac\{[0-9]+\}\{[a-z]\}|"
    r"\\sqrt\{[a-z]\}|√[a-z])\W*$"
)
_NOT_CONCLUDED = Caseless(
    r"\b(?:let|suppose|assume|denote)\W*$|\b(?:let|suppose|say|assume|denote|set|given|given that|with)\s+(?:that "
    r")?\$?[a-z]\$?"
    r"\s*(?:=|be|is|equal)?[\s$*]*$|\bwe (?:are|were|have been) given(?: that)?[\s$*]*$|"
    r"\b(?:initial|starting|given) (?:value|amount|number|quantity) (?:is|was|=|of)[\s$*]*$|"
    r"\bas if (?:it|this|that) (?:were|was)[\s$*]*$|\b(?:want|like|wish|hope|love|need) (?:it|this|that|the answer) "
    r"to be[\s$*]*$|"
    r"^\W*(?:using|with|from|taking|starting (?:with|from)|given)[\s$*]*$|\bany(?:thing| number| "
    r"value)?\b[^0-9]{0,16}$|"
    r"\banything (?:from|between)\b.*$|\b(?:in|within|out of|outside) the range\b.*$|\b(?:neighbou?rhood|vicinity|"
    r"region) of"
    r"[\s$*]*$|\b(?:if|as far as|to the best of) (?:my )?(?:memory|i (?:recall|remember)|knowledge)\b.*$|"
    r"\b(?:way|ways|removed|away|distance) from[\s$*]*$|\b(?:i|we|you) (?:start|started|begin|began) (?:with|at|from|"
    r"on|"
    r"out with)[\s$*]*$|\b(?:i['’]m|i am|i was|we were) told\b.*$|"
    r"\b(?:i|we)(?: \w+ly)? (?:hope|wish|pray|bet|wager|reckon|fancy|dream)\b[^.;:]{0,24}$|"
    r"\b(?:one|you|we|people|someone|many|some|most)(?: people| students)? (?:might|may|could|would|tend to|often|"
    r"usually) "
    r"(?:think|believe|say|guess|suspect|expect|answer|write|try|put|argue|assume|conclude|claim|box|choose|pick|"
    r"imagine|"
    r"suppose|object|reply|respond)(?: that)?[\s$*]*$|\bfollows? from[\s$*]*$|"
    r"\b(?:square|cube|negative|reciprocal|inverse|opposite|double|half|multiple|factor|divisor|part|third|quarter) "
    r"of[\s$*]*$|\be\.g\.?\W*$",
)
_EMPTY_HANDED = Caseless(
    r"\b(?:i|we)(?: (?:really|just|still|honestly))? (?:do not|don['’]t|did not|didn['’]t|cannot|can['’]t|could not|"
    r"couldn['’]t|am not|was not|have no|had no)(?: (?:really|even|yet))? (?:know|solve|sure|certain|compute|"
    r"determine|find|"
    r"answer|see how|tell|idea|clue|work (?:it|this) out)\b|\bi['’]m not (?:sure|certain)\b|"
    r"^\W*(?:(?:so|but|well|and),? )?(?:no|not|without any|without an?) (?:sure|certain|clue|idea|answer)\b|"
    r"^\W*(?:hmm+|uh+|um+|er+|dunno|idk|whatever|maybe|perhaps|possibly|probably)\b",
)
_INSTRUCTS = Caseless(
    r"\b(?:put|place|write|enter|give|box|type|fill|state|report|return|submit|provide)\b(?: \w+){0,3}? (?:(?:final|"
    r"own) )?"
    r"(?:answer|result|solution|value|response)s?\b(?: \w+){0,2}? (?:in|into|inside|within|as|like|here|using)\W*$|"
    r"\b(?:do not|don['’]t|never|nobody should|no one should|please|always|must not|should not) (?:\w+ )?"
    r"(?:box|write|put|answer|submit|enter|say|give|report|return)\b\W*$|\bformat\b.{0,24}$",
)
_LETTERS = re.compile(r"[^\W\d_]+")
_PLAIN = frozenset(
    "so thus hence therefore finally then altogether the our my this final correct answer result solution is are "
    "equals we get have obtain".split()
)


def lead_in(final: Final, response: str, question: str, reference: str, agrees: Callable[[str], bool]) -> str | None:
    """Return the words that make a right value no answer to the question, ``None`` if there are none.

    Args:
        final: the answer found, which agrees with the reference.
        response: the response.
        question: its words are known; one in another language than English is not asked about.
        reference: what the answer is compared with.
        agrees: whether a text is the reference.
    """
    if in_words(reference) or not _asked_in_english(question):
        return None
    before, behind, earlier = parts_around(final, response, reference, agrees)
    if before is None:
        return None
    if (reason := _boxed_beside(before, behind, earlier, final, agrees)) is not None:
        return reason
    if _PLAIN.issuperset(map(str.casefold, _LETTERS.findall(f"{before} {behind}"))):
        return None  # most answers are announced in these words, or in none
    if _is_foreign(f"{before} {behind}"):
        return None
    asked = stems(f"{question} {reference}")
    if (found := _another_term(before, question)) is not None:
        return found
    tail = before if len(before) < MAX_TAIL else before[-MAX_TAIL:]  # most of these stand right before the value
    for pattern, text in ((_NOT_CONCLUDED, tail), (_EMPTY_HANDED, before), (_INSTRUCTS, tail)):
        if (match := pattern.search(text)) is not None and not all_asked(match.group(), asked):
            return match.group().strip()
    return in_front(before, question, asked) or said_of(before, behind, asked)


def _boxed_beside(before: str, behind: str, earlier: str, final: Final, agrees: Callable[[str], bool]) -> str | None:
    """What stands right beside a box or tag, or in the sentence before one that has none of its own."""
    if not any(map(str.isalpha, before)):
        if (refused := UNSOLVED.search(earlier)) is not None and _BUT.search(earlier, refused.end()) is None:
            return earlier[slice(*refused.span())]
        if len(spoken(earlier)) < 5 and (refused := _EMPTY_HANDED.search(earlier)) is not None:
            return refused.group()
        if final.framed and _MINUEND.search(before) is not None:
            return before
    if (
        final.marker
        and _QUESTIONED.match(final.after.partition("\n")[0]) is not None
        and _ASKING.search(before) is None
    ):
        return "?"
    if final.framed and (goes := _GOES_ON.match(final.after)) is not None:
        said = [piece for piece in goes["rest"].split("=") if any(map(str.isdigit, piece))]
        if said and not any(agrees(piece.strip(" .,;$")) for piece in said):
            return goes.group().strip()
    return None


_BUT = re.compile(r"\b(?:but|still|yet|however)\b|['\"”’]", re.IGNORECASE)
_MINUEND = re.compile(r"[0-9)}]\s*[-−]\s*(?:[A-Za-z]\s?=\s*)?$")
_QUESTIONED = re.compile(r"^[\s$)*\]}.]*\?+[\s$)*\]}]*$")
_ASKING = re.compile(r"\?|\bwhat\b|\bhow\b|\bwhich\b", re.IGNORECASE)
_GOES_ON = re.compile(
    r"^[\s$)}]*(?:=|\\to(?![a-z])|→|->|\\(?:long)?rightarrow(?![a-z]))(?P<rest>[\s$]*[^.,;:\n≈A-Za-z$]*(?:\.[0-9]+)?)"
)
_IN_ENGLISH = re.compile(r"\b(?:[Tt]he|and|of|are|answer|[Tt]hus|[Tt]herefore|[Hh]ence)\b")


def _is_foreign(text: str) -> bool:
    """Say whether a text is in another language; without a common English word, one word of another one tells."""
    if _IN_ENGLISH.search(text) is not None or not is_foreign(text):
        return False
    words = [word for word in spoken(text) if len(word) > 2]
    return not text.isascii() or any(
        word not in plain_words() and word not in ENGLISH_LABELS and word not in NO_THINGS and known_words(word, "")
        for word in words
    )


@functools.lru_cache(256)
def _asked_in_english(question: str) -> bool:
    if is_english(question):
        return True
    words = [word for word in spoken(question) if len(word) > 3]
    return question.isascii() and bool(words) and 2 * sum(word in plain_words() for word in words) >= len(words)


def _another_term(before: str, question: str) -> str | None:
    """``2x =``, unless the question asks for it."""
    if not before.rstrip(" $*(").endswith("="):
        return None
    chain = re.split(r"[,;:]\s|[⇒→]|=>|\\(?:implies|Rightarrow|to)(?![a-z])", before)[-1]
    if re.search(r"(?<!\\)\b[A-Za-z]{2}", before) is not None or not chain.rstrip(" $*(").endswith("="):
        return None
    asked = "".join(question.split())
    term = chain.partition("=")[0].strip(" $*")
    return f"{term} =" if _TERM.match(term) and "".join(term.split()) not in asked else None


def gives_up(final: Final, response: str) -> bool:
    """Say whether the sentence right before a box or tag that stands alone says that there is no answer."""
    if final.lead or not final.framed:
        return False
    end = response.rfind(final.text)
    earlier = [
        piece
        for piece in SENTENCE_ENDS.split(OPENED.sub("", response[max(end - 200, 0) : max(end, 0)]))
        if piece.strip()
    ]
    return bool(earlier) and UNSOLVED.search(earlier[-1]) is not None and _BUT.search(earlier[-1]) is None


__all__ = ["gives_up", "lead_in"]
