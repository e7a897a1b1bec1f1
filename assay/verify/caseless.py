r"""Large patterns searched for whatever the case, several times faster than ``re.IGNORECASE`` does.

A text in ASCII is searched in small letters, by a pattern without that flag (the flag keeps ``re`` from skipping to
where a match can begin), and without the alternatives that need a letter which is not in ASCII. Alternatives that begin
with ``\b`` share one, so that most places are passed over at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


class Caseless:
    """A pattern, written in small letters, that matches in any case.

    Args:
        source: an expression without flags, groups by number, or classes of capital letters.
    """

    __slots__ = ("_ascii", "_pattern", "pattern")

    def __init__(self, source: str):
        pieces = alternatives(source)
        self.pattern = _joined(pieces)
        self._pattern = re.compile(self.pattern, re.IGNORECASE)
        self._ascii = re.compile(_joined([p for p in pieces if not _foreign(p)]) or r"(?!)")

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        end = len(text) if end is None else end
        if text.isascii():
            return self._ascii.search(text.lower(), start, end)
        return self._pattern.search(text, start, end)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        return self._ascii.match(text.lower(), start) if text.isascii() else self._pattern.match(text, start)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._ascii.finditer(text.lower()) if text.isascii() else self._pattern.finditer(text)


def alternatives(source: str) -> list[str]:
    """Split an expression at the ``|`` that stand in no group and no class."""
    pieces, depth, start, place = [], 0, 0, 0
    while place < len(source):
        c = source[place]
        if c == "\\":
            place += 1
        elif c == "[":
            place = source.index("]", place + 2)
        elif c in "()":
            depth += 1 if c == "(" else -1
        elif c == "|" and depth == 0:
            pieces.append(source[start:place])
            start = place + 1
        place += 1
    return [*pieces, source[start:]]


def _joined(pieces: list[str]) -> str:
    bounded = [piece[2:] for piece in pieces if piece.startswith(r"\b")]
    others = [piece for piece in pieces if not piece.startswith(r"\b")]
    return "|".join([*([rf"\b(?:{'|'.join(bounded)})"] if bounded else []), *others])


def _foreign(piece: str) -> bool:
    """Say whether nothing in ASCII matches, since a letter beyond it stands in no group and no class, not optional."""
    bare = piece
    while (inner := re.sub(r"\((?:[^()\\]|\\.)*\)[?*]?|\[(?:[^\]\\]|\\.)+\][?*]?", "", bare)) != bare:
        bare = inner
    return re.search(r"[^\x00-\x7f](?![?*])", bare) is not None
