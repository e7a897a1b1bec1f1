"""Several values with names in words: ``Perimeter: 34; diagonal: 13``, in any order and under their initials."""

from __future__ import annotations

import re
from collections.abc import Callable

_PART = re.compile(r"\s*\$?([A-Za-z][A-Za-z ]{2,30}?)\s*(?:=|:|\bis\b)\s*([^=:;]{1,60}?)\s*")
_BETWEEN = re.compile(
    r";|\n|,\s(?=[A-Za-z][A-Za-z ]{2,30}?\s*(?:=|:|\bis\b))|\s(?:and|&)\s(?=[A-Za-z ]{3,30}?\s*(?:=|:|\bis\b))"
)
_FILLER = frozenset(
    ["the", "a", "an", "its", "is", "are", "of", "and", "so", "with", "our", "final", "answer", "answers", "result"]
)
_VALUE = r"\s?(?:=|:|\bis\b|\bequals\b|\bof\b|\bare\b)\s*\$?(?:[^=;:,\n]{0,60}=\s*)?(?P<value>[^=;:\n]{1,60}?)\$?"
_END = r"(?=\s*(?:[;\n]|,\s|\\quad|\\qquad|,\\|\.\s|\.?$|\s(?:and|while|but|whereas)\s))"


def parts(text: str) -> dict[str, str] | None:
    """Return the values of ``text`` by name, ``None`` unless it is nothing but two or more named values."""
    if len(text) > 400 or not (":" in text or "=" in text):
        return None
    found = [_PART.fullmatch(piece.strip(" .$")) for piece in _BETWEEN.split(text) if piece.strip()]
    named = {m[1].strip().lower(): m[2].strip() for m in found if m is not None}
    return named if len(found) == len(named) > 1 else None


def same_parts(reference: str, answer: str, agrees: Callable[[str, str], bool]) -> bool:
    """Say whether ``answer`` gives every named value of ``reference``, and no other value under those names."""
    wanted = parts(reference)
    if wanted is None or len(answer) > 600:
        return False
    initials = [name[0] for name in wanted]
    return all(
        _given(name, value, answer, initials.count(name[0]) == 1, agrees) for name, value in wanted.items()
    ) and not _negated(answer)


def _given(name: str, value: str, answer: str, by_initial: bool, agrees: Callable[[str, str], bool]) -> bool:
    last = [word for word in name.split() if word not in _FILLER][-1:]
    for label in (re.escape(name), *map(re.escape, last), *([re.escape(name[0])] if by_initial else [])):
        found = list(re.finditer(rf"(?<![A-Za-z\\]){label}{_VALUE}{_END}", answer, re.IGNORECASE))
        if found:
            return all(agrees(value, match["value"].strip(" $")) for match in found)
    return False


def _negated(answer: str) -> bool:
    return (
        re.search(r"\b(?:not|never|or|maybe|perhaps|wrong|incorrect)\b|n't\b|[?≠]", answer, re.IGNORECASE) is not None
    )
