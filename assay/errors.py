"""Errors meant for people: one line saying what was wrong, where, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AssayError(Exception):
    """Base of every error assay raises on purpose; the command line prints it without a stack trace."""

    exit_code = 1


class UsageError(AssayError):
    """The request itself is wrong (recipe, argument, data); nothing expensive has started. Exit code 2."""

    exit_code = 2


class RunError(AssayError):
    """Something failed while running; what was already computed is kept. Exit code 1."""

    exit_code = 1


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest known word, else the list of what is known."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""
