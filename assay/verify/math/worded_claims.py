"""Whether what follows an opening yes or no contradicts it, or is no answer at all: ``No, it is prime.``

For ``Is 91 a prime number?`` the clause after "No" has to deny that 91 is prime, or say something else about it.
"""

from __future__ import annotations

import re

from assay.verify.math.harmless import bare
from assay.verify.math.values import Truth

_ASKS = re.compile(
    r"(?:^|[.!?:]\s+)(?:is|are|does|do|can|has|have|was|were|will)\s+(?P<rest>[^?]{3,160})\?", re.IGNORECASE
)
_PAIRS = (
    ("prime", "composite"),
    ("even", "odd"),
    ("rational", "irrational"),
    ("converge", "diverge"),
    ("convergent", "divergent"),
    ("finite", "infinite"),
    ("positive", "negative"),
    ("equal", "unequal"),
    ("parallel", "perpendicular"),
    ("solvable", "unsolvable"),
    ("divisible", "indivisible"),
)
_OPPOSITES = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_CLAUSE = re.compile(
    r"^[\s,.;:!–—*_-]*(?:(?:indeed|in fact|of course|because|since|as|so|actually|well|no|yes),?\s+)*"
    r"(?P<subject>it|this|that|they|[0-9$\\][^\s]*|(?:the|this|that|every|a|"
    r"an)\s(?:[^\W\d_]+\s){0,3}?(?:[0-9]+\s)?)\s*"
    r"(?:['’]s|(?P<verb>is|are|does|do|has|have|was|can)(?P<glued>n['’]t|not)?)\s+(?P<no>not|never|"
    r"no)?\s*(?P<said>[^.;!\n]{1,100})",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|never|no|neither|fails)\b|n['’]t\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{3,}")
_NO_ANSWER = re.compile(
    r"^\s+(?:(?:further|more|other)\s)?(?:answer|doubt|question|questions|matter|means|explanation|thoughts?|"
    r"idea|clue|solution|"
    r"comment|problem|wonder|way|worries|thanks|reason|need|opinion|guess|reply|response|information|one|time)\b",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"^[\s,.;:!–—-]*(?:i (?!checked|verified|found|computed|tested|tried|calculated|confirmed|divided|get|got)|"
    r"i['’]|you\b|"
    r"(?:what a |a |very )?(?:good|great|nice|hard|interesting|fair) (?:question|point)|this is a (?:\w+ "
    r")?(?:question|problem)|"
    r"if\b|when\b|provided\b|but (?:only|not)|in (?:some|certain|a way)|only (?:if|when|some)|sometimes|for "
    r"(?:some|certain)|"
    r"(?:haha|lol|nope|no|not)\b[\s.!,]*$)",
    re.IGNORECASE,
)
_OTHER_STATEMENT = re.compile(
    r"\b(?:negation|converse|opposite|contrapositive|inverse|reverse|contrary|denial|false that)\b", re.IGNORECASE
)


def contradicts(question: str, kind: Truth, front: str, behind: str, later: list[str]) -> str | None:
    """Say why a truth value with its clause is no answer to the question, ``None`` if it is one."""
    if _OTHER_STATEMENT.search(front) and not _OTHER_STATEMENT.search(question):
        return "another statement is judged"
    if re.search(r"\w", front):
        return None
    if _NO_ANSWER.match(behind):
        return "the word denies a noun, not the question"
    if _SELF.match(behind) and not re.search(r"\bif\b", question) and _THEN.search(behind) is None:
        return "the opening word answers nothing"
    if kind.value and _ISNT.match(behind):
        return "the clause contradicts the opening word"
    asked = _ASKS.search(question)
    for text in (behind, *([] if re.search(r"\w", behind) else later[:1])):
        if asked is not None and (against := _against(text, asked["rest"], kind)):
            return against
    if later and not re.search(r"\w", behind) and re.fullmatch(r"\W*[0-9]+\W*", later[0]) and kind.value is False:
        return "the word abbreviates a number"
    return None


_ISNT = re.compile(
    r"[\s,.;:!–—-]*(?:it|this|that|they) (?:is|are|does|do|has|can)(?:n['’]t| not|not)\W*$", re.IGNORECASE
)
_THEN = re.compile(r"\bthen\b|\bif\b[^,]*,", re.IGNORECASE)


def _against(text: str, asked: str, kind: Truth) -> str | None:
    """Compare the clause with what is asked: its predicate or the opposite, denied or not."""
    if _NOT.search(asked):
        return None
    alone = re.fullmatch(r"[\s,.;:!–—-]*(?:so\s)?(?P<said>[^\W\d_]+)\W*", text)
    clause = _CLAUSE.match(text)
    if clause is None and alone is None:
        so = re.search(
            r"\bso (?:it|this|that|[0-9]+) (?:is|are)\s(?P<no>not\s)?(?P<said>[^.;!,\n]{1,60})", text, re.IGNORECASE
        )
        if so is None:
            return None
        denied, said = so["no"] is not None, so["said"]
    elif clause is not None:
        first = re.split(r",|;|\bbecause\b|\bsince\b|\bas\b|\bso\b|\band\b|\bbut\b", clause["said"])[0]
        if (
            re.search(r"\b(?:only|also|the (?:product|sum)|equal to|divisible|list)\b", first)
            and "divisible" not in asked
            and "on the list of" not in first
        ):
            return None
        denied, said = bool(clause["no"] or clause["glued"]), first
        so = re.search(
            r"\bso (?:it|this|that|[0-9]+) (?:is|are)\s(?P<no>not\s)?(?P<said>[^.;!,\n]{1,60})", text, re.IGNORECASE
        )
        if so is not None:
            denied, said = so["no"] is not None, so["said"]
    else:
        denied, said = False, alone["said"]  # type: ignore[index]
    wanted = [w.casefold() for w in _WORD.findall(asked)]
    words = [w.casefold() for w in _WORD.findall(said)]
    if kind.value and not words and denied:
        return "the clause contradicts the opening word"
    predicate = next((w for w in reversed(wanted) if w in _OPPOSITES), None)
    if predicate is None:
        tail = {bare(w)[:5] for w in wanted[-2:]}
        told = {bare(w)[:5] for w in words}
        if not tail or not tail <= told:
            return None
        true = not denied
    else:
        stems = {bare(w).rstrip("s") for w in words}
        if bare(predicate).rstrip("s") in stems or (predicate == "prime" and "primes" in words):
            true = not denied
        elif _OPPOSITES[predicate].rstrip("s") in stems:
            true = denied
        else:
            return None
    if re.search(r"\b(?:false|wrong|untrue|incorrect)\b", said):
        true = not true
    return None if true == kind.value else "the clause contradicts the opening word"


__all__ = ["contradicts"]
