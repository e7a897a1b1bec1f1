# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""What is said of a value that is the subject of its sentence: ``42 is too much``, ``12 cannot be``."""

from __future__ import annotations

import re

from assay.verify.caseless import Caseless
from assay.verify.math.asked_words import all_asked, is_asked, unknown
from assay.verify.math.elsewhere import NO_THINGS
from assay.verify.math.in_front import NO_LABELS
from assay.verify.math.units import lookup

_CLAUSE = Caseless(
    r"[,;:.!?]\s+|\s[–—-]\s|[⇒→]|=>|\\(?:implies|Rightarrow|to)(?![a-z])|"
    r"\b(?:so|therefore|thus|hence|then|because|since|but|and)\b",
)
_SUBJECT = frozenset(
    """
    the a an our my this that its final correct right answer answers result results solution solutions value number
    total sum amount what we i want wanted wants need needed asked for required desired sought of to in exactly
    therefore thus hence then so indeed only unique it is are will be must problem question exercise get obtain find
    found have also left all equal correct one single each per and with as by at on there how many much which were was
    looking exact simplest form simplified remaining root roots zero zeros equation
    """.split()
)
_SAID = _SUBJECT | (NO_THINGS - NO_LABELS)
_PREDICATE = re.compile(
    r"^\W*(?P<noun>(?:[a-z]+ )?)(?P<verb>is|are|was|were|would|could|might|may|can(?!['’])|cannot|can['’]t|can not|"
    r"does|do|"
    r"doesn['’]t|don['’]t|isn['’]t|aren['’]t|wasn['’]t|won['’]t|didn['’]t|has|fits|lies|looks|seems|sounds|needs|"
    r"should|comes|feels|appears|works|serves)\b(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_NEVER_SAID = re.compile(
    r"\b(?:not|never|no|cannot|too|an? (?:answer|solution)|(?:his|her|their|your|whose) (?:\w+ )?"
    r"(?:answer|result|solution|guess|value)|(?:his|hers|theirs|yours)(?=\W*$)|half|twice|part|first|step|intermediate|"
    r"candidate|given|far|close|only (?:an?|part|half|one|some)|out of|extraneous|rejected|invalid|wrong|"
    r"(?-i:[A-Z][a-z]+)"
    r"['’]s|\w+n['’]t)\b",
    re.IGNORECASE,
)
_GRADED = re.compile(
    r"^[\s$*)\]}]*(?:[A-Za-z%°/\\{}^]+\s){0,3}(?P<grade>too (?:\w+)|off|shy|and (?:change|counting|then some|a bit|"
    r"some|"
    r"more|a half|rising|falling)|upwards|downwards|give or take|plus or minus|high|low|apart|at first|to begin with|"
    r"for now|initially|originally|so far|(?:before|without|excluding|ignoring|not counting) (?:the )?(?P<thing>\w+))"
    r"\b(?!\s?[0-9])",
    re.IGNORECASE,
)
_WANTS_ANOTHER = re.compile(
    r"[,;.–—-]\s*(?:but|yet|though|although|however|whereas|while|not counting|excluding|ignoring|without)\b(?P<rest>"
    r"[^.!?]{0,80}\b(?:need|needs|want|wants|wanted|asks?|asked|required|sought|looking|counting|"
    r"last one|first one|the answer)\b)",
    re.IGNORECASE,
)


def said_of(before: str, behind: str, asked: frozenset[str]) -> str | None:
    """What is said of a value that makes it another thing than the answer."""
    if (graded := _GRADED.match(behind)) is not None:
        thing = graded["thing"]
        of_the_value = thing in _PRONOUNS or (graded["grade"] in _MEASURES and not _IS.search(before))
        if not of_the_value and not (is_asked(thing, asked) if thing else all_asked(graded["grade"], asked)):
            return graded.group().strip()
    if (on := _WORKS_ON.match(behind)) is not None:
        return on.group().strip()
    if (wanted := _WANTS_ANOTHER.search(behind)) is not None and not all_asked(wanted.group(), asked):
        return wanted.group().strip(" ,;")
    said = _CLAUSE.split(before)[-1]
    predicate = _PREDICATE.match(behind)
    if predicate is None or any(map(str.isalpha, said)):
        return None
    noun = predicate["noun"].strip().casefold()
    verb, rest = predicate["verb"].casefold(), _PREDICATE_ENDS.split(predicate["rest"])[0]
    if noun and not (is_asked(noun, asked) or lookup(noun) is not None or noun in ("only",)):
        return None
    if verb not in _STATES:
        return f"{verb}{rest}"
    if (never := _NEVER_SAID.search(rest)) is not None and not all_asked(never.group(), asked):
        return f"{verb}{rest}"
    word = unknown(rest, _SAID, asked)
    return None if word is None else f"{verb} {word}"


_PREDICATE_ENDS = re.compile(r"[.;]\s|,\s(?!not\b|but\b)|\bbecause\b|\bsince\b")
_STATES = frozenset("is are was were has does do can should would need needs comes fits works".split())
_MEASURES = ("off", "shy", "high", "low", "apart")
_PRONOUNS = frozenset("he she they it we i you his her their its our".split())
_IS = Caseless(r"\b(?:answer|result|solution|it|that|this)\b.*\b(?:is|was|are|were)\b|['’]s\W*$")
_WORKS_ON = re.compile(
    r"^[\s$)*\]},]*(?:we|i|you|one|let us|let['’]s)\s(?:now |then |can |could |may |will )*(?:continue|proceed|go on|"
    r"move on|carry on|"
    r"start|begin)\b",
    re.IGNORECASE,
)


__all__ = ["said_of"]
