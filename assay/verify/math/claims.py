# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Yes and no in a sentence that repeats the question's statement or its denial: ``221 is not prime``."""

from __future__ import annotations

import re

from assay.verify.math.foreign_doubt import reasoned
from assay.verify.math.forms import truth
from assay.verify.math.harmless import bare
from assay.verify.math.values import Truth

MAX_LENGTH = 300
_ASKS = re.compile(
    r"^\W*(?:(?:answer|say|state|decide)[^.?!]{0,40}[.:?!]\s*)?(?:is|are|does|do|did|was|can|has|have|"
    r"will)\s(?P<rest>.{3,160}?)\?",
    re.IGNORECASE | re.DOTALL,
)
_JUDGED = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:the|this|that) (?:statement|claim|assertion|proposition|equation|"
    r"inequality|"
    r"sentence)|it|this|that)(?: is|'s)?(?P<no> not|n't)? (?:always )?(?:necessarily )?(?P<word>true|false|correct|"
    r"incorrect|"
    r"right|wrong|untrue)",
    re.IGNORECASE,
)
_JUDGED_ELSEWHERE = re.compile(
    r"(?:die (?:aussage|behauptung)|das|la (?:afirmación|proposición)|esto|l'(?:affirmation|énoncé)|c'|"
    r"cette affirmation|"
    r"l'affermazione|a afirmação|утверждение|stwierdzenie|该命题|这个命题|命题)\s?"
    r"(?:ist|es|est|è|é|jest|是)?\s?(?:(?P<true>wahr|richtig|korrekt|verdader[oa]|ciert[oa]|correct[oa]|vraie?|"
    r"exacte?|vera|"
    r"corretta|verdadeira|correta|верно|истинно|prawdziwe|真的?|正确的?)|(?P<false>falsch|fals[oa]|fausse?|inexacte?|"
    r"неверно|ложно|fałszywe|假的?|错误的?))",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not|cannot|nicht|keine?|niet|geen|no|non|n|pas|não|не|nie|inte|ikke|değil|không phải|bukan)\b|n['’]t\b|"
    r"不是|不|ではない|"
    r"ではありません|아니",
    re.IGNORECASE,
)
_OPPOSITE = {"prime": "composite", "even": "odd", "odd": "even", "rational": "irrational", "converge": "diverges"}
_LITTLE = frozenset(
    "it is are a an the so thus hence therefore number integer be does do can has have was that "
    "this in fact es ist eine ein zahl "
    "primzahl est un une nombre premier es un número primo número è numero primo é число простое".split()
)
_ANSWERS = re.compile(r"([^\W\d_]{1,12}?)的?\s?(?:[,;.!，。]\s?|\s(?=because|since|as\b))", re.IGNORECASE)
_OPEN = re.compile(
    r"[?？]|\b(?:if|unless|but|or|maybe|perhaps|might|may|could|would|says?|claims?|think|wrong)\b", re.I
)
_ENDS = re.compile(
    r"[,;:(]\s?|\.\s|\s[–—-]\s|\s(?:because|since|as|being|weil|denn|car|porque|perché)\s|(?<=\w)\s(?=and divisible)",
    re.I,
)


def claimed(kind: Truth, text: str, question: str) -> bool:
    """Say whether ``text`` states what the question asks about, or denies it, as ``kind`` does."""
    text = re.sub(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}", r"\1", text).strip(" \n.!*_$")
    if not text or len(text) > MAX_LENGTH:
        return False
    answered = _ANSWERS.match(text)
    if answered is not None and (word := truth(answered[1])) is not None:
        rest = text[answered.end() :]
        return word == kind and not _OPEN.search(rest) and not _otherwise(rest, kind)
    said = _ENDS.split(reasoned(text), maxsplit=1)[0].strip()
    if _OPEN.search(said):
        return False
    if (judged := _JUDGED.fullmatch(said)) is not None:
        true = judged["word"].casefold() in ("true", "correct", "right")
        return kind.value is (true == (judged["no"] is None))
    if (judged := _JUDGED_ELSEWHERE.fullmatch(said)) is not None:
        return kind.value is (judged["true"] is not None)
    asked = _ASKS.match(question.strip())
    if asked is None or len(_NOT.findall(said)) > 1:
        return False
    denied = _NOT.search(said) is not None
    words = [bare(word) for word in re.findall(r"[^\W\d_]+", _NOT.sub(" ", said))]
    known = {bare(word) for word in re.findall(r"[^\W\d_]+", asked["rest"])}
    opposite = {other for word, other in _OPPOSITE.items() if word in known and other not in known}
    if not denied and opposite & set(words):
        return kind.value is False and set(words) <= known | _LITTLE | opposite
    told = set(words) - _LITTLE
    if not told or not told <= known or _NOT.search(asked["rest"]):
        return False
    if not set(re.findall(r"[0-9]+", said)) <= set(re.findall(r"[0-9]+", asked["rest"])):
        return False
    return denied and kind.value is False


def _otherwise(text: str, kind: Truth) -> bool:
    """Say whether one of the words of ``text`` is the other truth value."""
    said = [truth(word) for word in re.findall(r"[^\W\d_]+", text)]
    return Truth(not kind.value) in said
