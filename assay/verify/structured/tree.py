"""How alike two trees of objects, arrays and scalars are, leaf by leaf."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from assay.verify.text.compare import parse_number


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When two scalars are equal.

    Args:
        relative, absolute: numbers a, b are equal iff |a - b| <= max(relative max(|a|, |b|), absolute).
        ignore_case: compare strings without regard to case and surrounding white space.
        numeric_text: a text that is a number equals that number, as in CSV where everything is text.
    """

    relative: float = 1e-9
    absolute: float = 0.0
    ignore_case: bool = False
    numeric_text: bool = False


@dataclass(frozen=True, slots=True)
class Likeness:
    """Leaves of the reference by path, whether each was found equal, and how many leaves it does not have.

    An empty container is a leaf. ``share`` = right / (leaves of the reference + extra leaves), and 1 iff equal.
    """

    leaves: Mapping[str, bool]
    extra: int

    @property
    def share(self) -> float:
        return sum(self.leaves.values()) / (len(self.leaves) + self.extra)

    @property
    def equal(self) -> bool:
        return not self.extra and all(self.leaves.values())

    @property
    def first_difference(self) -> str:
        """What to tell a person; empty where the trees are equal."""
        for path, right in self.leaves.items():
            if not right:
                return f"{path} differs"
        return f"{self.extra} values that the reference does not have" if self.extra else ""


_MISSING = object()


def compare_trees(value: Any, reference: Any, tolerance: Tolerance, ordered: bool = True) -> Likeness:
    """Compare ``value`` with ``reference``; the order of keys never matters, that of arrays if ``ordered``.

    Arrays without order are sorted before they are compared, so equal multisets are equal; the share of an unequal one
    is that of the sorted order, not of the best assignment.
    """
    leaves: dict[str, bool] = {}
    extra = 0
    todo: list[tuple[str, Any, Any]] = [("$", value, reference)]
    while todo:
        path, left, right = todo.pop()
        if right is _MISSING:
            extra += _count(left)
        elif isinstance(right, Mapping) and right:
            given = left if isinstance(left, Mapping) else {}
            extra += 0 if isinstance(left, Mapping) or left is _MISSING else _count(left)
            pairs = [(f"{path}.{k}", given.get(k, _MISSING), right[k]) for k in right]
            pairs += [(f"{path}.{k}", given[k], _MISSING) for k in given if k not in right]
            todo.extend(reversed(pairs))
        elif isinstance(right, list | tuple) and right:
            items = list(left) if isinstance(left, list | tuple) else []
            extra += 0 if isinstance(left, list | tuple) or left is _MISSING else _count(left)
            wanted = list(right)
            if not ordered:
                items.sort(key=_sort_key)
                wanted.sort(key=_sort_key)
            longest = max(len(items), len(wanted))
            items += [_MISSING] * (longest - len(items))
            wanted += [_MISSING] * (longest - len(wanted))
            todo.extend((f"{path}[{i}]", items[i], wanted[i]) for i in reversed(range(longest)))
        else:
            leaves[path] = left is not _MISSING and same_scalar(left, right, tolerance)
            if isinstance(left, Mapping | list | tuple) and left:
                extra += _count(left)
    return Likeness(leaves, extra)


def same_scalar(value: Any, reference: Any, tolerance: Tolerance) -> bool:
    """Say whether two leaves are equal: booleans are no numbers, ``1`` equals ``1.0``, an empty container itself."""
    if tolerance.numeric_text and isinstance(value, str) and _is_number(reference):
        number = parse_number(value)
        if number is None:
            return False
        # Exact first: a float of a long integer would lose digits.
        return number == reference or _close(number, reference, tolerance)
    if _is_number(value) and _is_number(reference):
        return bool(value == reference) or _close(value, reference, tolerance)
    if isinstance(value, str) and isinstance(reference, str) and tolerance.ignore_case:
        return value.strip().casefold() == reference.strip().casefold()
    if isinstance(value, list | tuple) and isinstance(reference, list | tuple):
        return not value and not reference
    return type(value) is type(reference) and bool(value == reference)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(value: float | Fraction, reference: float, tolerance: Tolerance) -> bool:
    try:
        return math.isclose(value, reference, rel_tol=tolerance.relative, abs_tol=tolerance.absolute)
    except OverflowError:
        return False


def _count(value: Any) -> int:
    """Leaves of a tree."""
    total, todo = 0, [value]
    while todo:
        node = todo.pop()
        children = node.values() if isinstance(node, Mapping) else node if isinstance(node, list | tuple) else ()
        if children:
            todo.extend(children)
        else:
            total += 1
    return total


def _sort_key(value: Any) -> tuple[int, float, str]:
    # Numbers by value, so that 9.99 and 10.0 stand where their near equals stand; the rest by its text.
    if _is_number(value):
        try:
            return 0, float(value), ""
        except OverflowError:
            return 0, math.inf if value > 0 else -math.inf, ""
    return 1, 0.0, json.dumps(value, sort_keys=True, default=str)
