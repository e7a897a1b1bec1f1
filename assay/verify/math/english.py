"""Whether every word of an English sentence around an unmarked value is known from plain solutions.

Nobody can list all ways to deny, doubt or only mention an answer ("You'd be mistaken to write 12", "The area is unequal
to 10"). So the rule is turned round, as in other languages (:mod:`assay.verify.math.frames`): a word has to be known.
Known are the words of ``plain_words.txt``, those of the question, units, numbers, and names in the sentence.

``plain_words.txt`` holds the words that occur at least twice in the worked solutions of GSM8K or MATH-500, and further
terms of school mathematics and science, without those that can deny, doubt, suppose or report an answer.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

from assay.verify.caseless import Caseless
from assay.verify.math.foreign_doubt import prose
from assay.verify.math.frames import is_foreign, known_words
from assay.verify.math.latex import plain

_ENDS = re.compile(r"(?<=[a-z0-9)$*}\]][.!?])\s+(?=[A-Z0-9$\\*(])|\n+")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{3,}")
_RULED_OUT = re.compile(
    r"\brul(?:e|es|ed|ing) (?:\w+ )?out\b|\bpossible (?:answer|value|result|solution|choice)\b", re.IGNORECASE
)
_ASSURED = Caseless(
    r"\bas (?:claimed|stated|asserted)\b|\bconfident(?: that)?\b|\bno doubt(?: that)?\b|\bwithout (?:a )?(?:doubt|"
    r"regard to)\b|\bdiffer by\b|\banyway\b|"
    r"\bcould (?:also )?have\b|\bnothing (?:else|but|other)\b|\b(?:second|final|last|new) attempt\b|\btry(?:ing)? to\b|"
    r"\bby an? \w+ argument\b|\bwhether you\b|\brather than\b|think▷",
)
"""What may stand beside a marked answer though its words by themselves could suppose or deny."""
_SUPPOSED = Caseless(
    r"\b(?:(?<!equally )likely|often|usually|estimated|undefined(?=,)|used to be|intermediate|partial|tentative|"
    r"provisional|initially|"
    r"at first (?:sight|glance|i|we|it|one)|in (?:the|a) (?:previous|similar|different|other|special) \w+|"
    r"might think|placeholder|"
    r"so far|(?<!look )(?<!at )at first|naively|superficially|on the face of it|my initial|(?:old|former) (?:answer|"
    r"value|result)|chances are|"
    r"odds are|shot in the dark|out of a hat|coin and|not certain|kind of|sort of|probable|let'?s (?:test|try)|"
    r"along the way|"
    r"first (?:step|part)|not valid|(?<!not )extraneous|(?<!est )(?<!only )candidate|too easy|doesn't (?:fit|"
    r"satisfy)|does not (?:fit|satisfy)|"
    r"as i was told|wrong formula|without doing|i'd like it|my money|before (?:the )?correction)\b",
)
"""What calls a value another thing than the answer, in words that plain solutions use."""
_DENIED = Caseless(r"\bcan(?:no|')t be\b")
_LEFT_OUT = re.compile(r"\\neq?|≠|!=|setminus|∖|\bexcept|[<>]|\\cup|∪")
_CLAUSES = Caseless(
    r"[,;:.]\s+(?:but|so|hence|thus|therefore|then|we|the|it|and|which)\b|;|\b(?:but|so|hence|thus|therefore|"
    r"and the)\b",
    frequent=True,
)
_OVER = re.compile(r"[\s$*)\]}\"”]*[.!?](?:\s|$)")
MAX_LEAD = 140
"""Characters from which on a lead begins within a word."""
_VALUE = re.compile(r"[0-9]|\\(?!text|mathrm)")


def unfamiliar(lead: str, said: str, line: str, question: str, reference: str, marked: bool = False) -> str | None:
    """Return the first word that is not known to belong to plain statements, ``None`` if there is none.

    Args:
        lead: what stands before ``said`` in its sentence; of one that ends in a marked answer, only the last clause.
        said: a text that states the right value; its last sentence is looked at.
        line: the rest of its line.
        question: its words are known.
        reference: so are those of the answer; one that is in words alone is not asked about.
        marked: whether a phrase, a box or a tag marks the answer.
    """
    if not _VALUE.search(reference):
        return None
    if marked:
        line = "" if _OVER.match(line) else line
        lead = _CLAUSES.split(lead if len(lead) < MAX_LEAD else lead.partition(" ")[2])[-1]
    last = [piece for piece in _ENDS.split(f"{lead} {said}") if piece.strip()][-1:]
    sentence = " ".join([*last, _ENDS.split(line)[0]])
    if is_foreign(sentence) and (not marked or not sentence.isascii() or is_foreign(question)):
        return None
    if not marked and _DENIED.search(sentence) is not None:
        return "cannot be"
    if (supposed := _SUPPOSED.search(sentence)) is not None and supposed.group().casefold() not in question.casefold():
        return supposed.group()
    if marked:
        sentence = _ASSURED.sub(" ", sentence)
        if _LEFT_OUT.search(reference) is not None:
            sentence = sentence.replace("except", " ")
    elif (out := _RULED_OUT.search(sentence)) is not None:
        return out.group()
    text = _COMMAND.sub(" ", _TEXT.sub(r" \1 ", prose(sentence)))
    for match in _WORD.finditer(text):
        word = match.group()
        if marked and not match.start() and plain(f"\\{word}") != f"\\{word}":
            continue  # a command whose backslash is cut off
        if word.lower() in plain_words() or (word[0].isupper() and text[: match.start()].strip(" *_$(\"'")):
            continue  # a name
        if not known_words(word, f"{question} {reference}"):
            return word
    return None


@functools.cache
def plain_words() -> frozenset[str]:
    return frozenset(resources.files("assay.verify.math").joinpath("plain_words.txt").read_text("utf-8").split())


__all__ = ["plain_words", "unfamiliar"]
