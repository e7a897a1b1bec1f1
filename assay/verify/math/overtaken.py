"""A right value from which the same statement goes on to another: ``225 / 15 = 15, but one more is needed, so 16``."""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.governed import around

_CLAUSES = re.compile(r"[,;:]\s|\s[—–]\s|[.!]\s+|\n+")
_CONCLUDES = re.compile(
    r"^\W*(?:(?:and|but) )?(?:so|thus|hence|therefore|then|making|giving|leaving|which (?:gives|makes|leaves)|"
    r"(?:we|i|you|they) (?:get|have|need|obtain|find))\b[^0-9=]{0,40}$|\b(?:gives|makes it|leaves|brings it to|"
    r"takes it to|raises it to|brings the \w+ to|becomes)\b[^0-9=]{0,24}$",
    re.IGNORECASE,
)
_BUT = re.compile(r"^\W*(?:but|yet|however|though|whereas|while)\b", re.IGNORECASE)
_THAT_IS = re.compile(
    r"^\W*(?:(?:well|then|now|so|actually)\b\W*)*(?:(?:that|it|this)(?:'s| is| was| equals| gives)|(?:is|equals|gives|"
    r"makes))"
    r"\W*$",
    re.IGNORECASE,
)
"""What concludes after a "but": ``but sin 90°, well, that's 0``."""
_REASON = re.compile(
    r"^\W*(?:since|because|as|for|where|check\w*|indeed|note|if|when|with|after|substitut\w*|plug\w*|verif\w*|e\.g|"
    r"equivalently|that is|i\.e|in other words|rounded|approximately|about)\b",
    re.IGNORECASE,
)
_CONCLUSION = Caseless(
    r"\bso\b|\bthus\b|\bhence\b|\btherefore\b|\bthen\b|\bmak|\bgiv|\bleav|\bget\b|\bhave\b|\bneed\b|\bobtain\b|"
    r"\bfind\b|\bbring|\btakes it\b|\braises it\b|\bbecomes\b|\bbut\b|\byet\b|\bhowever\b|\bthough\b|\bwhereas\b|"
    r"\bwhile\b"
)
"""A first look: a word of every conclusion."""
_VALUE = re.compile(r"(?<![\w.])[-−]?[0-9][0-9.,/]*")


def overtaken(said: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a later clause of an unmarked statement concludes with another value than the right one.

    Args:
        said: the text that states the answer, and the rest of its line.
        reference: several answers in one are not asked about.
        agrees: whether a text is the reference.
    """
    if "," in reference or not any(map(str.isdigit, reference)):
        return False
    if _CLAUSES.search(said) is None or _CONCLUSION.search(said) is None:
        return False
    before, behind = around(said, agrees, reference)
    if not before and not behind:
        return False
    checked = turned = False
    for clause in _CLAUSES.split(behind):
        checked = checked or _REASON.match(clause) is not None
        turned = turned or _BUT.match(clause) is not None
        values = list(_VALUE.finditer(clause))
        if checked or not values or "=" in clause or "≈" in clause:
            continue
        ahead = clause[: values[0].start()]
        if len(values) == 1 and (_CONCLUDES.search(ahead) or (turned and _THAT_IS.match(ahead))):
            value = clause[values[0].start() :].strip(" .!*$")
            if not agrees(value) and not agrees(values[0].group().rstrip(".,")):
                return True
    return False
