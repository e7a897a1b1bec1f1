r"""Words that a text has to hold for a pattern to be found in it.

From ``\b(?:told|tells?) (?:me|us)`` it follows that one of the words of a text begins with ``told`` or ``tell``. Which
they are is read from the pattern as :mod:`re` parses it; its parser has no public name.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

_SIZE = 4
_MANY = 8
"""Characters in one place that each may begin a head of its own; more of them only in its last place."""
_HEADS = re.compile(r"([a-z]{1,4})[a-z]*")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
COMMON = frozenset(["the", "is", "answ", "of", "and", "a", "fina", "it", "we", "so", "to", "in", "are", "by", "that"])
"""Heads of words that many texts about answers hold, so that to look for them is of little use."""


def heads_of(low: str) -> frozenset[str]:
    """Return the heads of the words of a text in small letters: what rows of letters begin with, four at most."""
    return frozenset(_HEADS.findall(low))


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
    return min(found, key=lambda heads: (len(heads & COMMON), len(heads)), default=None)


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


__all__ = ["COMMON", "heads_of", "needed"]
