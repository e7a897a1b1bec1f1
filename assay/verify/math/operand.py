r"""Whether a marked value is only a part of a formula: ``\boxed{42} + 1``, ``2\boxed{42}``, ``x > \boxed{42}``."""

from __future__ import annotations

import re

_BEFORE = re.compile(
    r"(?:[+*/^±×÷√_|]|(?<!answer)(?<!\w)>|(?<=\s)[<>≤≥≠]|\\(?:cdot|times|div|pm|le|leq|leqslant|ge|geq|geqslant|lt|gt|ne|neq|"
    r"not|sqrt|[dt]?frac|sin|cos|tan|log|ln)\b|\s!=|<=|>=)[\s${]*$|"
    r"(?:\\frac\{[^{}]*\}|(?:^|[^A-Za-z\\0-9])[0-9)\]}]*[0-9]|(?<![A-Za-z\\])[A-Za-z])\{?$"
)
_NEGATIVE = re.compile(r"(?:^|[=$({\[:]|\bis|\bare)\s*-\s*\$?$")
_AFTER = re.compile(
    r"[\s$]*(?:[+*/×÷±<>≤≥≠]|\^(?!\s?\{?\s?\\?(?:circ|prime|['°]))|!(?=[\s$]*[-+*/=])|-\s?(?:[0-9\\(]|[A-Za-z](?![A-Za-z]))|\)\s?\^|"
    r"\\(?:cdot|times|div|pm|le|leq|leqslant|ge|geq|geqslant|lt|gt|ne|neq)\b)"
)
_PLAIN = (",", ":", "=", "(")
_COMPARES = ("!=", "<=", ">=")
"""What :data:`_BEFORE` may find before a dollar sign and one of the plain characters."""
_CLOSED = re.compile(r"[\s$]*\}\s?\{")
_OPENED = re.compile(r"<answer>[\s$]*$")
_EMPHASIS = re.compile(r"\*{1,3}|__")


def operand(before: str, after: str) -> bool:
    """Say whether what stands right before and after a box or tag makes it a part of a larger formula or a comparison.

    Args:
        before: the text that ends where the marker begins.
        after: the text that begins where it ends.
    """
    head = _OPENED.sub("", _EMPHASIS.sub("", before[-60:].rpartition("\n")[2])).rstrip()
    tail = _EMPHASIS.sub("", after[:40].partition("\n")[0]).partition("</answer>")[0]
    if _CLOSED.match(tail) and "frac" in head[-12:]:
        return True
    if _AFTER.match(tail):
        return True
    if "-" in head and _NEGATIVE.search(head) is not None:
        return True
    if head.endswith("$") and (end := head.rstrip("$ ")[-2:])[-1:] in _PLAIN and end not in _COMPARES:
        return False
    return _BEFORE.search(head) is not None
