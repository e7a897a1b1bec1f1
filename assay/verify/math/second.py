"""A second announcement after an answer: ``The answer is Rome. The answer is Milan.``, ``Result in words: twelve``."""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.governed import around
from assay.verify.math.read import read
from assay.verify.math.spoken import in_digits
from assay.verify.math.unmarked import whole
from assay.verify.math.values import Text
from assay.verify.math.words import number_words

_AGAIN = re.compile(
    r"(?:^|[.!?;,\n]|\band\b|\bor\b)[\s*_#$]*(?:(?:so|thus|hence|also|and|or),? )?(?:the |my |our |another )?"
    r"(?:final |other |second |correct |right )?(?:answer|result|solution)s?(?:(?: also| too| in (?:words|digits|full|"
    r"other words))?"
    r"[\s*_]{0,3}(?:\b(?:is|are|being)\b|:|=)| also)[\s*_:]*(?:also )?(?P<value>[^.;\n!?]{1,60})",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"[0-9%$})\]]\s?(?:\(|[,.;]?\s(?:i\.e\.|that is|in words|in other words|namely|spelled out)[,:]?\s)"
    r"(?P<words>[A-Za-z][A-Za-z -]{2,50}?)(?:[).,;!\n]|$)"
)
_ANNOUNCES = Caseless(r"answer|result|solution", frequent=True)
_ANOTHER_TIME = re.compile(
    r"\b(?:wrong|incorrect|false|first|earlier|previous\w*|initial\w*|common|typical|naive|instead of|would|if|"
    r"check\w*|"
    r"verif\w*|example|similar|other (?:problem|question))\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Z][\w'’-]+(?: (?:[A-Z][\w'’-]+|of|the|da|de|van|von)){0,3}")


def announced_again(text: str, after: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether what follows a right answer announces another one: a name, a number in words, a tuple.

    Args:
        text: the answer.
        after: what follows it in the response.
        reference: where it is a name, another name is another answer.
        agrees: whether a text is the reference.
    """
    for match in _IN_WORDS.finditer(f"{text}{after[:120]}"):
        number = number_words(match["words"].casefold())
        if number is not None and match["words"].count(" ") < 8 and not agrees(in_digits(match["words"])):
            return True
    if _ANNOUNCES.search(text) is None and _ANNOUNCES.search(after[:600]) is None:
        return False
    rest = f"{around(text, agrees, reference)[1]}\n{after[:600]}"
    kind = read(reference)[:1]
    for match in _AGAIN.finditer(rest):
        value = match["value"].strip(" *_$\"'“”")
        if not value or _ANOTHER_TIME.search(rest[max(match.start() - 40, 0) : match.end()]):
            continue
        if agrees(value) or agrees(digits := in_digits(value)) or agrees(value.partition(",")[0].strip()):
            continue
        if kind and isinstance(kind[0], Text):
            if reference[:1].isupper() and _NAME.fullmatch(value) and value.casefold() not in reference.casefold():
                return True
        elif whole(digits) and any(map(str.isdigit, digits)):
            return True
    return False


__all__ = ["announced_again"]
