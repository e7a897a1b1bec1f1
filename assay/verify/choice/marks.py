"""A sentence with its options marked: one sign for a label, an option's text, or a label with its own text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.verify.choice.lexicon import words
from assay.verify.choice.text import known, plain

MARK = re.compile("\ue000(.)(.)")
"""A mark: the option's place, from U+E100 on, ``t`` where its text stood there, ``l`` for its label, ``b`` for both."""
NOUN = (
    r"(?:options?|choices?|answers?|letter|antwort|réponse|opción|opção|opzione|letra|alternativa|svar|alternativ|"
    r"вариант|ответ)"
)
MAX_MARKED = 2000
_FIRST = 0xE100
_LETTER = "A-Za-zÀ-ɏͰ-ӿ0-9"
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_ORDINAL = re.compile(rf"\b(?:the )?({'|'.join(_ORDINALS)}) (?:option|choice|answer|one|statement)\b", re.IGNORECASE)
_RANKED = re.compile(r"^(?:the )?([1-6])(?:st|nd|rd|th)(?=\s*[:.)]\s)", re.IGNORECASE)
_BOTH = re.compile(
    "\ue000(.)[ltb]"
    rf"[\s().:,–—=→\-]*(?:(?:is|ist|est|es|{NOUN}|which is {NOUN}) )?[\s(]*"
    "\ue000\\1[ltb]"
    r"\)?"
)
_ARTICLE = re.compile(
    r"\s(?!(?:is|was|because|since|as|must|seems|would|fits|matches|works|makes|could|might|may|can|cannot|"
    r"also|too|sounds|looks|does|feels|appears|describes|and|or|ist|est|es|è|är|er|je|jest)\b)[a-zà-öø-ÿ]"
)
_CUED = re.compile(r"\b(?:option|choice|statement|opción|opção|opzione|antwort|réponse) $", re.IGNORECASE)
_DECIMAL = re.compile(r"[0-9]+[.,][0-9]+")
_NOT_LABELS = rf"(?![{_LETTER}^_(]|\)?\s?[-+−*/]\s?[0-9]|\)?[.,][0-9]|['’](?![dt][iıuü]r)[^\W\d_])"
"""What makes a letter a name in a formula or the beginning of a word: ``B + 1``, ``C'est``; Turkish has ``B'dir``."""


class Marker:
    """Marks the options of one question in sentences.

    Args:
        options: text by label; the texts may be empty.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.labels = list(options)[:90]
        self.values = {key: " ".join(plain(options[key]).split()).strip(" .") for key in self.labels}
        named = [(text, key) for key, text in self.values.items() if text and text not in options and len(text) < 400]
        article = r"(?:(?-i:An?|the|The|an?) (?=(?-i:[a-z])))?"
        self._texts = [
            (re.compile(rf"(?<![\w.])(?<![0-9],){article}{_spelt(text)}(?![{_LETTER}]|[.,][0-9])", re.IGNORECASE), key)
            for text, key in sorted(named, key=lambda item: -len(item[0]))
        ]
        keys = "|".join(re.escape(key) for key in sorted(self.labels, key=lambda key: -len(key)))
        self._label = re.compile(rf"(?<![{_LETTER}'’^\\_])(?:\(({keys})\)|({keys})\)?){_NOT_LABELS}")
        small = "|".join(re.escape(key.lower()) for key in self.labels)
        before = rf"(?:\b(?:{NOUN}(?: is)?|so|hence|thus|therefore|also|donc):? |^)"
        self._small = re.compile(rf"(?<=\()({small})(?=\))|{before}\(?({small})\)?(?=\)|\W*$)", re.IGNORECASE)

    def key(self, mark: re.Match[str]) -> str:
        return self.labels[ord(mark[1]) - _FIRST]

    def sign(self, key: str) -> str:
        """The character that stands for an option in its marks."""
        return chr(_FIRST + self.labels.index(key))

    def words(self, key: str) -> frozenset[str]:
        return frozenset(words(self.values[key]))

    def mark(self, sentence: str) -> str:
        """``sentence`` with marks for the options' texts and labels."""
        text = sentence[:MAX_MARKED]
        for pattern, key in self._texts:
            text = pattern.sub(self._mark(key, "t"), text)
        text = _ORDINAL.sub(lambda m: self._ranked(_ORDINALS.index(m[1].lower()), m), text)
        text = _RANKED.sub(lambda m: self._ranked(int(m[1]) - 1, m), text)
        text = self._small.sub(self._lowered, text)
        return self._label.sub(self._labelled, text)

    @staticmethod
    def joined(marked: str) -> str:
        """One mark for a label with its own text, in either order."""
        while (both := _BOTH.sub("\ue000\\1b", marked)) != marked:
            marked = both
        return marked

    @staticmethod
    def labelled(marked: str) -> frozenset[str]:
        """The signs of the options that stand with both label and text."""
        return frozenset(both[1] for both in _BOTH.finditer(marked))

    def _mark(self, key: str, kind: str) -> str:
        return f"\ue000{self.sign(key)}{kind}"

    def _ranked(self, place: int, match: re.Match[str]) -> str:
        return self._mark(self.labels[place], "l") if place < len(self.labels) else match.group()

    def _lowered(self, match: re.Match[str]) -> str:
        group = 1 if match[1] else 2
        key = known(match[group], dict.fromkeys(self.labels, ""))
        if key is None:
            return match.group()
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return match.group()[:start] + self._mark(key, "l") + match.group()[end:]

    def _labelled(self, match: re.Match[str]) -> str:
        key, text = match[1] or match[2], match.string
        if match[1] is None:
            if (
                key in ("A", "I", "O", "E", "Y", "U")
                and _ARTICLE.match(text, match.end())
                and not _CUED.search(text, max(match.start() - 20, 0), match.start())
            ):
                return match.group()
            cued = key.isalpha() and key.isupper()
            if not cued and re.search(rf"{NOUN}(?: is)?:? \(?$", text[: match.start()], re.IGNORECASE) is None:
                return self._mark(key, "l") if text.strip(" ().") == key else match.group()
        return self._mark(key, "l")


def _spelt(value: str) -> str:
    """The pattern of a text; a number may have either decimal sign."""
    return value.replace(",", ".").replace(".", "[.,]") if _DECIMAL.fullmatch(value) else re.escape(value)
