r"""Marked answers beside which nothing is said: ``The answer is $\sqrt{6}$.``, ``\boxed{(2, 3)}``."""

from __future__ import annotations

import re

from assay.verify.caseless import Caseless
from assay.verify.math.final import Final
from assay.verify.math.latex import FUNCTIONS

_LEAD = Caseless(
    r"\W*(?:(?:so|thus|hence|therefore|finally|then|consequently|in conclusion|altogether)\b,?\s*)*"
    r"(?:(?:the|our|my|this|its)\b\s*)?(?:(?:final|correct|required|desired)\b\s*)*"
    r"(?:(?:answer|result|solution|value|ans)\b\s*)?(?:(?:is|are|equals|=|:)\s*)?(?:(?:thus|therefore|then|hence)\b\s*)?"
    r"[\s:$*_#>(\[\\]*",
    frequent=True,
)
_AFTER = re.compile(r"[\s$.*)\]\\}!`_\"'”>;,|]*")
_WORD = re.compile(r"[^\W\d_]{2,}")
_COMMAND = re.compile(
    r"\\(?:[dt]?frac|sqrt|pi|left|right|cdot|times|infty|pm|cup|leq?|geq?|ln|log|sin|cos|tan|circ|[,;!: ])"
)
_LOUD = ("?", "~", "≠", "!=", "...", "…", "\\", "≈", "✗", "❌", "%")
"""What may say something without a word: questions, crosses, denials, commands that are not known to be harmless."""


def quiet(final: Final) -> bool:
    """Say whether a marked answer is a formula alone, announced in a few plain words, at the end of the response."""
    if not final.marker or _AFTER.fullmatch(final.after) is None or _LEAD.fullmatch(final.lead) is None:
        return False
    text = _COMMAND.sub(" ", final.text)
    if any(map(text.__contains__, _LOUD)):
        return False
    return all(match.group() in FUNCTIONS for match in _WORD.finditer(text))
