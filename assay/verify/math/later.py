"""Another value that a sentence after the answer states: ``The answer is 42. Double-checking, it comes out as 41.``"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless

_ENDS = re.compile(r"(?<=[.!?。！？])[)\"*_]*\s+|\n+|(?<=[。！？])")
_VALUE = (
    r"\$?(?:\\boxed\{|\*\*|\$)*\s?(?P<value>[$€£¥]?-?(?:[0-9][0-9.,:/]*|"
    r"\\[dt]?frac\{[^{}]*\}\{[^{}]*\})[^\s.,;!?]{0,24}(?:\s[A-Za-z%°/]{1,12})?|"
    r"(?<!\\)[(\[][^()\[\]\n\\]{0,40}[0-9][^()\[\]\n\\]{0,40}[)\]]|"
    r"\\?\{[^{}\n]{0,60}[0-9][^{}\n]{0,60}\\?\})"
)
_LINK = (
    r"(?:(?:so|then|therefore|thus|hence|now|but|and|actually|no|finally|however|instead|next|rather|"
    r"in fact)\b,?\s*){0,3}"
)
_CLAIM = re.compile(
    rf"\W*{_LINK}(?:"
    rf"(?:(?:the )?(?:truth|(?:\w+ )?(?:answer|result|value|total))|it|that|this|we|i|my \w+|(?:let me|"
    rf"let's) \w+:? (?:i|it|we)|"
    rf"(?:re-?\w+|double-?\s?check\w*|check\w*|verif\w+|looking|adding|subtracting|dividing|multiplying|including|rounding|"
    rf"correcting|off)\b[^.\n]{{0,60}}?)(?:'s|'d|'m|'ll)?\b[^.\n0-9\\]{{0,40}}?)?"
    rf"\s*{_VALUE}(?:\s(?:is|would be|seems|looks)\s(?:right|better|correct|it|the \w+)|\sinstead)?[\s.!*$}})]*",
    re.IGNORECASE,
)
_EXPLAINS = Caseless(
    r"\s*%|\W*(?:\(|check\b|checks?:|verification:|note|notice|because|since|as\b|for (?:example|instance|comparison|"
    r"reference)|e\.g|"
    r"recall|remember|indeed|here|explanation|reason|proof|why|in (?:other|decimal|words|percent|fraction)|"
    r"equivalently|"
    r"that is\b,|i\.e|which|also|written|approximately|about|if|when|had|each|every|there\b|[0-9]+[.)]\s|[-•])",
)
_WORK = Caseless(
    r"(?:^|[.!?,;\n]|\band|\bwhich)\s*(?:(?:but|and|so|then|next|now|finally|first)\b,?\s*)*"
    r"(?:(?:we|i|you|let us|let's|it)\s(?:\w+\s){0,3}?)?(?:must |need to |have to |should |can |is |be |"
    r"will )*(?:then |now |next |still )*"
    r"(?:(?:add|subtract|divide[d]?|multipl(?:y|ied)|halved?|doubled?|squared?|negated?)(?:(?: it| this| that| by|"
    r" the| with)\b|\s?[.!]|\s?$| [0-9$]))|"
    r"\bbut (?:the (?:question|problem|task)|we (?:want|need|were asked)|it asks|they ask)\b|"
    r"\bi forgot\b|\bwe forgot\b|\bi (?:missed|dropped|left out)\b|"
    r"(?:^|\n)\W*step [0-9]+\s?[:.)]|\b(?:is|was|seems|looks|far|that's|it's) (?:far |much |way |"
    r"a bit )?too (?:small|large|big|high|low|much|many|few)\b|"
    r"\b(?:is|was|only) (?:an? )?(?:intermediate|partial|tentative|provisional)\b",
)
"""What goes on with the work, or calls the value no result."""
_CUT = Caseless(
    r"(?:^|[\s,.;])(?:but|if|unless|because|since|although|though|so|and|or|we|then|must be)\s*$|"
    r"(?:^|[.!?]\s|\n)\W*(?:but|however|finally|now|next|then|wait|since|still|yet)\b[^.!?\n]{0,80}[a-z,]\s*$",
    frequent=True,
)
"""An end in the middle of a sentence that turns."""
_BESIDE = re.compile(rf"[\s$*}}\])]*(?:(?:and|or|&|/)\s+)?{_VALUE}(?=[\s.,;!?$*]|$)")
MAX_SENTENCES = 8


def goes_on_working(text: str, said: str, after: str) -> bool:
    """Say whether the work goes on after the answer, or the text breaks off in a turn against it.

    Args:
        text: that states the answer.
        said: what stands behind the answer in it.
        after: what follows in the response.
    """
    if _CUT.search(f"{text}{after}"[-200:]):
        return True
    rest = f"{said}{after[:600]}"
    found = _WORK.search(rest) if any(map(str.isalpha, rest)) else None
    return found is not None and not _EXPLAINS.match(_ENDS.split(rest[: found.end()])[-1])


def states_another(text: str, after: str, question: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a sentence after the answer states another value as what comes out.

    Args:
        text: the answer.
        after: what follows it.
        question: its values are no other answers.
        agrees: whether a text is the reference.
    """
    if not any(map(str.isdigit, after)):
        return False
    beside = _BESIDE.match(after.partition("\n")[0])
    if (
        beside is not None
        and any(map(str.isdigit, text))
        and not agrees(beside["value"])
        and not agrees(beside["value"].split()[0].strip("$€£¥.,"))
    ):
        return True
    for sentence in _ENDS.split(after[:1000])[:MAX_SENTENCES]:
        if not sentence.strip() or _EXPLAINS.match(sentence) or not any(map(str.isalpha, sentence)):
            continue
        if (claim := _CLAIM.fullmatch(sentence.strip())) is None:
            continue
        value = claim["value"].strip(" .,;*$}")
        number = value.split()[0].strip("$€£¥")
        if not agrees(value) and not agrees(number) and number not in question:
            return True
    return False
