"""When what a function returned is what it should have returned; the values are plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any, Literal

ValueRule = Literal["exact", "approximate", "unordered", "set", "unordered_approximate"]
NumberRule = Literal["strict", "loose"]
NUMBERS = (bool, int, float, complex)


def same_value(
    got: Any, expected: Any, rule: ValueRule, relative: float, absolute: float, numbers: NumberRule = "strict"
) -> bool:
    """Say whether ``got`` is ``expected``.

    Tuples and lists are the same, as tests written in JSON have lists only; so are NumPy arrays and their lists.

    - ``exact``: equal as Python compares, with NaN equal to itself;
    - ``approximate``: floats at any depth may differ by ``absolute`` or ``relative`` times the expected one;
    - ``unordered``: the outermost list in any order; ``unordered_approximate``: with tolerance, matched when sorted;
    - ``set``: the same elements, however often and in whatever order, at the outermost level.

    Python takes ``True`` and ``1.0`` for 1. With ``numbers`` ``strict`` truth values, integers and floats are three
    kinds, and a value is of the kind that is expected (where there is a tolerance, an integer will do for a float and
    the other way round); with ``loose`` they are as Python compares them.
    """
    mine, theirs = _plain(got), _plain(expected)
    strict, near = numbers == "strict", rule in ("approximate", "unordered_approximate")
    if rule in ("unordered", "set", "unordered_approximate"):
        if isinstance(mine, set | frozenset):
            mine = list(mine)
        if isinstance(theirs, set | frozenset):
            theirs = list(theirs)
        if not (isinstance(mine, list) and isinstance(theirs, list)):
            return _equal(mine, theirs, relative, absolute, near, strict)
        mine, theirs = (sorted(some, key=lambda value: _key(value, strict)) for some in (mine, theirs))
        if rule == "set":
            mine, theirs = _distinct(mine, strict), _distinct(theirs, strict)
    return _equal(mine, theirs, relative, absolute, near, strict)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


def _equal(a: Any, b: Any, relative: float, absolute: float, near: bool, strict: bool) -> bool:
    how = (relative, absolute, near, strict)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_equal(x, y, *how) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return _alike(a.keys(), b.keys(), strict) and all(_equal(a[k], b[k], *how) for k in b)
    if isinstance(a, set | frozenset) and isinstance(b, set | frozenset):
        return _alike(a, b, strict)
    if strict and not _one_kind(a, b, near):
        return False
    if a == b:
        return True
    if not _numbers(a, b):
        return False
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    if not near or not (isinstance(a, float) or isinstance(b, float)):
        return False
    try:
        return math.isfinite(b) and abs(a - b) <= max(absolute, relative * abs(b))
    except OverflowError:
        return False


def _one_kind(a: Any, b: Any, near: bool) -> bool:
    """Whether two values are not numbers of different kinds; where they may differ, integers are like floats."""
    if not (isinstance(a, NUMBERS) and isinstance(b, NUMBERS)) or type(a) is type(b):
        return True
    return near and not isinstance(a, bool) and not isinstance(b, bool)


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _alike(a: Set[Any], b: Set[Any], strict: bool) -> bool:
    """Whether two sets have the same elements, of the same kinds if ``strict``."""
    return a == b and (not strict or {_kinds(value) for value in a} == {_kinds(value) for value in b})


def _kinds(value: Any) -> Any:
    """An element of a set so that numbers of different kinds are different."""
    if isinstance(value, tuple):
        return tuple(_kinds(item) for item in value)
    if isinstance(value, frozenset):
        return frozenset(_kinds(item) for item in value)
    return (type(value).__name__, value) if isinstance(value, NUMBERS) else value


def _key(value: Any, strict: bool) -> tuple[Any, ...]:
    """An order in which equal values stand beside each other, whatever their types; ``strict``: their kinds apart."""
    if isinstance(value, bool | int | float):
        return (0, (0, 0.0) if value != value else (1, value), type(value).__name__ if strict else "")
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (2, tuple(_key(item, strict) for item in value))
    if isinstance(value, set | frozenset):
        return (3, tuple(sorted(_key(item, strict) for item in value)))
    if isinstance(value, dict):
        return (4, tuple(sorted((_key(k, strict), _key(v, strict)) for k, v in value.items())))
    return (5, type(value).__name__, repr(value))


def _distinct(items: list[Any], strict: bool) -> list[Any]:
    return [item for i, item in enumerate(items) if not i or _key(item, strict) != _key(items[i - 1], strict)]
