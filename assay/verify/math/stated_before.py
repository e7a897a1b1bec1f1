"""What is asked for, stated by name as another value before: ``The slope is 1/3. So y rises by 3.``"""

from __future__ import annotations

import re
from collections.abc import Callable

_ASKED = re.compile(
    r"\b(?:what(?:'s| is| are)|find|determine|calculate|compute|state)\s+(?:the|its)\s+(?:[a-z]+\s){0,2}?"
    r"(?P<noun>[a-z]{4,})(?=\s(?:of|in|for|that|through|between|from|to|when|if)\b|[?.,])",
    re.IGNORECASE,
)
_VALUE = r"\$?\*{0,2}\s?(?P<value>-?[0-9][0-9.,/]*|\\[dt]?frac\{[^{}]*\}\{[^{}]*\})"
_CORRECTED = re.compile(
    r"\b(?:no|not|wait|wrong|actually|correct\w*|but|however|mistake\w*|instead|rather|recheck\w*)\b", re.I
)
MAX_BEFORE = 800


def stated_before(before: str, said: str, question: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether another value was stated as what the question asks for, and the last sentence does not name that.

    Args:
        before: the response up to the sentence that holds the right value.
        said: that sentence.
        question: its noun after "what is the" is what is asked for.
        agrees: whether a text is the reference.
    """
    asked = _ASKED.search(question) if before.rstrip(" *$_").endswith((".", "!", "?", "\n")) else None
    if asked is None or asked["noun"].casefold() in said.casefold() or _CORRECTED.search(said):
        return False
    pattern = re.compile(rf"\b(?:the|its) (?:\w+ )?{asked['noun']} (?:is|equals|=|:)\s*{_VALUE}", re.IGNORECASE)
    found = [match["value"].rstrip(".,") for match in pattern.finditer(before[-MAX_BEFORE:])]
    return bool(found) and not agrees(found[-1])
