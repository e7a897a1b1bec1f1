"""Numbers in order, written as a chain: ``1/3 < 3/8 < 0.5`` and ``5 > 3 > 1`` for a list in the order asked for."""

from __future__ import annotations

import re

from assay.verify.math.context import Context

_ASCENDING = re.compile(
    r"\b(?:increasing|ascending|(?:smallest|least|lowest) (?:to|first)|from (?:smallest|least|lowest))", re.IGNORECASE
)
_DESCENDING = re.compile(
    r"\b(?:decreasing|descending|(?:largest|greatest|biggest|highest) (?:to|first)|from (?:largest|greatest|highest))",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[<>→⇒]|\\(?:to|rightarrow|[lg]t)(?![a-z])")
_ARROWS = re.compile(r"\s*(?:\\to(?![a-z])|\\rightarrow|→|->|⇒)\s*")
_LESS, _MORE = (re.compile(rf"\s*(?:{sign})\s*") for sign in (r"<|\\lt(?![a-z])", r">|\\gt(?![a-z])"))
_LINE = re.compile(r"^\s*[0-9]{1,2}[.)]\s+", re.MULTILINE)


def unchained(answer: str, context: Context) -> str | None:
    """Return a chain in the order that the question asks for as a list with commas, ``None`` if it is none."""
    if len(answer) > 400 or _SIGN.search(answer) is None or "," in answer.replace("{,}", "") or not context.ordered:
        return None
    up, down = _ASCENDING.search(context.question), _DESCENDING.search(context.question)
    signs = [_ARROWS, *([_LESS] if up and not down else []), *([_MORE] if down and not up else [])]
    text = answer.strip(" $.\n")
    for sign in signs:
        items = sign.split(text)
        if len(items) > 1 and all(item.strip() and not re.search(r"[<>]|\\[lg]t\b", item) for item in items):
            return ", ".join(items)
    return None
