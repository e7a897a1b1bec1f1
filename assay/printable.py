"""Text that others wrote, made safe to show on a terminal."""

from __future__ import annotations

import unicodedata

KEPT = "\n\t"


def printable(text: str) -> str:
    """Return ``text`` with every character that a terminal would obey written as its escape, ``\\x1b``.

    Those are the control characters but for the end of a line and the tab, lone surrogates, and the marks that turn
    the direction of writing. Whoever wrote a response, a task or an error could otherwise clear the screen, rename the
    window or hide what stands there.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in KEPT or not _obeyed(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def _obeyed(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in MARKS


MARKS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Bidirectional classes of the characters that turn the direction of what follows."""
