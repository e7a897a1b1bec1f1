"""The options of a question: their labels and their texts."""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_QUESTION = 20_000
"""Characters at the end of a question that are searched for options."""

_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf|textrm|boxed|rm|bf|textit)\s?\{([^{}]*)\}")
_MARKUP = re.compile(r"\\[,;:! ]|\\[()\[\]]|\\(?=[$%#&])|[`*$_~\"“”‘’«»„\[\]{}]")
_MINUS = str.maketrans({"−": "-", "–": "-", "，": ",", "。": "."})


def plain(text: str) -> str:
    """Return ``text`` without LaTeX wrappers, emphasis, quotes and blanks after commas."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_MINUS)
    if "\\" in text:
        text = text.replace("\\%", "%")
        for _ in range(3):
            text = _WRAPPED.sub(r" \1 ", text)
    return " ".join(_MARKUP.sub(" ", text).split()).replace(", ", ",")


def folded(text: str) -> str:
    """Return a plain text in lower case, of the same length."""
    low = text.lower()
    return low if len(low) == len(text) else text


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """What may be chosen.

    Attributes:
        written: the text of each label as the question has it, empty where it is not known.
        texts: the same, plain and folded, with their labels, the longest first; a text that is a label is left out.
    """

    written: Mapping[str, str]
    texts: tuple[tuple[str, frozenset[str]], ...]

    def label(self, text: str) -> str | None:
        """Return the label that ``text`` is, in upper or lower case."""
        return next((k for k in (text, text.upper(), text.lower()) if k in self.written), None)

    def bare(self, text: str) -> str | None:
        """Return the label that is all of a plain text."""
        return self.label(text.strip(" ().,:;#-"))

    def named(self, text: str) -> frozenset[str]:
        """Return the labels of the options whose text is all of a plain text."""
        low = _stripped(folded(text))
        return next((labels for said, labels in self.texts if said == low), frozenset())


def _stripped(text: str) -> str:
    return text.rstrip(" .,;:") or text


LETTERS = Options(dict.fromkeys(string.ascii_uppercase, ""), ())
"""Where no options are known, any letter is a label."""


def options(given: Any) -> Options:
    """Return the options of a mapping from label to text, or of a list of texts, which get the labels A, B, C, ..."""
    if isinstance(given, Mapping):
        return _made(tuple((str(k).strip().strip("().: "), str(v)) for k, v in given.items()))
    if isinstance(given, Sequence) and not isinstance(given, str):
        return _made(tuple(zip(string.ascii_uppercase, map(str, given), strict=False)))
    return LETTERS


@functools.lru_cache(1024)
def _made(entries: tuple[tuple[str, str], ...]) -> Options:
    written = dict(entries)
    made = Options(written, ())
    labels: dict[str, set[str]] = {}
    for label, text in entries:
        said = _stripped(folded(plain(text)))
        if said and made.label(said) is None:
            labels.setdefault(said, set()).add(label)
    longest = sorted(((said, frozenset(found)) for said, found in labels.items()), key=lambda e: -len(e[0]))
    return Options(written, tuple(longest))


_LABEL = re.compile(
    r"(?:(?<=[\s,;:{\[$*|>])|^)[*_]{0,2}(?:[(\[]([A-Za-z])[)\]]|([A-Za-z])[).:、．：](?![A-Za-z]\.))[*_]{0,2}(?=\s|\S{2}|\w)",
    re.MULTILINE,
)
_BULLET = re.compile(r"\n[ \t]*[-*•+]\Z")
"""The bullet of the next label's line."""


def listed(question: str) -> Mapping[str, str]:
    """Return the text of each label of the options that a question lists, empty where it lists none.

    ``(A) 5 (B) 7``, ``A. 5`` on lines, ``A) 5  B) 7``, ``a) ...``: labels in their order from A, in one style, of which
    the longest list counts, and the last of several. A text ends at the next label or blank line, the last at its line.
    """
    return {label: question[start:end] for label, (start, end) in places(question).items()}


@functools.lru_cache(2048)
def places(question: str) -> Mapping[str, tuple[int, int]]:
    """Return where the texts of :func:`listed` stand in the question, from their first character to behind the last."""
    cut = max(len(question) - MAX_QUESTION, 0)
    question = question[cut:]
    marks = [(m[1] or m[2], m[1] is not None, m.start(), m.end()) for m in _LABEL.finditer(question)]
    best: list[tuple[str, bool, int, int]] = []
    for first, opening in enumerate(marks):
        if opening[0] not in "Aa":
            continue
        run = [opening]
        for mark in marks[first + 1 :]:
            if mark[1] == opening[1] and ord(mark[0]) == ord(run[-1][0]) + 1:
                run.append(mark)
            elif mark[:2] == opening[:2]:
                break
        if len(run) >= max(len(best), 2):
            best = run
    ends = [mark[2] for mark in best[1:]] + [len(question)]
    found = {}
    for mark, end in zip(best, ends, strict=True) if best else ():
        text = question[mark[3] : end].lstrip()
        start = end - len(text)
        text = re.split(r"\n" if mark is best[-1] else r"\n\s*\n", text.rstrip(), maxsplit=1)[0]
        text = _BULLET.sub("", text).rstrip("\\,;| \t\n")
        found[mark[0].upper()] = (cut + start, cut + start + len(text))
    return found


__all__ = ["LETTERS", "MAX_QUESTION", "Options", "folded", "listed", "options", "places", "plain"]
