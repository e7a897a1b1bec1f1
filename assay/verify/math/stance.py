"""Whether a response stands by its final answer, which equals the reference: what it says around and after it.

A withdrawal in any of some twenty languages, a condition about the writer, a second answer or a split of probabilities
each undo a right answer, unless the response then states the same answer again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless, Worded
from assay.verify.math.against import INSIDE, beside, crossed, goes_on, led_against, replaced, spoken_against
from assay.verify.math.foreign_doubt import doubted, retracted, told
from assay.verify.math.sentence import without_contrast
from assay.verify.math.unmarked import Final
from assay.verify.math.withdrawal import HARD, WITHDRAWN

_NO_SOLUTION = re.compile(r"\bno (?:real )?solution|unsolvable|无解|no tiene solución", re.IGNORECASE)
_OFFERED = Caseless(
    r"^[\s.,;:!?)$*\]-]{0,8}(?:\(?\s?(?:or|or maybe|maybe|or possibly|or perhaps|possibly|perhaps|"
    r"or else|alternatively|unless|otherwise|else|if i|assuming i|provided (?:that )?i)\b|或|ou\b|oder\b|или\b|o\b|"
    r"oppure\b|или\b|または|또는|أو\b)",
)
_SELF = (
    r"(?:if|assuming|provided|supposing|in case|as long as|so long as|given)(?: that)? (?:(?:i|my|i'm|i've)\b|"
    r"(?:the (?:problem|question|statement|text|data|calculation|reading|answer)|this|it|that|everything|"
    r"nothing) (?:is|was|are|holds?|were) "
    r"(?:all )?(?:correct\w*|right|true|wrong|copied|valid|meant|ok(?:ay)?|accurate))"
)
_CONDITION = Caseless(
    rf"\b(?:{_SELF}|otherwise|or else|if not|if so|unless|depend(?:s|ing) on|it depends|on (?:the |one |"
    rf"a )?(?:\w+ )?condition)\b|[,;.] else\b|"
    rf"\b(?:sonst|andernfalls|"
    r"sinon|de lo contrario|si no|altrimenti|caso contrário|es sei denn|à moins|a menos|иначе|если)\b|"
    r"否则|否則|如果|そうでなければ|もし|아니면|만약|وإلا|अन्यथा",
)
_WRITER = Caseless(rf"\b(?:{_SELF}|unless (?:i|i'm|i've|i'd|my|we)\b)")
_SHOULD = Caseless(
    r"should(?<=\bshould) (?:this|that|it|i|my \w+|the (?:above|first|previous) \w+) "
    r"(?:be|prove|turn out|happen|have)\b",
    frequent=True,
)
_SHARE = re.compile(
    r"[0-9]{1,3}(?:\.[0-9]+)?\s?\\?%|\b(?:[01]?\.[0-9]+|[0-9]/[0-9]+)(?= (?:chance|probab|confiden))|"
    r"(?<=probability )(?:of )?(?:[01]?\.[0-9]+|[0-9]/[0-9]+)"
)
_OF_SHARES = ("%", " chance", " probab", " confiden", "probability ")
"""One of these is in each text with a share."""
_BELIEF = Caseless(
    r"\b(?:sure|certain\w*|confiden\w+|likel\w+|chance|probab\w+|odds|belie\w+|bet)\b|%[^.]{0,12}\b(?:it is|it's|"
    r"that)\b",
)
ATTRIBUTED = Worded(
    r"\b(?:(?i:he|she|they|someone|somebody|people|some|others|students?|friends?|classmates?|teachers?|"
    r"colleagues?|neighbou?rs?|"
    r"brother|sister|rumou?r|everybody|everyone|opponent)|[A-Z][a-z]{2,12})(?: (?:here|once|also|might|would|may|"
    r"will))? "
    r"(?:says?|said|wrote|claim(?:s|ed)?|thinks?|thought|believes?|believed|argues?|argued|suggest(?:s|ed)?|"
    r"guess(?:es|ed)?|"
    r"insists?|insisted|has it|pretends?|swears?|told (?:me|us))(?: that)?[:,]?\s*[\"'“]?(?:[Tt]he|it is|it's|"
    r"[Tt]he (?:\w+ )?answer (?:is|was))?\s*$"
)
"""What stands before an answer that somebody else gives."""
_REJECTED = Caseless(
    r"\b(?:rul(?:e[sd]?|ing) out|exclud(?:e[sd]?|ing)|reject(?:s|ed|ing)?|discard(?:s|ed|ing)?|eliminat(?:e[sd]?|ing)|"
    r"dismiss(?:es|ed|ing)?|crosse?d?s? out|certainly not|definitely not|anything but|(?<!none )other than|"
    r"except(?: for)?)"
    r"(?: (?:the )?(?:value|answer|number|result|option|possibility|idea)(?: of| that)?)?[\s:$*\\(\[\"'“]*$",
)
"""What stands before an answer that is set aside."""
_DISOWNED = re.compile(
    r"[\s.,;)$*\]}\\-]*\b(?:which|but (?:this|that|it)) (?:(?:is|was|seems|looks|must be|has to be)(?: \w+)?"
    r" (?:an? )?(?:wrong|incorrect|false|mistake[n]?|error|impossible|not (?:right|correct|true|it))|"
    r"(?:can(?:not|'t| not)|could(?: not|n't)) (?:possibly )?be (?:right|correct|true|it))\b",
    re.IGNORECASE,
)
"""What follows an answer that the writer does not hold."""
_OWN = re.compile(r"^(?:This|That|It|Which|One|We|Theorem|Lemma|Rule|Formula|Question|Problem|Hint|Table)\b")
_HYPOTHETICAL = Caseless(
    r"would(?<=\bwould) (?:have been|be|only be)\b.*\b(?:if|had|were)\b|had(?<=\bhad) (?:i|the|it|we)\b", frequent=True
)
_NOT_AT_ALL = Caseless(
    r"[\s.,;!?…$*)-]*(?:not|which (?:is|was|seems) (?:wrong|incorrect|false|not))\b(?:\W*$|(?<=wrong)|"
    r"(?<=incorrect)|(?<=false))",
)
_DENIED_VALUE = re.compile(
    r"(?:\b(?:cannot be|can't be|is not|isn't|must not be|not equal to|is different from)\s|≠|\\neq?(?![a-z])|!=)"
    r"\s*\$?(-?[0-9][0-9.,/]*)(?![^\W_])"
)
_EITHER = re.compile(
    r"\$([^$]{1,100})\$,?\s(?:or|of|o|u|ou|oder|eller|lub|albo|ili|veya|atau|hoặc|sau|tai|vagy|или|або|"
    r"ή)\s\$([^$]{1,100})\$",
    re.IGNORECASE,
)
_EITHER_PRICE = re.compile(
    r"([$€£¥₹]\s?[0-9][0-9.,]*),?\s(?:or|of|o|u|ou|oder|eller|lub|albo|nebo|alebo|ili|veya|atau|hoặc|sau|tai|vagy|или|"
    r"або|чи|ή|או|أو|या|或|または|또는)\s([$€£¥₹]\s?[0-9][0-9.,]*)"
)
_NARROWED = Worded(
    r"\b(?:keep|retain|take|choose|accept|leav(?:es|ing)|left with|gives) only\s+"
    r"\$?((?:[A-Za-z]\s?=\s?)?-?[0-9][0-9./]*)\$?|"
    r"\bonly\s+\$?((?:[A-Za-z]\s?=\s?)?-?[0-9][0-9./]*)\$?\s"
    r"(?:is (?:valid|possible|admissible|acceptable|allowed|left|a solution)|remains|works|survives|counts)\b",
    re.IGNORECASE,
)
"""What leaves one of several answers."""
_RESTATED = Worded(
    r"\b(?:that is|i\.e\.|in other words|or rather|i mean),?\s+\$?(-?[0-9][0-9.,/]*)\$?\W*$", re.IGNORECASE
)
_WORD = re.compile(r"(?<!\\)(?<![^\W\d_])[^\W\d_]{2}")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\s)*$\"']|\n|[。！？]")
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_NUMBER = re.compile(r"-?[0-9][0-9,]*(?:\.[0-9]+)?(?:/[0-9]+)?")
_NEGATION = re.compile(
    r"\b(?:not|never|wrong|incorrect|mistak\w+|error|no longer|neither|nor|unsure|not sure|disregard|ignore|"
    r"withdraw|retract|"
    r"rejects?|false|impossible|guess\w*|fails?|or|if|unless|cannot|could|might|may|maybe|perhaps|nicht|pas|"
    r"falsch|faux)\b|n't\b|\?|不|错|或",
    re.IGNORECASE,
)
AGREEMENT = Caseless(r"\b(?:i|we) (?:fully |do )?(?:agree|concur)|\b(?:is|are) (?:indeed |quite )?(?:right|correct)\b")
_SLOT = Worded(r"\bfinal (?:answer|result)\s?(?:is\s?:?|:)\W{0,4}([^\s.][^.\n]{0,60})", re.IGNORECASE)
_POINTING = re.compile(
    r"\b(?:above|box\w*|correct|right|this|that|shown|given|as|therefore|thus|verified|same|confirmed|consistent|"
    r"simplified|"
    r"already|reasonable|exact|in)\b",
    re.IGNORECASE,
)


def uncommitted(final: Final, reference: str, agrees: Callable[[str], bool]) -> str | None:
    """Say why the response does not stand by a final answer that is right, ``None`` if it does.

    ``agrees`` tells whether a text is the reference.
    """
    after = final.after
    line = _SENTENCE_END.split(after, maxsplit=1)[0]
    said = f"{final.text} {line}" if final.framed else final.text
    if not final.lead and not _WORD.search(said) and not any(map(str.isalpha, after)) and "%" not in after:
        return "the answer is crossed out" if crossed(after) or INSIDE.search(said) else None
    if led_against(final.lead) and not AGREEMENT.search(after):
        return "the answer is denied, or somebody else's"
    if beside(said, reference, agrees):
        return "the answer is denied or left open"
    if doubted(final.lead, without_contrast(said), reference) or told(final.lead, said, reference):
        return "the answer is doubted, denied or somebody else's"
    if crossed(after) or retracted(after) or spoken_against(after, agrees):
        return "the answer is taken back"
    if replaced(said, agrees) or replaced(after, agrees) or goes_on(after, agrees):
        return "it goes on to another answer"
    if _OFFERED.match(after) is not None and not _repeated(line, agrees):
        return "another answer is offered beside it"
    for pattern, text in ((_CONDITION, said), (_WRITER, final.lead)):
        condition = pattern.search(text)
        if condition is not None and condition.group().casefold() not in reference.casefold():
            return "the answer depends on a condition"
    around = f"{final.lead} {said} {after[:300]}"
    if _SHOULD.search(around):
        return "the answer depends on a condition"
    if any(map(around.__contains__, _OF_SHARES)):
        shares = {"".join(share.group().split()).replace("\\", "") for share in _SHARE.finditer(around)}
        if len(shares) > 1 and _BELIEF.search(around) and not any(map(agrees, shares)):
            return "several answers share the probability"
    if _REJECTED.search(final.lead) or _DISOWNED.match(after) or _last_set_aside(final.text, agrees):
        return "the answer is set aside"
    other = ATTRIBUTED.search(final.lead) if final.marker else None
    if (
        other is not None
        and not _OWN.search(other.group())
        and (not AGREEMENT.search(after) or HARD.search(after) is not None)
    ):
        return "the answer is somebody else's"
    slot = _SLOT.search(after)
    if (
        slot is not None
        and len(slot[1].split()) < 5
        and not _POINTING.search(slot[1])
        and not agrees(slot[1].strip(" *$"))
    ):
        return "the final answer names something else"
    if _HYPOTHETICAL.search(f"{final.lead} {line}"[:300]) or _NOT_AT_ALL.match(after):
        return "the answer is taken back"
    denied = any(agrees(match[1].rstrip(".,")) for match in _DENIED_VALUE.finditer(after))
    if denied and not _DENIED_VALUE.search(reference):
        return "the answer is denied"
    narrowed = _NARROWED.search(f"{said} {after[:300]}")
    if narrowed is not None and not agrees(next(filter(None, narrowed.groups())).rstrip(".,")):
        return "it goes on to another answer"
    for one, other in (*_EITHER.findall(said), *_EITHER_PRICE.findall(said)):
        if not (agrees(one) and agrees(other)) and not agrees(said):
            return "another answer is offered beside it"
    restated = _RESTATED.search(said)
    if restated is not None and not agrees(restated[1].rstrip(".,")):
        return "it goes on to another answer"
    return _withdrawn(after, agrees) or _withdrawn_inside(said, reference, agrees)


def _last_set_aside(text: str, agrees: Callable[[str], bool]) -> bool:
    """``We can rule out 70.`` or ``Bob got 70, which is a mistake.``, the last number being the reference."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers or not (_REJECTED.search(text[: numbers[-1].start()]) or _DISOWNED.match(text, numbers[-1].end())):
        return False
    return agrees(numbers[-1].group())


def _repeated(line: str, agrees: Callable[[str], bool]) -> bool:
    """``5/4, or 1.25`` says the same twice."""
    numbers = _NUMBER.findall(line)
    return bool(numbers) and all(map(agrees, numbers)) and not _CONDITION.search(line)


def _withdrawn(text: str, agrees: Callable[[str], bool]) -> str | None:
    if not any(map(str.isalpha, text)):
        return None
    last, hard = None, False
    for match in WITHDRAWN.finditer(text):
        piece = match.group()
        if _NO_SOLUTION.search(text, match.start(), match.end() + 12) and agrees("no solution"):
            continue
        if agrees(piece.strip(" .,!;:–—-\n")):
            continue  # "No, because": the answer itself
        last, hard = match, hard or HARD.match(text, match.start()) is not None
    if last is None:
        return None
    # What follows the last withdrawal may state the same answer again, in a sentence without any doubt.
    for sentence in reversed(_SENTENCES.split(text[last.start() :])):
        numbers = _NUMBER.findall(sentence)
        if not numbers:
            continue
        if not agrees(numbers[-1]):
            return "it goes on to another answer"
        return "the answer is taken back" if hard and _NEGATION.search(sentence) else None
    return "the answer is taken back" if hard else None


def _withdrawn_inside(said: str, reference: str, agrees: Callable[[str], bool]) -> str | None:
    """``<answer>5. No, this is wrong.</answer>``"""
    match = HARD.search(said) if _WORD.search(said) else None
    if match is None or match.start() < 1 or match.group().casefold() in reference.casefold():
        return None
    if agrees("no solution") or agrees(said[match.start() :]):
        return None
    return _withdrawn(said[match.start() :], agrees)
