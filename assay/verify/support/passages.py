"""A document as passages that a model can read whole."""

from __future__ import annotations

from assay.errors import UsageError

WORDS = 100
"""Words of a passage."""


def passages_of(text: str, title: str = "", words: int = WORDS) -> list[str]:
    """Return a text as runs of at most ``words`` words that do not overlap, each with the title before it.

    A text without words is one passage: its title.

    Raises:
        UsageError: ``words`` below 1.
    """
    if words < 1:
        raise UsageError(f"a passage has one word or more, not {words}")
    found = text.split()
    head = f"{' '.join(title.split())}. " if title.strip() else ""
    return [head + " ".join(found[at : at + words]) for at in range(0, max(1, len(found)), words)]
