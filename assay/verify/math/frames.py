# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""The words around an answer in its own sentence: all known to be harmless, or not.

English words of doubt and denial are looked up in lists. In a sentence of another language the rule is turned round,
since nobody can list all ways to doubt in all languages: every word around the value must be one of a plain statement,
a word of the question, a unit or a number. The same words are taken off a sentence to find the value in it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass

from assay.verify.caseless import Caseless
from assay.verify.math.foreign import foreign_number
from assay.verify.math.foreign_doubt import foreign, prose, reasoned, unsure
from assay.verify.math.forms import truth
from assay.verify.math.harmless import bare, framing, harmless
from assay.verify.math.known import KNOWN
from assay.verify.math.read import read
from assay.verify.math.topics import MARKS, begins, may_begin, spoken_of
from assay.verify.math.units import Unit, lookup
from assay.verify.math.values import Scalar

_STEM = 5
"""Letters by which a word of the question is known again in another inflection."""
_PRODUCT = re.compile(r"[a-zA-Z]{0,2}[α-ωΑ-Ω][a-zA-Z]{0,2}")
_SCRIPTS = re.compile(r"[²³¹⁰-ₜ]")
_WORD = re.compile(rf"(?<!\\)[^\W\d_](?:[^\W\d_]|[{MARKS}]|(?<=[^\W\d_])['’](?=[^\W\d_]{{2}}))*")
_LETTERS = re.compile(rf"(?:[^\W\d_]|[{MARKS}])+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_OURS = Caseless(
    r"\b(?:het|een|der|das|ist|und|nicht|kein\w*|es|est|sont|une|uma|são|não|gli|che|sono|det|är|och|inte|jest|są|"
    r"nie|"
    r"les|des|el|las|los|bir|adalah|bukan|tidak|đáp|không|que|qui|pas|je|j'\w+|na|si|mi|il|elle|ich|mein\w*)\b",
    frequent=True,
)
"""Words that tell another language where a word like "is", "in" or "total" also occurs in English."""
_ACCENTED = re.compile(r"(?:[a-z][à-öø-ž]|[à-öø-ž][a-z])")
_ENDS = re.compile(r"(?<=[^\W\d_]{2})[.!?…]+\s+|(?<=[0-9)$*%])[.!?]+\s+(?=[^\W\d_])|\n|[。！？।]")
_EXISTS = re.compile(
    r"(?:hay|tiene|tienen|há|tem|têm|ci sono|sono|ha|hanno|il y a|a|sont|ce sont|es sind|das sind|sind|hat|er zijn|"
    r"zijn|"
    r"heeft|det är|det finns|der er|har|den har|ma|jest|mają|je|má|есть|имеет|получается|var|có|ada|terdapat|"
    r"memiliki|έχει|"
    r"είναι|هناك|يوجد|لديه|له|יש|יש לו|है|são|son)\b\W*",
    re.IGNORECASE,
)
_VERB = re.compile(
    r":\s*[$*(]*$|\b(?:hay|tienen?|quedan?|son|est[áa]n?|há|têm|tem|restam?|sobram?|são|ci sono|sono|rimangono|"
    r"restano|hanno|"
    r"a|ont|il y a|sont|restent?|contient|faut|sind|bleiben|hat|haben|gibt|braucht|benötigt|enthält|zijn|heeft|"
    r"blijven|over|"
    r"finns|är|har|ma|mają|jest|zostało|zostaje|má|je|есть|имеет|остан[её]тся|осталось|нужно|содержит|có|còn|ada|"
    r"terdapat|memiliki|"
    r"tersisa|έχει|είναι|هناك|يوجد|يبقى|لديه|له|יש|है|हैं|necesitan|precisa|servono|occorrono|costano?|cuestan?|"
    r"dispone)\b"
    r"\W*$",
    re.IGNORECASE,
)
"""What comes before a number with the noun that it counts."""


def strange(lead: str, said: str, question: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a sentence of another language than English around a right value holds a word nobody knows.

    Args:
        lead: what stands before ``said`` in its sentence.
        said: the sentence that states the answer.
        question: its words are known.
        reference: so are the words of the answer.
        agrees: whether a text is the reference.
    """
    if not re.search(r"[0-9]|\\(?!text|mathrm)", reference):
        return False
    text = reasoned(f"{lead} {said}")[:600]
    if not may_begin(text) and not is_foreign(text) and not any(map(is_foreign, _ENDS.split(text))):
        return False  # before anything is compared
    sentence, before, value, behind = _stating(text, agrees)
    if not sentence or not (is_foreign(sentence) or (value and begins(before, behind))):
        return False
    if _UNSPACED.search(sentence) or _HANGUL.search(sentence):
        return spoken_of(before, value, behind)
    known = _stems(f"{question} {reference}")
    after = _words(behind)
    words = [] if _EXISTS.fullmatch(before.strip()) else _words(before)
    if value and after and (_VERB.search(before) or (before and after[0].istitle() and _is_german(sentence))):
        after = after[1:]  # "Quedan 12 canicas", "Antwort: 57 Murmeln": what is counted
    unknown = [word for word in (*words, *after) if not _is_known(word, known)]
    return bool(unknown) and not _of_the_value(sentence, unknown, agrees)


def _of_the_value(sentence: str, words: list[str], agrees: Callable[[str], bool]) -> bool:
    """Say whether ``words`` are a part of the value, which is another one without them."""
    for text in (sentence, *cores(sentence)):
        if agrees(text) and not counts_anything(text):
            shorter = [_less(text, words), text.partition(words[0])[0], *(_less(text, [word]) for word in words)]
            return not any(agrees(said) for one in shorter for said in (one, *cores(one)))
    return False


def _less(text: str, words: list[str]) -> str:
    for word in words:
        text = text.replace(word, " ", 1)
    return " ".join(text.split()).strip(" —–-,.;:!()")


def counts_anything(text: str) -> bool:
    """Say whether a text is read as a number of something that nobody knows."""
    return any(map(_unknown_unit, read(text)[:1]))


def _unknown_unit(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_unknown_unit, value))
    if isinstance(value, Unit):
        return not value.known
    if isinstance(value, Scalar) and value.loose:
        return True
    return is_dataclass(value) and any(_unknown_unit(getattr(value, field.name)) for field in fields(value))


def _is_german(sentence: str) -> bool:
    return (
        re.search(r"\b(?:der|die|das|ist|sind|es|antwort|ergebnis|also|bleiben|insgesamt)\b", sentence, re.I)
        is not None
    )


def is_foreign(text: str) -> bool:
    bare_text = prose(text)
    return foreign(text) or _OURS.search(bare_text) is not None or _ACCENTED.search(bare_text) is not None


def _stating(text: str, agrees: Callable[[str], bool]) -> tuple[str, str, str, str]:
    """The last of the sentences that holds the right value, or the last one, and its parts."""
    sentences = [s for s in _ENDS.split(text.strip()) if s.strip()]
    for sentence in reversed(sentences):
        before, value, behind = _split(sentence, agrees)
        if value:
            return sentence, before, value, behind
    last = sentences[-1] if sentences else ""
    return last, last, "", ""


_VALUE = re.compile(r"\$([^$\n]{1,200})\$|\\\((.{1,200}?)\\\)|(-?[0-9][0-9.,:/]*[0-9]|[0-9])")


def _split(sentence: str, agrees: Callable[[str], bool]) -> tuple[str, str, str]:
    """What stands before the last right value, the value, and what stands behind it."""
    for match in reversed(list(_VALUE.finditer(sentence))):
        value = next(group for group in match.groups() if group is not None)
        if agrees(value):
            return sentence[: match.start()], value, sentence[match.end() :]
    return sentence, "", ""


def _words(text: str) -> list[str]:
    found = _WORD.findall(_SCRIPTS.sub(" ", prose(text)))
    return [word for word in found if len(word) > 1 and not _PRODUCT.fullmatch(word)]


def _is_known(word: str, known: frozenset[str]) -> bool:
    if "'" in word or "’" in word:
        return all(
            len(part) < 3 or part.lower() in _ELIDED or _is_known(part, known) for part in re.split("['’]", word)
        )
    if word.isupper() and len(word) < 4:
        return True  # names of points and currencies
    return (
        harmless(word)
        or bare(word)[:_STEM] in known
        or lookup(word) is not None
        or foreign_number(word) is not None
        or word.casefold() in KNOWN
    )


_ELIDED = frozenset("all dall dell nell sull quell quest jusqu lorsqu puisqu".split())


def number_like(word: str) -> bool:
    """Say whether a word can be a part of a value."""
    return harmless(word) and not framing(word)


def known_words(word: str, question: str) -> bool:
    """Say whether a word is harmless, a unit, a number or one of the question."""
    if _UNSPACED.search(word) or _HANGUL.search(word):
        return not unsure(word)
    return _is_known(word, _stems(question))


def words_around(before: str, behind: str) -> list[str]:
    """The words of two or more letters around a value."""
    return _words(f"{before} | {behind}")


@functools.lru_cache(256)
def _stems(text: str) -> frozenset[str]:
    return frozenset(bare(word)[:_STEM] for word in _LETTERS.findall(text) if word.casefold() not in _DENIALS)


_DENIALS = frozenset(
    "wrong false incorrect except without not no none never nor non nicht kein keine pas não nie ni niet geen inte "
    "ikke не нет ні".split()
)


_TOKEN = re.compile(rf"\s*({_WORD.pattern}|[:：,，;=>→⇒*_]+)")
_BACK = re.compile(rf"[\s,.;:!)(]*({_WORD.pattern})[\s.!*)。]*$")


def cores(sentence: str, question: str = "") -> Iterator[str]:
    """Yield what is left of ``sentence`` without the harmless words at its beginning, then without those at its end.

    Long words of ``question`` are harmless too.
    """
    text = sentence.strip()
    place = 0
    while (match := _TOKEN.match(text, place)) is not None and _is_frame(match[1], question):
        place = match.end()
    rest = text[place:].strip()
    if not rest or len(rest) > 400:
        return
    if place:
        yield rest
    while (match := _BACK.search(rest)) is not None and _is_frame(match[1], question):
        rest = rest[: match.start()].strip()
        if not rest:
            return
        yield rest


def _is_frame(word: str, question: str) -> bool:
    """Say whether a word says nothing about the value: no unit, no number, no name of a variable, no denial."""
    if not word[0].isalpha():
        return True
    if lookup(word) is not None or truth(word) is not None:
        return False
    if framing(word) and (len(word) > 1 or bare(word) not in "xyzabcdnkmtr" or word in "aà"):
        return True
    return len(word) > 3 and bool(question) and not number_like(word) and bare(word)[:_STEM] in _stems(question)
