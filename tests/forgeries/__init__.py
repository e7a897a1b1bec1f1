"""Tests with a right program, and programs that would forge their verdict: by objects, by names, by abstentions."""

from __future__ import annotations

from .abstentions import ABSTENTIONS
from .names import NAMES
from .objects import OBJECTS
from .row import ANYTHING, Forgery

FORGERIES = {
    f"{kind}: {name}": row
    for kind, rows in (("objects", OBJECTS), ("names", NAMES), ("abstentions", ABSTENTIONS))
    for name, row in rows.items()
}
__all__ = ["ABSTENTIONS", "ANYTHING", "FORGERIES", "NAMES", "OBJECTS", "Forgery"]
