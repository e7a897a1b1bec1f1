r"""Large patterns searched for whatever the case, many times faster than ``re.IGNORECASE`` does.

A text in ASCII is searched in small letters, by a pattern without that flag (the flag keeps ``re`` from skipping to
where a match can begin), and without the alternatives that need a letter which is not in ASCII. Alternatives that begin
with ``\b`` share one, so that most places are passed over at once.

Before that, the text's words are looked at: from most alternatives it follows that one of a few words is in whatever
they match. They are not searched for where none of these words is, which takes less than a microsecond since the same
texts are asked about by many patterns.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import filterfalse

from assay.verify.needed_words import COMMON, heads_of, needed


class Caseless:
    """A pattern, written in small letters, that matches in any case.

    What a match in an ASCII text holds is in small letters; :meth:`split` and :meth:`sub` leave the text as it is.

    Args:
        source: an expression without flags, groups by number, or classes of capital letters.
        frequent: whether most texts hold one of its words, or few other patterns are asked about the same texts, so
            that looking at their words first does not pay.
    """

    def __init__(self, source: str, *, frequent: bool = False):
        self._pieces = alternatives(source)
        self._frequent = frequent
        self.pattern = _joined(self._pieces)

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        text = text if end is None else text[:end]
        if self._frequent:
            return self._ascii.search(text.lower(), start) if text.isascii() else self._any.search(text, start)
        low, words = _read(text)
        if words is None:
            return self._any.search(text, start)
        pattern = self._others if self._heads.isdisjoint(words) else self._ascii
        return pattern.search(low, start) if pattern is not None else None

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        pattern, text = self._look_for(text)
        return pattern.match(text, start) if pattern is not None else None

    def fullmatch(self, text: str) -> re.Match[str] | None:
        pattern, text = self._look_for(text)
        return pattern.fullmatch(text) if pattern is not None else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        pattern, text = self._look_for(text)
        return pattern.finditer(text) if pattern is not None else iter(())

    def split(self, text: str) -> list[str]:
        """The pieces of a text between matches."""
        pattern, low = self._look_for(text)
        if pattern is None:
            return [text]
        pieces, start = [], 0
        for match in pattern.finditer(low):
            pieces.append(text[start : match.start()])
            start = match.end()
        return [*pieces, text[start:]]

    def sub(self, new: str, text: str) -> str:
        """A text with ``new``, as it is, in the place of each match."""
        return new.join(self.split(text))

    def _look_for(self, text: str) -> tuple[re.Pattern[str] | None, str]:
        """Return the pattern to look for in a text, ``None`` if it cannot match, and the text to look in."""
        if self._frequent:
            return (self._ascii, text.lower()) if text.isascii() else (self._any, text)
        low, words = _read(text)
        if words is None:
            return self._any, low
        return self._others if self._heads.isdisjoint(words) else self._ascii, low

    # Made when they are needed first, since many patterns never are.

    @functools.cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE)

    @functools.cached_property
    def _ascii(self) -> re.Pattern[str]:
        return re.compile(_joined([piece for piece in self._pieces if not _foreign(piece)]) or r"(?!)")

    @functools.cached_property
    def _heads(self) -> frozenset[str]:
        return self._divided[0]

    @functools.cached_property
    def _others(self) -> re.Pattern[str] | None:
        return self._divided[1]

    @functools.cached_property
    def _divided(self) -> tuple[frozenset[str], re.Pattern[str] | None]:
        """The words that some alternatives need, and a pattern of the others, if there are any."""
        heads = set[str]()
        others = []
        for before, choices, behind in map(_choices, filterfalse(_foreign, self._pieces)):
            rest = []
            for choice, words in zip(choices, needed(before, choices, behind), strict=True):
                if words is None or not words.isdisjoint(COMMON):
                    rest.append(choice)
                else:
                    heads |= words
            if rest:
                others.append(f"{before}(?:{'|'.join(rest)}){behind}")
        if not others:
            return frozenset(heads), None
        pattern = re.compile(_joined(others))
        return frozenset(heads), pattern if pattern.groups == self._ascii.groups else self._ascii


class Worded:
    """A pattern that is looked for only where one of the words stands that it needs; all else is as in ``re``.

    Args:
        source: an expression.
        flags: its flags.
    """

    def __init__(self, source: str, flags: int = 0):
        self.pattern, self.flags = source, flags

    def search(self, text: str) -> re.Match[str] | None:
        return self._compiled.search(text) if self._may_match(text) else None

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        return self._compiled.match(text, start) if self._may_match(text) else None

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._compiled.fullmatch(text) if self._may_match(text) else None

    def _may_match(self, text: str) -> bool:
        words = _read(text)[1]
        return words is None or self._heads is None or not self._heads.isdisjoint(words)

    @functools.cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self.flags)

    @functools.cached_property
    def _heads(self) -> frozenset[str] | None:
        return needed("", [self.pattern], "", self.flags)[0]


@functools.lru_cache(64)
def _read(text: str) -> tuple[str, frozenset[str] | None]:
    """Return a text in small letters and the heads of its words; ``None`` for these if it is not in ASCII."""
    if not text.isascii():
        return text, None
    low = text.lower()
    return low, heads_of(low)


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


def _choices(piece: str) -> tuple[str, list[str], str]:
    """The alternatives of the first group that has no name, and what stands before and behind them."""
    place = depth = 0
    while place < len(piece):
        c = piece[place]
        if c == "\\":
            place += 1
        elif c == "[":
            place = piece.index("]", place + 2)
        elif c == "(":
            if depth == 0:
                start = place
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0 and piece.startswith("(?:", start):
                if piece[place + 1 : place + 2] in ("?", "*", "+", "{"):
                    break
                return piece[:start], alternatives(piece[start + 3 : place]), piece[place + 1 :]
        place += 1
    return "", [piece], ""


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
