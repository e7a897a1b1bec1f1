"""An answer said twice: ``3/4 (0.75)``, ``21 (twenty-one)``, ``√2/2 ≈ 0.707``, ``0.5, i.e. one half``."""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.math.context import Context

_SAME = (
    r"(?:that is|i\.\s?e\.|or equivalently|equivalently|or simply|which (?:is|equals|means)|that means|"
    r"in other words|also written(?: as)?|or approximately|or about|or|namely|viz\.|d\.h\.|c'est-à-dire|es decir|"
    r"ou|oder)"
)
_ASIDE = re.compile(
    rf"(?P<first>[^()]{{1,120}}(?:\([^()]{{1,80}}\)[^()]{{0,60}}?)?)\s+\(\s?(?:=|≈|\\approx|~|{_SAME},?|about|approximately|approx\.?|exactly|roughly)?\s?(?P<second>[^()]{{1,120}}(?:\([^()]{{1,60}}\))?)\)(?:\s[^\W\d_]{{2,20}})?[\s.]*",
    re.IGNORECASE,
)
_APPOSED = re.compile(
    rf"(?P<first>.{{1,120}}?)(?:,\s?|\s|;\s?|\s[–—-]\s){_SAME},?:?\s(?:about |approximately )?(?P<second>.{{1,120}})",
    re.IGNORECASE,
)


def restated(text: str, context: Context, agrees: Callable[[str, Context], bool]) -> bool:
    """Say whether ``text`` states one value twice, and both times what ``agrees`` takes for the reference.

    Of the two the second may be rounded to three digits.
    """
    if not 5 <= len(text) <= 300:
        return False
    bare = text.strip(" $*.")
    for pattern in (_ASIDE, _APPOSED):
        match = pattern.fullmatch(bare)
        if match is not None and match["second"].strip(" $"):
            first, second = match["first"].strip(" $"), match["second"].strip(" $")
            rough = context.but(approximate=True, exact=False, simplest=False)
            if (agrees(first, context) and agrees(second, rough)) or (agrees(first, rough) and agrees(second, context)):
                return True
    return False
