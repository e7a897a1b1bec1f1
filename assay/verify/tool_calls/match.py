"""When a tool call is the one asked for: its name, and each argument against one value or several accepted ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.verify.structured.tree import Tolerance, compare_trees
from assay.verify.text.compare import parse_number

_IGNORED = re.compile(r"[ ,./\-_*^]")


@dataclass(frozen=True, slots=True)
class Values:
    """How argument values are compared.

    Args:
        tolerance: of numbers, see :class:`~assay.verify.structured.tree.Tolerance`.
        coerce: text that is a number or a truth value equals that number or truth value, and the other way round.
        strings: ``exact``; ``ignore_case``, white space around it too; or ``loose``, as BFCL compares: without case,
            blanks and ``,./-_*^``, double quotes as single ones.
    """

    tolerance: float = 1e-9
    coerce: bool = False
    strings: Literal["exact", "ignore_case", "loose"] = "exact"

    def same(self, value: Any, wanted: Any) -> bool:
        """Say whether two JSON values are equal."""
        left, right = self._canonical(value), self._canonical(wanted)
        return compare_trees(left, right, Tolerance(relative=self.tolerance)).equal

    def _canonical(self, value: Any) -> Any:
        # Depth is bounded by what reads values.
        if isinstance(value, Mapping):
            return {key: self._canonical(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._canonical(item) for item in value]
        if not isinstance(value, str):
            return value
        if self.coerce:
            if value.strip().lower() in ("true", "false"):
                return value.strip().lower() == "true"
            if (number := parse_number(value)) is not None:
                return number.numerator if number.denominator == 1 else _float(number)
        if self.strings == "ignore_case":
            return value.strip().casefold()
        return _IGNORED.sub("", value).casefold().replace('"', "'") if self.strings == "loose" else value

    def accepted(self, value: Any, options: list[Any]) -> bool:
        """Say whether ``value`` is one of ``options``; an object among them has options for each of its keys."""
        return any(self._fits(value, option) for option in options)

    def _fits(self, value: Any, option: Any) -> bool:
        if self.same(value, option):
            return True
        if isinstance(option, Mapping) and isinstance(value, Mapping):
            return fits_object(value, option, self)
        if isinstance(option, list) and isinstance(value, list) and len(option) == len(value):
            return all(self._fits(v, o) for v, o in zip(value, option, strict=True))
        return False


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def optional(options: Any) -> bool:
    """Say whether an argument may be left out: an empty text is among its accepted values (BFCL)."""
    return isinstance(options, list) and "" in options


def fits_object(value: Mapping[str, Any], options: Mapping[str, Any], values: Values) -> bool:
    """Say whether each key has one of its accepted values; none may be unknown, and only optional ones missing."""
    if value.keys() - options.keys():
        return False
    for key, accepted in options.items():
        choices = accepted if isinstance(accepted, list) else [accepted]
        if key in value:
            if not values.accepted(value[key], choices):
                return False
        elif not optional(accepted):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call asked for; with ``any_of`` each argument has a list of accepted values, otherwise its value."""

    name: str
    arguments: Mapping[str, Any]
    any_of: bool

    def share(self, given: Mapping[str, Any], values: Values) -> float:
        """Share of arguments that are right, of those asked for and those given; 1 where there are none."""
        right = asked = 0
        for key, wanted in self.arguments.items():
            if key not in given and self.any_of and optional(wanted):
                continue
            asked += 1
            if key in given:
                listed = wanted if isinstance(wanted, list) else [wanted]
                right += values.accepted(given[key], listed) if self.any_of else values.same(given[key], wanted)
        asked += len(given.keys() - self.arguments.keys())
        return right / asked if asked else 1.0
