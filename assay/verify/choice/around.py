"""What stands around the sentence that commits to an option, where it speaks against it.

Before it may stand working, but no refusal, no heading that disowns it and no other option as the answer; in it no sign
of negation and no reason for another option; for what may follow see :mod:`~assay.verify.choice.after`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from assay.verify.choice.after import HEADING, REFUSED, against_after, stated, whole
from assay.verify.choice.commit import Commitment, reader, sentences
from assay.verify.choice.lexicon import words
from assay.verify.choice.marks import MARK, NOUN
from assay.verify.choice.prose import Prose
from assay.verify.choice.text import plain
from assay.verify.math.foreign_doubt import foreign
from assay.verify.math.reconsidered import reconsidered

_ITEM = re.compile(r"^\s*(?:[-*•+>]|[0-9]{1,2}[.)])\s")
_TURNED = re.compile(
    r"^\W*(?:no|not|wait|but|however|actually|correction|rather|instead|hmm|sorry|oops|in fact|still|yet|"
    r"although|though)\b",
    re.IGNORECASE,
)
_NOUNS = frozenset(["option", "options", "choice", "choices", "answer", "answers", "letter", "the", "a", "an", "is"])

_SIGNED = re.compile(
    rf"!=|[≠¬~]|(?::|\bis)\s*!|!\s?\(?(?:{NOUN}\s?\(?)?(?-i:[A-Z])\b|(?::|\bis)\s*-(?=[A-Z]\b)|\be\.?\s?g\b|"
    rf"\b(?:as in|is for)\b|(?<=[a-z])(?-i:\([A-Z]\))|(?-i:\([A-Z]\))(?=[a-z])"
    r"|(?-i:\b[A-Z])['′](?!\w)|(?<=[a-z])[*_]{1,2}(?=[A-Z0-9])|[0-9]-?ish\b|(?-i:^\W*[A-Z]) for \w+\W*$|"
    r"\b50\s?[/:]\s?50\b",
    re.IGNORECASE,
)
_NOT_BEHIND = re.compile(r"^\W*(?:では?な[くい]|じゃな|[이가]? ?아니)")
_CORRECTED = re.compile("\\W*\ue000..\\W*no\\W+\ue000..\\W*", re.IGNORECASE)
"""``B, no C``, which denies C in Spanish and B in English."""
_INDEFINITE = re.compile(r"^ (?:is|was) (an? \w+)\W*$", re.IGNORECASE)
_PERCENT = re.compile(
    r"([0-9]{1,3})(?:\.[0-9]+)?\s?%\W{0,3}(?:sure|certain\w*|confiden\w*|probab\w*|likel\w*|chance)|"
    r"(?:confidence|probability|certainty|likelihood)\W{0,5}(?:of |is |level )*([0-9]{1,3})(?:\.[0-9]+)?\s?%",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(
    r"(?:\s[-–—]|[-–—:,;=(/+]|\b(?:is|are|was|and|or|an|the|since|because|"
    r"so|but|if|of|to|with|as|that|which))[\s*_]*$"
)
_SARCASM = re.compile(r"(?:^|\s)/s\W*$")

_RANKED = re.compile(r"\b(?:2nd|second|3rd|third) (?:choice|guess|attempt|pick|try)\W{0,3}:", re.IGNORECASE)


def against(said: Commitment, options: Mapping[str, str], question: str, agrees: Callable[[str], bool]) -> str | None:
    """Return what speaks against an answer around the sentence that commits to it, ``None`` if nothing does.

    Args:
        said: the sentence, with what stands before and after it.
        options: text by label.
        question: its words are known.
        agrees: whether a text by itself is the answer.
    """
    prose = reader(options, question)
    if (reason := _within(said, prose, question) or _before(said, prose)) is not None:
        return reason
    told = MARK.sub(" ", prose.marked(plain(said.sentence)))
    english = not foreign(told if len(words(told)) > 1 else question)
    return against_after(said.after, said.label, prose, english, agrees)


# --- in the sentence --------------------------------------------------------------------------------------------------


def _within(said: Commitment, prose: Prose, question: str) -> str | None:
    if _SIGNED.search(said.sentence) and not any(_SIGNED.search(value) for value in prose.marker.values.values()):
        return "a sign denies it"
    text = f"{said.sentence} {said.after}"
    if _RANKED.search(text):
        return "it is one of several guesses"
    if _SARCASM.search(text):
        return "it is not meant"
    if any(int(found[1] or found[2]) < 70 for found in _PERCENT.finditer(text)):
        return "it is held to be improbable"
    if _UNFINISHED.search(text.rstrip()):
        return "it ends in the middle of a sentence"
    marked = prose.marked(plain(said.sentence))
    places = [match for match in MARK.finditer(marked) if prose.marker.key(match) == said.label]
    if not places:
        return None
    tail, head = marked[places[-1].end() :], marked[: places[-1].start()]
    if _NOT_BEHIND.match(tail) or (_CORRECTED.fullmatch(marked) and not foreign(question)):
        return "the answer is denied"
    kind = _INDEFINITE.match(tail) if places[-1][2] == "t" else None
    if kind is not None and f" {kind[1].casefold()}" not in question.casefold():
        return "it is only mentioned"
    if reconsidered(whole(MARK.sub(" X ", tail))):
        return "it goes on thinking about the answer"
    if (other := stated(tail, said.label, prose)) is not None:
        return f"it goes on to {other}"
    if (other := prose.asserted(head)) not in (None, said.label):
        return f"what leads to it says {other}"
    reason = re.match(r"\W*(?:because|since|as|for)\b(?P<why>.*)", tail, re.IGNORECASE)
    if reason is not None and (other := prose.asserted(reason["why"])) not in (None, said.label):
        return f"the reason for it says {other}"
    return None


# --- before the sentence ----------------------------------------------------------------------------------------------


def _before(said: Commitment, prose: Prose) -> str | None:
    beside = [word for word in words(MARK.sub(" ", prose.marked(plain(said.sentence)))) if word not in _NOUNS]
    lines = [line for line in said.before.rstrip().split("\n") if line.strip()]
    own_line = said.before.rpartition("\n")[2].strip(" *_#>-•+") == ""
    if not beside and own_line:
        heading = next((line for line in reversed(lines) if not _ITEM.match(line)), None)
        direct = heading is not None and (lines[-1] == heading or _ITEM.match(lines[-1]))
        if heading is not None and direct and HEADING.match(heading) and not prose.frames(plain(heading), said.label):
            return f"it stands under {plain(heading)[:60]!r}"
    text = said.before[-1000:]
    pieces = [text[start:end] for start, end in sentences(text, prose.marker.values)]
    pieces = [piece for piece in pieces if piece.strip(" \t\n*_#>-")]
    lead = plain(said.sentence)
    for piece in (*pieces[-1:], lead):
        told = plain(piece)
        for value in prose.marker.values.values():
            told = told.replace(value, " ") if len(value) > 3 else told
        if REFUSED.search(told) and len(told.split()) <= 12:
            return "it declines to answer"
    if pieces and not _TURNED.match(lead):
        last = plain(pieces[-1])
        other = prose.asserted(prose.marked(last)) or prose.chosen(last)
        if other is not None and other != said.label:
            return f"what stands before it says {other}"
    return None
