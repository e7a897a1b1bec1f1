"""When what a function returned is what it should have returned; the values are plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

ValueRule = Literal["exact", "approximate", "unordered", "set", "unordered_approximate"]


def same_value(got: Any, expected: Any, rule: ValueRule, relative: float, absolute: float) -> bool:
    """Say whether ``got`` is ``expected``.

    Tuples and lists are the same, as tests written in JSON have lists only; so are NumPy arrays and their lists.

    - ``exact``: equal as Python compares, with NaN equal to itself;
    - ``approximate``: floats at any depth may differ by ``absolute`` or ``relative`` times the expected one;
    - ``unordered``: the outermost list in any order; ``unordered_approximate``: with tolerance, matched when sorted;
    - ``set``: the same elements, however often and in whatever order, at the outermost level.
    """
    mine, theirs = _plain(got), _plain(expected)
    if rule in ("unordered", "set", "unordered_approximate"):
        if isinstance(mine, set | frozenset):
            mine = list(mine)
        if isinstance(theirs, set | frozenset):
            theirs = list(theirs)
        if not (isinstance(mine, list) and isinstance(theirs, list)):
            return _equal(mine, theirs, relative, absolute, rule == "unordered_approximate")
        mine, theirs = sorted(mine, key=_key), sorted(theirs, key=_key)
        if rule == "set":
            mine, theirs = _distinct(mine), _distinct(theirs)
    return _equal(mine, theirs, relative, absolute, rule in ("approximate", "unordered_approximate"))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


def _equal(a: Any, b: Any, relative: float, absolute: float, near: bool) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_equal(x, y, relative, absolute, near) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_equal(a[k], b[k], relative, absolute, near) for k in b)
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


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _key(value: Any) -> tuple[Any, ...]:
    """An order in which equal values stand beside each other, whatever their types."""
    if isinstance(value, bool | int | float):
        return (0, (0, 0.0) if value != value else (1, value))
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (2, tuple(_key(item) for item in value))
    if isinstance(value, set | frozenset):
        return (3, tuple(sorted(_key(item) for item in value)))
    if isinstance(value, dict):
        return (4, tuple(sorted((_key(k), _key(v)) for k, v in value.items())))
    return (5, type(value).__name__, repr(value))


def _distinct(items: list[Any]) -> list[Any]:
    return [item for i, item in enumerate(items) if not i or _key(item) != _key(items[i - 1])]
