"""An answer said twice: ``3/4 (0.75)``, ``21 (twenty-one)``, ``\\sqrt{2}/2 (≈ 0.707)``."""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.math.question.context import Context

_TWICE = re.compile(
    r"(?P<first>[^()]{1,120}(?:\([^()]{1,80}\)[^()]{0,60}?)?)\s+\((?:=|≈|\\approx|~|or|i\.e\.|about|approx\.?)?\s?"
    r"(?P<second>[^()]{1,120})\)[\s.]*"
)


def restated(text: str, context: Context, agrees: Callable[[str, Context], bool]) -> bool:
    """Say whether ``text`` states one value twice, both times the reference; one of the two may be rounded."""
    match = _TWICE.fullmatch(text.strip(" $*.")) if len(text) <= 300 else None
    if match is None:
        return False
    first, second = match["first"].strip(" $"), match["second"].strip(" $")
    rough = context.but(approximate=True, exact=False, simplest=False)
    return (agrees(first, context) and agrees(second, rough)) or (agrees(first, rough) and agrees(second, context))
