"""Reading the answers of puzzles: integers, labels, assignments. All of it takes time linear in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from assay.verify.puzzles.puzzle import BadAnswer
from assay.verify.text.exact import shorten

_INTEGER = re.compile(r"(?<![0-9A-Za-z_.])[-+]?[0-9]+(?![0-9A-Za-z_]|\.[0-9])")
_NAME = r"[^\s,;()\[\]{}<>\"'`|=:→]"
_WORD = re.compile(rf"{_NAME}+")
_PAIR = re.compile(
    # A name starts where a word does: from inside a long word, each search would run to its end again.
    rf"(?<!{_NAME})[\"'`]?({_NAME}+)[\"'`]?[ \t]?(?:=|:|->|=>|→|[ \t]is[ \t])[ \t]{{0,4}}[\"'`]?({_NAME}+)"
)
_MOST_DIGITS = 4000
"""Digits of the longest integer that is read as it stands: Python refuses more than 4300, and reading takes longer than
in proportion to them."""


def integers(text: str) -> list[int]:
    """Return the integers in ``text`` in order; parts of words and decimals are none.

    One of more than 4000 digits, which no puzzle has, is some integer of that size: a wrong value like any other.
    """
    return [_integer(number) for number in _INTEGER.findall(text)]


def _integer(number: str) -> int:
    if len(number) <= _MOST_DIGITS:
        return int(number)
    digits = number.lstrip("+-").lstrip("0")
    size = int(digits[:_MOST_DIGITS] or "0") if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
    return -size if number.startswith("-") else size


def shown(number: int) -> str:
    """An integer for people, however long."""
    return shorten(str(number), 30)


def labels(text: str) -> list[str]:
    """Return the words of a list such as ``[a, b, c]`` or ``a -> b -> c``."""
    words = (word.strip(".*") for word in _WORD.findall(text.replace("->", " ").replace("--", " ")))
    return [word for word in words if word and word not in "-–—"]


def assignment(text: str) -> dict[str, str]:
    """Return ``{name: value}`` of ``a = 1, b: red`` or of the last flat JSON object, as text.

    Raises:
        BadAnswer: there is none, or a name gets two values.
    """
    start, end = text.rfind("{"), text.rfind("}")
    pairs: Iterable[tuple[str, str]]
    try:
        if not 0 <= start < end:
            raise ValueError
        pairs = json.loads(text[start : end + 1], object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
        pairs = [(str(name), _text(value)) for name, value in pairs]
    except (ValueError, RecursionError):
        pairs = [(name, value.rstrip(".*")) for name, value in _PAIR.findall(text)]
    values: dict[str, str] = {}
    for written, value in pairs:
        name = written.strip("*")
        if values.setdefault(name, value) != value:
            raise BadAnswer(f"{shorten(name, 30)} is both {shorten(values[name], 30)} and {shorten(value, 30)}")
    if not values:
        raise BadAnswer("no assignment such as 'a = 1' in the answer")
    return values


class _Pairs(list[tuple[str, object]]):
    """The members of a JSON object in order, so that a name given twice is seen."""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def find_label(name: str, known: Iterable[str]) -> str | None:
    """Return the known label that ``name`` means: itself, else the only one equal without regard to case."""
    known = list(known)
    if name in known:
        return name
    same = [label for label in known if label.casefold() == name.casefold()]
    return same[0] if len(same) == 1 else None
