"""Texts that repeat themselves instead of saying something."""

from __future__ import annotations

import re
from collections import Counter

KINDS, SHARE, RUN, SENTENCE = 0.05, 0.6, 4, 10


def degenerate(text: str) -> bool:
    """Return whether a text is blank, has fewer than one different character in 20, more than 0.6 of its runs of four
    words stand in it before (of eight words or more), or a sentence of ten characters or more stands in it twice.

    Source: the gate of Omni-Persona (arXiv 2605.09996), its authors' code.
    """
    if not text.strip() or len(set(text)) / len(text) < KINDS or repeated(text) > SHARE:
        return True
    sentences = Counter(s for s in map(str.strip, re.split(r"[.!?]", text)) if len(s) >= SENTENCE)
    return any(count > 1 for count in sentences.values())


def repeated(text: str) -> float:
    """Return the share of runs of four words, in lower case, that stood in a text before; 0 below eight words."""
    words = re.findall(r"\w+", text.lower())
    if len(words) < 2 * RUN:
        return 0.0
    runs = [tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)]
    return 1 - len(set(runs)) / len(runs)
