"""Whether a response says that it cannot tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Where = Literal["last", "whole"]
PHRASES = (
    "cannot determine",
    "cannot be determined",
    "not enough information",
    "insufficient information",
    "cannot answer",
    "unable to determine",
    "don't know from",
    "do not know from",
    "the provided context does not",
    "not provided in the context",
    "no information in the context",
    "context does not contain",
)
"""What says so."""
SHORTEST = 8
"""Characters of a sentence that is passed over."""
_END = re.compile(r"(?<=[.!?])\s+|\n{2,}")


def abstains(text: str, where: Where = "last", phrases: Sequence[str] = PHRASES) -> bool:
    """Return whether one of the phrases, in whatever case and over whatever blanks, stands in a text.

    Args:
        text: a response.
        where: in its ``last`` sentence of more than eight characters, as reasons say of each piece that it does not
            tell; or in the ``whole`` of it.
        phrases: in lower case.

    Source: Omni-Persona (arXiv 2605.09996), its authors' code: ``last`` in its reward, ``whole`` in its scores.
    """
    sentences = [s for s in map(str.strip, _END.split(text)) if len(s) > SHORTEST]
    read = text if where == "whole" else sentences[-1] if sentences else ""
    said = " ".join(read.lower().split())
    return any(phrase in said for phrase in phrases)
