"""What tests are worth: weights, and groups of tests that count together or not at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Worth:
    """What the tests of a task are worth; a test that is not named here is worth 1 and in no group.

    Attributes:
        weights: by name of the test, 0 or more.
        groups: the group of each test that is in one.
        points: of a group; where there are none, the weights of its tests together.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    points: Mapping[str, float] = field(default_factory=dict)

    def score(self, scores: Mapping[str, float | None], count: int) -> tuple[float, dict[str, float]]:
        """Return the share of all points that was won, in [0, 1], and the score of each group.

        A group's score is that of its worst test, so that all must pass for all its points. Tests that were skipped
        (``None``) are worth nothing; a test that was not run scores 0.

        Args:
            scores: of the tests that were run or skipped, by name.
            count: tests there are, those without a known name included.
        """
        names = [name for name in {**scores, **self.weights, **self.groups} if scores.get(name, 0.0) is not None]
        skipped = len(scores) - sum(name in scores for name in names)
        unnamed = max(0, count - skipped - len(names))
        won, most = 0.0, float(unnamed)
        members: dict[str, list[str]] = {}
        for name in names:
            if name in self.groups:
                members.setdefault(self.groups[name], []).append(name)
            else:
                won += self.weights.get(name, 1.0) * (scores.get(name) or 0.0)
                most += self.weights.get(name, 1.0)
        found = {}
        for group, tests in members.items():
            found[group] = min(scores.get(name) or 0.0 for name in tests)
            points = self.points.get(group, sum(self.weights.get(name, 1.0) for name in tests))
            won += points * found[group]
            most += points
        return (won / most if most else 0.0), found


def read_worth(given: Mapping[str, Any], tests: Sequence[Mapping[str, Any]], count: int) -> Worth:
    """Return what a reference says of its tests' worth; raise ValueError where it cannot be so.

    A test may have ``weight`` and ``group`` of its own. The reference may have ``weights``, a list with one for each
    test or a mapping by name (``test 1``, or a unit test's), ``groups``, a list with a name or ``None`` for each test
    or a mapping of groups to lists of names or of numbers from 1, and ``points`` by group.

    Args:
        tests: the tests that are mappings themselves, in order.
        count: how many tests there are, 0 if that is not known.
    """
    weights: dict[str, float] = {f"test {n}": _number(t["weight"]) for n, t in enumerate(tests, 1) if "weight" in t}
    groups = {f"test {n}": str(t["group"]) for n, t in enumerate(tests, 1) if t.get("group") is not None}
    for name, value in _by_name(given.get("weights"), "weights", count).items():
        weights[name] = _number(value)
    if isinstance(given.get("groups"), Mapping):
        for group, members in given["groups"].items():
            for member in members:
                groups[f"test {member}" if isinstance(member, int) else str(member)] = str(group)
    else:
        listed = _by_name(given.get("groups"), "groups", count)
        groups |= {name: str(group) for name, group in listed.items() if group is not None}
    points = {str(group): _number(value) for group, value in dict(given.get("points") or {}).items()}
    if lost := [group for group in points if group not in groups.values()]:
        raise ValueError(f"its points are of a group {lost[0]!r}, in which there are no tests")
    numbers = {f"test {n}" for n in range(1, count + 1)}
    for name in (*weights, *groups):
        if name.removeprefix("test ").isdecimal() and count and name not in numbers:
            raise ValueError(f"it gives {name!r} a weight or a group, and has {count} tests")
    if count and not Worth(weights, groups, points).score(dict.fromkeys(numbers, 1.0), count)[0]:
        raise ValueError("its tests are worth nothing: all weights or points are 0")
    return Worth(weights, groups, points)


def _by_name(value: Any, key: str, count: int) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {f"test {name}" if isinstance(name, int) else str(name): item for name, item in value.items()}
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"its {key} must be a mapping, or a list with one for each of its {count} tests")
    return {f"test {number}": item for number, item in enumerate(value, 1)}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"a weight or points of {value!r}: must be a number of at least 0")
    return float(value)
