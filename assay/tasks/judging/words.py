"""What a reply says of a response: Correct or Incorrect."""

from __future__ import annotations

import re

_MARKED = re.compile(r"(?:\\boxed\{\s*(?:\\text\{)?|\[)\s*(correct|incorrect)\b", re.IGNORECASE)
_BARE = re.compile(r"\W*(correct|incorrect)\W*", re.IGNORECASE)


def said_word(reply: str) -> bool | None:
    """Return whether a reply says Correct rather than Incorrect: the last word in a box or in square brackets, else the
    word that is all of it; ``None`` where it says neither."""
    marked = _MARKED.findall(reply)
    if marked:
        return str(marked[-1]).lower() == "correct"
    bare = _BARE.fullmatch(reply)
    return None if bare is None else bare[1].lower() == "correct"
