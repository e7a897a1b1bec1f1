"""Whether a negation governs the clause that holds the answer: "There is no way that it is 5", "I never got P = 0.4".

A negation inside the subject ("the number of ways with no two alike is 5") denies nothing. What counts stands at the
beginning of the clause, or belongs to a verb whose subject is the writer or a pronoun.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.units import lookup
from assay.verify.math.words import number_words

BREAK = Caseless(
    r"[,;:.!?\s](?:(?<=[,;:.!?])\s|(?<=\n)|(?<=\s)[–—-]\s)|"
    r"\b(?:so|therefore|thus|hence|(?<!thing )but|then|because|since|however|"
    r"consequently|yet|rather)\b",
)
_START = Caseless(
    r"^\W*(?:(?:and|or|well|still|indeed|in fact|of course|\w{2,12}ly),? ){0,2}(?:"
    r"there(?:'s| is| are| was) (?:no(?!t a "
    r"doubt)\b(?! (?:doubt|"
    r"other|need|more))|hardly|little|nothing)|(?:by|at|in|under|on|for) no\b|(?:in|on) (?:none|neither)|"
    r"never\b|none\b|nobody\b|no one\b|"
    r"nothing\b|neither\b|no(?:t|where)\b(?! only)|no (?!doubt|matter|more|wonder|solution|need|question)\w+|"
    r"far (?:be it )?from|"
    r"contrary to|against (?:the|all)|(?:every|any)(?:thing|body|one)? (?:other )?(?:value |number |answer "
    r")?(?:but|except|besides|other than)\b|"
    r"all (?:\w+ )?(?:but|except)\b|hardly\b|scarcely\b|rarely\b|seldom\b|little (?:suggests|speaks))",
)
_VERB = Caseless(
    r"\b(?:i|we|you|one|they|it|this|that|which|he|she|nobody|p|x|answer|result|value|work|calculation|computations?|"
    r"evidence|equation|nothing)\b(?: \w+)?(?: \w+)? ?(?:n't|\bnot\b(?! (?:only|surprising|hard|difficult))|"
    r"\bnever\b|\bcannot\b|"
    r"\bno longer\b|\bhardly\b|\bscarcely\b|\bin no way\b|\bby no means\b)|\b(?:is|are|was|do|does|did|would|"
    r"could|can|has|have|had|"
    r"should|must|wo|ca)n't\b",
)
_SUBORDINATE = Caseless(r"^\W*(?:if|when|while|although|though|as|because|since|given|whether or not|once|where)\b")
_DENIES = Caseless(
    r"\b(?:den(?:y|ies|ied)|refuse[sd]?|reject(?:s|ed)?|disput(?:e|es|ed)|doubt(?:s|ed)?|disbelieve|contest(?:s|ed)?|"
    r"retract(?:s|ed)?|lacks?|untrue|disproved?|refuted?|contradicts?|anything (?:but|except)|everything "
    r"(?:but|except)|"
    r"other than|except(?: for)?|unequal|unrelated|differs? from|distinct from)\b(?:[^,.;:]{0,60})$",
)
_INVENTED = Caseless(
    r"\b(?:could|might|may|would|can)\s(?:\w+\s)?(?:write|say|put|guess|claim|tell|argue|invent|type|answer|"
    r"make up)\b[^,.;:]{0,30}$",
)
"""What one could write is not what one says."""
_AFTERWARDS = Caseless(
    r"^[\s$)*\]}]*(?:(?:fails|collapses|breaks down|falls (?:apart|through)|cannot|can't|does(?: not|n't)|"
    r"did(?: not|n't)|"
    r"won't|isn't|is (?:not|never|out of the question|wide of the mark|off|far from)|leads? (?:us )?astray|"
    r"and (?:see|look|find out)|would (?:follow|hold|be (?:wrong|false|a mistake|too|right|true|"
    r"correct)))\b)(?! (?:depend|matter|change|need|require|include|count|exceed|only))",
)
_HARMLESS = Caseless(
    r"\b(?:without (?:loss|a doubt|doubt)|no doubt|not only|no other|nothing (?:else|more|but|other)|none "
    r"other|need not|"
    r"(?:do|does)(?: not|n't) (?:need|matter|depend|change|forget|affect|have to)|not to forget|why not|no "
    r"more than)\b",
)
_OTHERS = Caseless(
    r"\b(?:told|tells|says|said|claims?|claimed|heard|(?<!to )read|writes|wrote)(?: (?:me|us|you))?(?: that)?(?: "
    r"(?:it|the \w+) (?:is|was))?$",
)
_COUNTERFACTUAL = Caseless(r"^\W*(?:if\b.*\b(?:were|had|would)\b|had (?:he|she|it|they|we|i|you|the)\b)")
_LABEL = Caseless(
    r"\b(?:option|question|page|chapter|step|line|equation|item|problem|exercise|section|figure|table|row|"
    r"column)\s*[(\[#]?$",
)
"""What makes a number a label."""
_NEIGHBOUR = Caseless(r"\b(?:number|integer|value|one) (?:\w+ )?(?:before|after|below|above|next to)$")
_SOFT = Caseless(
    r"\b(?:guess\w*|probably|estimates?|(?:lower|upper) bound|if forced|citation needed|no answer|unsure|"
    r"uncertain)\b|[0-9]-ish\b",
)
_WEAKENED = Caseless(r"^[\s$)*\]}]*(?:(?:\w+ )?(?:plus|minus|times) [a-z]|[,–—-]+\s?no[.!\s]*$)")
_VALUE = re.compile(
    r"\$([^$\n]{1,200})\$|\\\((.{1,200}?)\\\)|"
    r"((?:(?<![-+/*^0-9A-Za-z\\])(?<![-+/*^] )[A-Za-z](?:\(\w+\))? ?= ?)?-?[0-9][0-9.,/]*)"
)


_ANNOUNCING = re.compile(
    r"\W*(?:(?:so|thus|hence|therefore|and|we|get|have|find|obtain|the|our|my|final|correct|answer|result|value|is|"
    r"are|"
    r"equals?|to|of|that|which|gives?|this|it|[a-z])\b\W*)*",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{2,}")
_BLANKS = re.compile(r"[ \t]+(?=['’]t\b|[ \t])")
"""Blanks too many where a sentence was cut and put together again."""


def negated(lead: str, said: str, marker: bool, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether the clause with the answer is denied.

    Args:
        lead: what stands before the marked answer in its sentence.
        said: the answer, or the sentence that states it, and the rest of its line.
        marker: whether a phrase or a box marks the answer.
        reference: what the answer is compared with.
        agrees: whether a text is the reference.
    """
    if not _VALUED.search(reference) or _NEGATIVE.search(reference):
        return False
    if _ANNOUNCING.fullmatch(lead) and _WORD.search(said) is None:
        return False  # nothing is said that could deny
    before, behind = around(said, agrees)
    named = said[len(before) : len(before) + 1].isalpha()  # "the line x = 3"
    start = _BLANKS.sub("", f"{lead} {before}").strip()
    clause = BREAK.split(start)[-1].strip()
    if _OTHERS.search(clause.rstrip(" :$*\"'")) or _COUNTERFACTUAL.match(start):
        return True
    if _NEIGHBOUR.search(clause) or (not marker and not named and _LABEL.search(clause)):
        return True
    if clause and _HARMLESS.search(clause) is None:
        if _START.match(clause) or _DENIES.search(clause) or _INVENTED.search(clause):
            return True
        if _SUBORDINATE.match(clause) is None and _VERB.search(clause):
            return True
    return _AFTERWARDS.match(behind) is not None or _WEAKENED.match(behind) is not None


def softened(lead: str, said: str, question: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether the clause with the answer calls it a guess, an estimate or a bound, and the question none."""
    if _SOFT.search(f"{lead} {said}") is None:
        return False
    before, behind = around(said, agrees)
    if not before and not behind:
        behind = said
    found = _SOFT.search(f"{BREAK.split(f'{lead} {before}')[-1]} 0{behind}")
    if found is None:
        return False
    word = found.group().casefold()[:6]
    return word not in question.casefold() and word not in reference.casefold()


@functools.lru_cache(32)  # several rules ask about the same sentence
def around(said: str, agrees: Callable[[str], bool], reference: str = "") -> tuple[str, str]:
    """What stands before and after the last right value of a sentence, or before and after ``reference`` as written."""
    for match in reversed(list(_VALUE.finditer(said[:600]))):
        value = next(group for group in match.groups() if group is not None)
        if agrees(value.rstrip(".,")):
            return said[: match.start()], said[match.end() :]
    written = reference.strip(" $.")
    if not written or len(written) > 200:
        return "", ""
    low, sought = said[:600].lower(), written.lower()
    place = low.rfind(sought)
    while place >= 0:  # a pattern made for one text costs more to compile than to search
        end = place + len(sought)
        inside = (written[0].isalpha() and low[place - 1 : place].isalpha()) or (
            written[-1].isalpha() and low[end : end + 1].isalpha()
        )
        if not inside:
            return said[:place], said[end:]
        place = low.rfind(sought, 0, place + len(sought) - 1)
    return _spelled(said[:600], agrees)


_VALUED = re.compile(r"[0-9\\]")
_NEGATIVE = re.compile(r"\bnot?\b|\\neq?\b|≠")
_COMMANDS = re.compile(r"\\(?:begin|end)\{[^{}]*\}|\\[A-Za-z]+")
_WORDS = re.compile(r"[A-Za-z]{3,}")
_JOINS = frozenset(("and", "plus", "minus", "times", "over", "the", "square", "root", "point"))
_PIECES = re.compile(r"\S+")
_BEGINS = re.compile(r"[\"'“*_(\[]*(?:[-−+±√¼-¾]|\\[a-z{(]|[$€£¥₹({\[]|[0-9]|[πe](?![^\W\d_]))")
_FIRST_WORD = re.compile(r"[\"'“*_(]*([A-Za-z]+)")
MAX_PIECES = 7
MAX_BEGINNINGS = 4


def _of_values(word: str) -> bool:
    """Say whether a word is a number, a unit or stands between such."""
    low = word.lower()
    return low in _JOINS or number_words(low) is not None or lookup(low) is not None


def _spelled(said: str, agrees: Callable[[str], bool]) -> tuple[str, str]:
    """What stands around a value of several pieces or in words: ``forty-two``, ``x = 2 and x = 3``, ``$9\\pi$ cm``."""
    words = _WORDS.findall(_COMMANDS.sub(" ", said))
    if all(map(_of_values, words)) and (not words or agrees(said.strip())):
        return "", ""  # a formula or a value in words, and nothing said around it
    pieces = list(_PIECES.finditer(said))
    begun = 0
    for start in range(len(pieces) - 1, -1, -1):
        first = pieces[start].group()
        if _BEGINS.match(first) is None:
            word = _FIRST_WORD.match(first)
            if word is None or number_words(word[1].lower()) is None:
                continue
        begun += 1
        if begun > MAX_BEGINNINGS:
            break
        place = pieces[start].start()
        for piece in pieces[start : start + MAX_PIECES]:
            value = said[place : piece.end()].rstrip(".,;:!?")
            if agrees(value.strip("*_\"'“”")):
                return said[:place], said[place + len(value) :]
    return "", ""
