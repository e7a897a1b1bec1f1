"""Whether a sentence states the reference, by the kind of answer the reference is."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from assay.verify.math.context import Context
from assay.verify.math.equal import matches
from assay.verify.math.final import Final
from assay.verify.math.forms import truth, words_of
from assay.verify.math.read import read
from assay.verify.math.sentence import candidates, hedged, last_result, readable
from assay.verify.math.spoken import in_digits, number_in_digits
from assay.verify.math.values import Choice, Items, RealSet, Relation, Scalar, Sign, Text, Truth


def in_sentence(reference: str, final: Final, context: Context) -> bool | None:
    """Look for the answer within a sentence; ``None`` if nothing in it can be read."""
    kind = next(iter(read(reference)), None)
    if kind is None:
        return None
    if isinstance(kind, Truth):
        return _truth(kind, final.text)
    if isinstance(kind, Choice):
        return _choice(kind, reference, final, context)
    if isinstance(kind, Text | Sign):
        return _words(reference, final, context)
    return _value(reference, isinstance(kind, Items | RealSet | Relation), final, context)


_WORD = re.compile(r"(?<!\\)(?<![A-Za-z])[^\W\d_]{2,}")
_PENDING = re.compile(r"[0-9)}]\s*(?:[+*×÷]|\\times|\\cdot|\\div|-\s|\s-)\s*(?!10\s?(?:\^|\*\*|[⁰-⁹²³¹⁻]))[0-9(]")

_COUNTED = re.compile(
    r"\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]+teen|twenty|thirty|forty|fifty|sixty|seventy|"
    r"eighty|ninety|hundred|thousand)\b",
    re.IGNORECASE,
)
_BY_METHOD = re.compile(
    r"(\$[^$]{1,80}\$|[^\s$,;()]{1,40})\s\((?:by |using |via |with |from )?(?:the )?"
    r"(?:first|second|third|method|approach|way|solution)\b[^()]{0,30}\)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\s\((?:[^\W\d_]{2,20}[ ,]{1,2}){1,12}[^\W\d_]{2,20}\)[\s.*$]*$")
_SUM = re.compile(r"[0-9)}!]\s*[-+±]")


_FORMULA = re.compile(r"\$[^$=]{1,200}\$(?=\s(?:is|are|equals)\s[a-z])")
"""A formula whose value a sentence says in words."""
_GIVEN = re.compile(r"\s(?:in|for|per) (?:an?|one|[0-9]+(?:\.[0-9]+)?)\s?[A-Za-z]{1,14}(?=[\s.!*]*$)")
"""A quantity of the question at the end of a sentence."""


def pending(text: str, context: Context) -> bool:
    """Say whether a text is arithmetic still to be done, which states no result where a value is asked for."""
    if context.unevaluated and not _SUM.search(text):
        return False
    return _PENDING.search(text) is not None and any(
        isinstance(value, Scalar) and isinstance(value.node, Fraction) for value in read(text)
    )


def _value(reference: str, several: bool, final: Final, context: Context) -> bool | None:
    text = final.text
    if any(not matches(reference, one, context) for one in _BY_METHOD.findall(text)):
        return False  # two methods with two results
    if final.marker and (aside := _ASIDE.search(text)) is not None and not hedged(aside.group()):
        stated = text[: aside.start()]
        return matches(reference, stated, context) or _value(reference, several, replace(final, text=stated), context)
    if context.given is not None and (told := _GIVEN.sub("", text)) != text and told.strip():
        # "There are one hundred fifty minutes in 2.5 hours."
        return _value(reference, several, replace(final, text=told), context)
    if readable(text):
        if final.marker or pending(text, context) or (hedged(text) and not several):
            return False
        return matches(reference, text, context)
    spoken = _FORMULA.sub(" ", text) if "$" in text and _COUNTED.search(text) is not None else text
    if len(text) <= 400 and not any(map(str.isdigit, spoken)) and _COUNTED.search(spoken) is not None:
        written = in_digits(spoken)
        if len(re.findall("[0-9]+", written)) == 1:
            return _value(reference, several, replace(final, text=written), context)
    if len(text) <= 200 and not any(map(str.isdigit, text)) and (digits := number_in_digits(text)) is not None:
        return _value(reference, several, replace(final, text=digits), context)
    if hedged(text) and not several:
        # Doubts in an earlier clause than "... = 12 eggs" are not about the 12.
        result = None if final.marker or _hedges_result(text) else last_result(text)
        return None if result is None else matches(reference, result, context)
    if _WORD.search(text) is None:
        # A formula that cannot be read is no sentence around one.
        result = None if final.marker else last_result(text)
        return (
            None
            if result is None or not pending(text.partition("=")[0], context)
            else matches(reference, result, context)
        )
    doubted = hedged(text)
    for candidate in candidates(text, final.marker):
        if doubted and not hedged(candidate):
            continue  # one of several sets of values
        if readable(candidate) and (final.marker or not pending(candidate, context)):
            return matches(reference, candidate, context)
    return None


_BREAK = re.compile(r"[,;:.!?]\s|\n|\s[–—-]\s")


def _hedges_result(text: str) -> bool:
    """Say whether the clause with the last equals sign is hedged in words: ``Definitely not $x = 3$``."""
    clause = _BREAK.split(text.rpartition("=")[0])[-1]
    return _STANCE.search(clause) is not None


_STANCE = re.compile(
    r"\b(?:not|never|neither|nor|n't|might|may|could|maybe|perhaps|possibly|hardly|no way|by no means|anything but)\b|"
    r"n['’]t\b",
    re.IGNORECASE,
)
_IS = re.compile(r"\b(?:is|are|es|est|ist|answer:)\s+[*$\"']*([^\W\d_]+)[*$\"']*\W*$", re.IGNORECASE)
_JUDGING = re.compile(r"\b(?:verdict|equivalent|judge|grade|reference|ground truth|score)\b", re.IGNORECASE)


def _truth(kind: Truth, text: str) -> bool:
    """``Yes, because ...``, ``The statement is true.``; not where both are said."""
    words = re.findall(r"[^\W\d_]+", text[:2000])
    said = {value.value for word in words if (value := truth(word)) is not None}
    if said != {kind.value} or _JUDGING.search(text) or _OFFERED.search(text):
        return False
    if truth(words[0]) is not None:
        return _EMPTY_HANDED.match(text) is None and (
            _TALKED_OF.match(text) is None or _CALLED_RIGHT.match(text) is not None
        )
    ending = _IS.search(text)
    return ending is not None and truth(ending[1]) == kind and not re.search(r"\bnot\b|n't\b", text)


_FIRST_WORD = re.compile(r"\W{0,4}([^\W\d_]{2,12})[*_]{0,2}(?:[.,;!。，]|\s?[–—]|\s-\s)")


def says_first(response: str) -> Truth | None:
    """Return the truth value that a short response begins with: ``False. A counterexample is 2.``"""
    word = _FIRST_WORD.match(response) if len(response) <= 400 else None
    return None if word is None else truth(word[1])


_EMPTY_HANDED = re.compile(
    r"\W*no (?:idea|clue|answer|comment|problem|way|guess|thanks|thank|worries|solution|information|one|time|reply)\b",
    re.IGNORECASE,
)
_TALKED_OF = re.compile(
    r"\W*\w+[\s*\"'”)]+(?:is|was|are|were|would|wouldn't|can|cannot|can't|could|couldn't|should|isn't|wasn't|seems?|looks?|sounds?|"
    r"feels?|must|may|might|will|won't|has|does|doesn't|being|as|ist|wäre|kann|est|serait|es|sería|è|sarebbe|é|seria|zou|"
    r"är|er|jest|by[łl]oby|это|было|будет|olur|adalah)\b",
    re.IGNORECASE,
)
"""A truth value as the subject of a sentence: "Yes is wrong"."""
_CALLED_RIGHT = re.compile(
    r"\W*\w+[\s*\"'”)]+(?:is|ist|est|es|è|é|jest) (?:the|my|our|die|la|el|a)?\s?"
    r"(?:final |correct |right |richtige |bonne )?"
    r"(?:answer|response|conclusion|choice|verdict|correct|right|antwort|respuesta|réponse|risposta|resposta|richtig|"
    r"correcto?a?)\b[\s*.!]*(?:$|because|since|as)",
    re.IGNORECASE,
)
_OFFERED = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|alternatively|not sure|unsure|could|might)\b", re.IGNORECASE
)
_OPTION = re.compile(
    r"(?i:\b(?:option|choice|answer|letter)\s*(?:is\s*|:\s*)?)[*$(]*([A-J])\b|"
    r"^\W{0,3}([A-J])(?=[.,:;)]|\s+(?:because|since|as|is the)\b|\W*$)|\(([A-J])\)"
)


def _choice(kind: Choice, reference: str, final: Final, context: Context) -> bool:
    text = final.text
    readings = read(text)
    if readings and isinstance(readings[0], Choice):
        return matches(reference, text, context) if not final.marker else False
    if _OFFERED.search(text) or re.search(r"\bnot\b|n't\b|\bwrong\b|\bincorrect\b|\bfalse\b", text, re.IGNORECASE):
        return False
    letters = {next(filter(None, groups)) for groups in _OPTION.findall(text)}
    if letters:
        return letters == kind.letters
    return any(readable(c) and matches(reference, c, context) for c in candidates(text, final.marker))


def _words(reference: str, final: Final, context: Context) -> bool:
    """``It is Evelyn.``, ``Evelyn, because ...``; the sentence may deny or offer nothing."""
    text = final.text
    if not final.marker and matches(reference, text, context):
        return True
    head = re.split(r"[,;:(.]|\s[–—-]\s|\sbecause\b|\ssince\b", text.strip(" *$"), maxsplit=1)[0].strip()
    if hedged(text) and (not head or hedged(head) or _OFFERED.search(text[len(head) :])):
        return False
    following = re.match(r"[,;]\s*(\w+)(?:\s+\w+){0,2}\W*$", text.strip(" *$")[len(head) :])
    if following is not None and readable(following[1]) is False:
        return False  # "Evelyn; Carla"
    return any(
        candidate and not hedged(candidate) and matches(reference, candidate.rstrip(".,;:!"), context)
        for candidate in candidates(text, final.marker)
    )


def another_option(kind: Choice, after: str, context: Context) -> bool:
    """Say whether "A. Jupiter" names another option than A in what follows the letter."""
    line = words_of(after.strip(" .:)*\n")[:300].partition("\n")[0]).words
    return any(
        letter not in kind.letters and (said := words_of(content).words) and (line + " ").startswith(said + " ")
        for letter, content in context.options.items()
    )
