"""Sentences whose "answer" is another one: twice the answer, the answer of a friend, the answer of another case."""

from __future__ import annotations

import re

from assay.verify.caseless import Caseless

_OPERATED = Caseless(
    r"\b(?:twice|half|double|triple|thrice|(?:square|cube|reciprocal|negative|inverse|opposite|sum|difference|product|root|"
    r"multiple|half|quarter|part|digit|remainder|double) of)(?: of)? (?:the|my|our|this) (?:\w+ )?(?:answer|result)\b|"
    r"\b(?:answer|result) (?:squared|cubed|times|plus|minus|divided|multiplied|doubled|halved|mod(?:ulo)?|modulus)\b|"
    r"\b(?:part|half|piece|multiple|fraction) of (?:the|my|our) (?:\w+ )?(?:answer|result)\b|"
    r"\banswer (?:starts|begins|ends|involves|includes|contains|exceeds|divides|approaches|has to do|differs|"
    r"depends)\b",
)
_PERSON = (
    r"(?:friend|classmate|student|pupil|neighbou?r|colleague|tutor|textbook|book|calculator|internet|website|"
    r"chatgpt|computer|brother|sister|mother|father|mom|dad|wikipedia|google)"
)
_ANOTHERS = Caseless(
    rf"\b(?:my|a|the|his|her|your|one|some|most|many)(?: \w+)? {_PERSON}s?\b[^.\n]{{0,30}}?\b(?:got|gets?|gave|"
    rf"gives?|says?|said|"
    rf"answer\w*|claim\w*|thinks?|thought|found|finds|wrote|told)\b|\b{_PERSON}s?['’]s? (?:answer|result|solution)\b|"
    r"\banswer (?:that )?(?:most|many|some|other|people|others|everyone|students)\b",
)
_ELSEWHERE = Caseless(
    r"\baccording to (?:my|an?|the (?:book|textbook|internet|calculator|key|teacher|website|web))\b|"
    r"\b(?:in|for|of|to) (?:the|a|an)? ?(?:previous|next|similar|different|another|other|earlier|last|first|special|"
    r"general|"
    r"easier|harder|original) (?:problem|question|exercise|part|case|task|triangle|example|"
    r"one)\b[^.\n]{0,20}\b(?:answer|result)\b|"
    r"\b(?:answer|result) (?:to|of|for|in) (?:the|a|an) (?:previous|next|similar|different|other|earlier|last|first|"
    r"special)\b|"
    r"\b(?:ignoring|neglecting|without counting|before (?:tax|tip|discount)|without (?:tax|tip|discount|the tax|"
    r"the tip))\b",
)
_CLAUSES = Caseless(r"[,;:](?:\s+(?:but|so|and|hence|thus|therefore|the)\b|(?<=;)\s)", frequent=True)
MAX_SENTENCE = 400


def another(sentence: str, question: str) -> str | None:
    """Return the words by which a sentence with the value speaks of another answer than the one that is asked for.

    Args:
        sentence: what stands before the value in its sentence, and the value with the rest of it.
        question: its own words are no reason.
    """
    if not any(map(str.isalpha, sentence)):
        return None
    whole = sentence[-MAX_SENTENCE:]
    clause = _CLAUSES.split(whole)[-1]
    for pattern, said in ((_OPERATED, clause), (_ANOTHERS, clause), (_ELSEWHERE, whole)):
        if (found := pattern.search(said)) is not None and not _asked(found.group(), question):
            return found.group()
    return None


def _asked(words: str, question: str) -> bool:
    """Say whether the question speaks of it too."""
    asked = question.casefold()
    long = [word for word in re.findall(r"[a-z]{4,}", words.casefold()) if word not in _COMMON]
    return bool(long) and all(word in asked for word in long)


_COMMON = frozenset(["answer", "answers", "result", "results", "solution", "solutions", "that", "most", "the"])
