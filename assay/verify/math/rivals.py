"""Whether another word of the answer's kind is put beside it: ``Wednesday or Thursday``, ``Yes. Also no.``

Words are of a kind with the answer where they are its opposite, a day where it is a day, a month, a colour; or a name
or a value that stands where another answer would.
"""

from __future__ import annotations

import re

from assay.verify.math.forms import truth
from assay.verify.math.values import Truth

_KINDS = tuple(
    frozenset(words.split())
    for words in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lunes martes miércoles jueves viernes sábado domingo",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        "poniedziałek wtorek środa czwartek piątek sobota niedziela",
        "понедельник вторник среда четверг пятница суббота воскресенье",
        "الاثنين الثلاثاء الأربعاء الخميس الجمعة السبت الأحد",
        "सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार",
        "january february march april may june july august september october november december",
        "red orange yellow green blue indigo violet purple pink brown black white grey gray",
        "north south east west",
        "positive negative zero",
        "odd even",
        "left right",
        "heads tails",
        "convergent divergent converges diverges",
    )
)
_SCRIPT = re.compile(r"星期[一二三四五六日天]|周[一二三四五六日]|[月火水木金土日]曜日?|[월화수목금토일]요일")
_WORD = re.compile(r"[^\W\d_]+")
_OPPOSITE = re.compile(r"\b(?:yes|no|true|false)\b", re.IGNORECASE)
_BETWEEN = (
    r"[\s\"“”,;:/|&+∨→>()\[\]*_.!–—-]*(?:(?:and|or|vs|versus|xor|also|alternatively|as well as|but|then|else|now|not|"
    r"und|oder|ou|et|y|o|e|of|en|lub|i|или|и|doch|eller|albo|veya|और|या|أو)\b\.?\s*)*[\s,;:/|&+(–—-]*"
)
_LEADS = re.compile(
    r"^\W*(?:(?:so|thus|hence|therefore|and|but|also|however|it|this|that|is|are|the|a|an|answer|result|"
    r"conclusion|final|"
    r"correct|true|real|other|second|first|alternative|backup|plan|option|choice|other|possible|would|could|be|"
    r"either|i|accept|prefer|"
    r"if|you|not|[0-9]+(?:st|nd|rd|th)|[a-z]|version|concludes|my|in|as|well|was|also|says?|then|try|use)\b\W*)*",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(r"\b(?:so|thus|hence|therefore|it is|it['’]s)\s(?P<said>[^\W\d_]+)\W*$", re.IGNORECASE)
_ALONE = re.compile(
    r"\W*(?:so|thus|hence|therefore|ps|backup answer|second answer|other answer)\b\W*(?P<said>\w+(?: [0-9]+)?)\W*",
    re.IGNORECASE,
)
_SUMS_UP = re.compile(r"\W*(?:so|thus|hence|therefore|the answer|the final answer|final answer)\b", re.IGNORECASE)
_VALUE = re.compile(r"(?:[a-z]\s?=\s?)?-?[0-9][0-9.,/]*", re.IGNORECASE)


def other_word(word: str, reference: str, kind: Truth | None) -> bool:
    """Say whether ``word`` is of a kind with the reference, and another."""
    low, wanted = word.casefold(), set(_WORD.findall(reference.casefold()))
    if kind is not None:
        said = truth(word)
        return said is not None and said != kind
    return any(wanted & words and low in words and low not in wanted for words in _KINDS)


def rivals(
    question: str, reference: str, kind: Truth | None, sentence: str, earlier: list[str], later: list[str], mark: str
) -> str | None:
    """The word or value that stands beside the answer as another one, ``None`` without any."""
    front, _, behind = sentence.partition(mark)
    near = re.match(rf"{_BETWEEN}(?P<said>{_VALUE.pattern}|[^\W\d_]+)\s*(?P<end>.?)", behind, re.IGNORECASE)
    if near is not None and _rival(near["said"], reference, kind, question, near["end"], behind[: near.start("said")]):
        return near["said"]
    for piece in (behind, *later[:3]):
        ends = _CONCLUDES.search(piece)
        if ends is not None and other_word(ends["said"], reference, kind):
            return ends["said"]
    for piece in re.sub(r"\bP\.\s?S\.\s+", "PS ", "\n".join(later[:4])).split("\n"):
        alone = _ALONE.fullmatch(piece)
        if alone is None or set(alone["said"].casefold().split()) <= set(reference.casefold().split()):
            continue
        if kind is None or other_word(alone["said"], reference, kind):
            return alone["said"]
    words = list(_WORD.finditer(front))
    if words and re.fullmatch(rf"{_BETWEEN}\W*", front[words[-1].end() :], re.IGNORECASE) is not None:
        before = words[-1].group()
        joined = (
            words[-2].group()
            if before.casefold() in ("and", "or", "vs", "xor", "not", "than", "of") and len(words) > 1
            else before
        )
        told = re.search(r"\b(?:after|from|before|to|past|on)\W+\w+\W*$", front) is not None
        steps = front.count("→") + front.count("->") > 1
        if (
            not steps
            and not (told and joined.casefold() in question.casefold())
            and other_word(joined, reference, kind)
            and joined.casefold() not in ("no", "right")
        ):
            return joined
    if re.search(
        r"\b(?:rather than|instead of|one of|pick one|options?|there are two|possibilities)\b|\b(?:both|either)\W*$",
        front,
        re.I,
    ) and not re.search(r"\b(?:both|either|options?)\b", question, re.I):
        return front.strip()[-40:]
    for piece in (re.sub(r"^[^:]{1,24}:\s+", "", piece) for piece in later[:4]):
        rest = piece[_LEADS.match(piece).end() :] if _LEADS.match(piece) else piece  # type: ignore[union-attr]
        said = re.match(rf"(?P<said>{_VALUE.pattern}|[^\W\d_]+)(?P<rest>.{{0,60}})", rest, re.DOTALL | re.IGNORECASE)
        if said is not None and _stands(said["said"], said["rest"], reference, kind, question):
            return said["said"]
    for place, piece in enumerate(earlier[-2:], max(len(earlier) - 2, 0)):
        if kind is not None and ((place and earlier[place - 1].endswith("?")) or _SUMS_UP.match(front)):
            continue  # "Does 7 divide 97? No. So the answer is yes."
        bare = re.sub(r"^\W*(?:[-*•>]|[0-9]+[.)])\s*", "", piece).strip(" .!?…*_|")
        bare = bare.rpartition(":")[2].strip() if ":" in bare else bare
        if bare and len(bare.split()) <= 2 and other_word(bare.split()[-1], reference, kind):
            return bare
    clause = re.split(r"[;.]", front)
    for piece in clause:
        found = [w for w in _WORD.findall(piece) if other_word(w, reference, kind)]
        if (
            kind is None
            and found
            and " but " not in piece
            and re.search(r"\b(?:if|some|others?|first|on odd|book|heads)\b", piece, re.I)
            and not all(w.casefold() in question.casefold() for w in found)
        ):
            return found[0]
    if kind is None and (script := _SCRIPT.search(reference)) is not None:
        for text in (behind, *later[:3]):
            for match in _SCRIPT.finditer(text):
                if match.group() != script.group() and match.group() not in question:
                    return match.group()
    return None


def _rival(said: str, reference: str, kind: Truth | None, question: str, end: str, between: str) -> bool:
    if _VALUE.fullmatch(said):
        if len(said) == 4 and any(map(str.isdigit, reference)):
            return False  # a year
        if "_" in between:
            return False  # a base
        return kind is None and end in ("", ".", "}", ")", "%", "|") and said not in question.split()
    if kind is not None:
        return other_word(said, reference, kind) and (end not in " " or said.casefold() != "no")
    asked = said.casefold() in question.casefold()
    return other_word(said, reference, kind) and not ("(" in between and asked)


def _stands(said: str, rest: str, reference: str, kind: Truth | None, question: str) -> bool:
    """Say whether a later sentence puts ``said`` forward."""
    ends = (
        re.match(r"[\s.!?*_|\")]*$|\W*(?:is|are|would|also|works?|too|as well|instead)\b|\s*[.,;!]", rest, re.I)
        is not None
    )
    if _VALUE.fullmatch(said):
        return kind is None and re.match(r"[\s.!*_|]*$", rest) is not None and said not in question
    if said.casefold() == "no" and re.match(r"\s+\w", rest) and not re.match(r"\s+(?:is|also|would|works?)\b", rest):
        return False
    return ends and other_word(said, reference, kind)


__all__ = ["other_word", "rivals"]
