r"""Large patterns searched for whatever the case, many times faster than ``re.IGNORECASE`` does.

A text in ASCII is searched in small letters, by a pattern without that flag (the flag keeps ``re`` from skipping to
where a match can begin), and without the alternatives that need a letter which is not in ASCII. Alternatives that begin
with ``\b`` share one, so that most places are passed over at once.

Before that, the text's words are looked at: from most alternatives it follows that one of a few words is in whatever
they match. They are not searched for where none of these words is, which takes less than a microsecond since the same
texts are asked about by many patterns.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import filterfalse
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any


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
                if words is None or not words.isdisjoint(_COMMON):
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
    return low, frozenset(_HEADS.findall(low))


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


# --- the words that a match needs -------------------------------------------------------------------------------------

_SIZE = 4
_MANY = 8
"""Characters in one place that each may begin a head of its own; more of them only in its last place."""
_HEADS = re.compile(r"([a-z]{1,4})[a-z]*")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_COMMON = frozenset(["the", "is", "answ", "of", "and", "a", "fina", "it", "we", "so", "to", "in", "are", "by", "that"])
"""Heads of words that many texts about answers hold, so that to look for them is of little use."""


def needed(before: str, choices: Sequence[str], behind: str, flags: int = 0) -> list[frozenset[str] | None]:
    """Return for each choice heads, one of which a word has in every text in ASCII that a pattern is found in.

    The pattern is the choice between two other expressions; there is ``None`` for one of which nothing is known.

    A head is what a row of small letters begins with, four at most: ``prob`` of "probably", ``so`` of "so" alone.
    """
    first, *middle, last = (list(sre_parser.parse(source, flags)) for source in (before, *choices, behind))
    at_last = _needed(last, False)
    found = [_needed([*first, *items, *last], False, len(first) + len(items)) for items in middle]
    return [_rarest([words for words in (here, at_last) if words is not None]) for here in found]


_Item = tuple[Any, Any]


class _UnknownError(Exception):
    """Words can begin in any way."""


def _needed(items: Sequence[_Item], apart: bool, count: int | None = None) -> frozenset[str] | None:
    """Return the heads that the first of some items that follow each other need, ``None`` if none are known.

    Args:
        items: parts of a parsed expression.
        apart: whether no letter stands before them.
        count: how many of them are looked at; the others only tell where a word of these ends.
    """
    found: list[frozenset[str]] = []
    for place, (kind, value) in enumerate(items[:count]):
        if apart or (kind is sre.AT and value is sre.AT_BOUNDARY):
            with contextlib.suppress(_UnknownError):
                found.append(frozenset(_heads(items, place, "", _unknown)))
        inner: Sequence[Sequence[_Item]] = ()
        if kind is sre.LITERAL and not _letter(value).isascii():
            return frozenset()
        if kind is sre.SUBPATTERN:
            inner = [value[3]]
        elif kind is sre.BRANCH:
            inner = value[1]
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[0] > 0:
            inner = [value[2]]
        sets = [_needed(each, apart) for each in inner]
        if sets and None not in sets:
            found.append(frozenset[str]().union(*filter(None, sets)))
        apart = _apart(kind, value, apart)
    return _rarest(found)


def _rarest(found: list[frozenset[str]]) -> frozenset[str] | None:
    """The set of heads that the fewest texts hold one of."""
    return min(found, key=lambda heads: (len(heads & _COMMON), len(heads)), default=None)


def _heads(items: Sequence[_Item], place: int, run: str, then: Callable[[str], Iterable[str]]) -> Iterable[str]:
    """Return the heads of the word of which ``run`` has been read before an item, if no letter stands before that.

    Args:
        items: that follow each other.
        place: that of the next item.
        run: the word's letters so far.
        then: what becomes of the word behind the last item.
    """
    if len(run) == _SIZE:
        return {run}
    if place == len(items):
        return then(run)
    kind, value = items[place]

    def go_on(longer: str) -> Iterable[str]:
        return _heads(items, place + 1, longer, then)

    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return go_on(run)
    if kind is sre.AT:
        if run and value is not sre.AT_NON_BOUNDARY:
            return {run}
        if value is sre.AT_BOUNDARY:
            return go_on(run)
    elif kind is sre.SUBPATTERN:
        return _heads(value[3], 0, run, go_on)
    elif kind is sre.BRANCH:
        return {head for each in value[1] for head in _heads(each, 0, run, go_on)}
    elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, body = value
        once = _heads(body, 0, run, go_on if most == 1 else _unknown)
        return {*once, *(() if least else go_on(run))}
    elif (chars := _chars(kind, value)) is not None and (len(chars) <= _MANY or len(run) == _SIZE - 1):
        heads = set[str]()
        for c in chars:
            if c in _LETTERS:
                heads.update(go_on(run + c))
            elif c.isascii():
                heads.update([run] if run else _unknown(run))
        return heads
    return _unknown(run)


def _unknown(run: str) -> Iterable[str]:
    raise _UnknownError(run)


def _apart(kind: Any, value: Any, before: bool) -> bool:
    """Say whether what stands behind an item has no letter before it, given whether the item has none."""
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return before
    if kind is sre.AT:
        return before or value in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
    if kind is sre.SUBPATTERN:
        return _all_apart(value[3], before)
    if kind is sre.BRANCH:
        return all(_all_apart(each, before) for each in value[1])
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        return (before or value[0] > 0) and _all_apart(value[2], before)
    chars = _chars(kind, value)
    return chars is not None and _LETTERS.isdisjoint(chars)


def _all_apart(items: Sequence[_Item], before: bool) -> bool:
    for kind, value in items:
        before = _apart(kind, value, before)
    return before


def _letter(code: int) -> str:
    """A character as it is in small letters; those beyond ASCII that ``re`` takes for one in it are that one."""
    return {"ı": "i", "İ": "i", "ſ": "s", "\u212a": "k"}.get(chr(code), chr(code).lower())


def _chars(kind: Any, value: Any) -> set[str] | None:
    """The characters that an item may be, with a blank for whatever is no letter; ``None`` if that may be any."""
    if kind is sre.LITERAL:
        return {_letter(value)}
    if kind is not sre.IN:
        return None
    chars = set[str]()
    for each, what in value:
        if each is sre.LITERAL:
            chars.add(_letter(what))
        elif each is sre.RANGE and what[1] < 0x80:
            chars.update(chr(code).lower() for code in range(what[0], what[1] + 1))
        elif each is sre.CATEGORY and what is sre.CATEGORY_WORD:
            chars.update(_LETTERS, " ")
        elif each is sre.CATEGORY and what in (sre.CATEGORY_NOT_WORD, sre.CATEGORY_SPACE, sre.CATEGORY_DIGIT):
            chars.add(" ")
        else:
            return None
    return chars
