"""Functions given in pieces: a table of expressions with their conditions, in any order."""

from __future__ import annotations

import re
from collections.abc import Callable

_BEGIN, _END = r"\begin{cases}", r"\end{cases}"
_ROW = re.compile(r"\\\\(?:\[[^\]]*\])?")
_TEXT = re.compile(r"\\(?:text|textrm|textit|mbox|mathrm|operatorname)\s*\{([^{}]*)\}")
_SPACE = re.compile(r"\\(?:[,;:! ]|quad|qquad)|~")
_LEAD = re.compile(
    r"^\s*,?\s*(?:if|for|when|where|falls|für|wenn|si|se|pour|quand|para|per|als|если|при|当|のとき)?\s+", re.IGNORECASE
)
_REST = re.compile(
    r"^(?:otherwise|else|sonst|sinon|altrimenti|en otro caso|caso contrário|иначе|其他|其它|それ以外)$", re.IGNORECASE
)
MOST = 12
"""Pieces that are compared."""
LONGEST = 2000
"""Characters of a table that is looked at."""


def pieces(text: str) -> list[tuple[str, str]] | None:
    """Return expression and condition of each piece of a ``cases`` table, ``None`` if the text holds no such table."""
    # Not by one pattern, which would look for the end anew from every beginning.
    _before, begun, rest = text.partition(_BEGIN)
    table, ended, _after = rest.partition(_END)
    if not begun or not ended or len(table) > LONGEST:
        return None
    rows = []
    for row in _ROW.split(table):
        if not row.strip():
            continue
        cells = [_SPACE.sub(" ", _TEXT.sub(r" \1 ", cell)).strip(" ,.;$\n\t") for cell in row.split("&")]
        if len(cells) != 2 or not all(cells):
            return None
        rows.append((cells[0], _LEAD.sub("", f" {cells[1]}").strip()))
    return rows if 0 < len(rows) <= MOST else None


def same_pieces(
    reference: list[tuple[str, str]], answer: list[tuple[str, str]], same: Callable[[str, str], bool]
) -> bool:
    """Whether every piece of the reference is in the answer, and no other; ``same`` compares two texts.

    A condition such as "otherwise" is the same as another of its kind only.
    """
    left = list(answer)
    for expression, condition in reference:
        for i, (other, when) in enumerate(left):
            rest = bool(_REST.match(condition)), bool(_REST.match(when))
            if (all(rest) or (not any(rest) and same(condition, when))) and same(expression, other):
                del left[i]
                break
        else:
            return False
    return not left
