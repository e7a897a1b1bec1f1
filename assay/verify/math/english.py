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

from assay.verify.math.foreign_doubt import FORMULA
from assay.verify.math.frames import is_foreign, known_words

_ENDS = re.compile(r"(?<=[a-z0-9)$*}\]][.!?])\s+(?=[A-Z0-9$\\*(])|\n+")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{3,}")
_RULED_OUT = re.compile(
    r"\brul(?:e|es|ed|ing) (?:\w+ )?out\b|\bpossible (?:answer|value|result|solution|choice)\b", re.IGNORECASE
)
_VALUE = re.compile(r"[0-9]|\\(?!text|mathrm)")


def unfamiliar(lead: str, said: str, line: str, question: str, reference: str) -> str | None:
    """Return the first word that is not known to belong to plain statements, ``None`` if there is none.

    Args:
        lead: what stands before ``said`` in its sentence.
        said: an unmarked text that states the right value; its last sentence is looked at.
        line: the rest of its line.
        question: its words are known.
        reference: so are those of the answer; one that is in words alone is not asked about.
    """
    if not _VALUE.search(reference):
        return None
    last = [piece for piece in _ENDS.split(f"{lead} {said}") if piece.strip()][-1:]
    sentence = " ".join([*last, _ENDS.split(line)[0]])
    if is_foreign(sentence):
        return None
    if (out := _RULED_OUT.search(sentence)) is not None:
        return out.group()
    text = _COMMAND.sub(" ", _TEXT.sub(r" \1 ", FORMULA.sub(" ", sentence)))
    for match in _WORD.finditer(text):
        word = match.group()
        if word.lower() in plain_words() or (word[0].isupper() and text[: match.start()].strip(" *_$(\"'")):
            continue  # a name
        if not known_words(word, f"{question} {reference}"):
            return word
    return None


@functools.cache
def plain_words() -> frozenset[str]:
    return frozenset(resources.files("assay.verify.math").joinpath("plain_words.txt").read_text("utf-8").split())


__all__ = ["plain_words", "unfamiliar"]
