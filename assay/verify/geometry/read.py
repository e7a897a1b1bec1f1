"""Reading coordinates and times from an answer. Time is linear in its length."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from assay.verify.structured.find import NoValue, containers, load_json, whole_json

DIGITS = r"(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})"
_NUMBER = rf"[+-]?{DIGITS}(?:[eE][+-]?[0-9]{{1,3}})?"
_NUMBERS = re.compile(rf"(?<![0-9A-Za-z_.])({_NUMBER})(?![0-9A-Za-z_])")
# What may stand between the numbers of one box or point; a word or a new line separates.
_JOINT = re.compile(r"(?:[ \t,;()\[\]]|</?(?:box|point)>|[xywh][12]?\s?[=:])*")


def number_groups(text: str, size: int) -> list[tuple[float, ...]]:
    """Return every group of ``size`` numbers in ``text``, in order, as ``[1, 2]``, ``(1,2),(3,4)`` or ``x=1, y=2``.

    Numbers of one group have only blanks, commas, brackets or their names between them; a run of another length than a
    multiple of ``size`` gives none. ``nan`` and ``inf`` are no numbers.
    """
    groups: list[tuple[float, ...]] = []
    run: list[float] = []
    end = -1
    for number in _NUMBERS.finditer(text):
        if run and not _JOINT.fullmatch(text, end, number.start()):
            groups += _cut(run, size)
            run = []
        run.append(float(number[1]))
        end = number.end()
    return groups + _cut(run, size)


def _cut(run: list[float], size: int) -> list[tuple[float, ...]]:
    if len(run) % size:
        return []
    return [tuple(run[i : i + size]) for i in range(0, len(run), size)]


def read_coordinates(text: str, size: int, keys: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the groups of ``size`` numbers that ``text`` gives, in order.

    Those of a fenced block in JSON, or of the whole where it is JSON, else those of every JSON array and object in the
    text; where they hold none, those written in the text. In JSON a group is an array of numbers, alone, in an array of
    arrays, or under one of ``keys`` in an object.
    """
    try:
        todo = [whole_json(text)]
    except NoValue:
        todo = []
        for start, end in containers(text):
            with suppress(NoValue):
                todo.append(load_json(text[start:end]))
        todo.reverse()
    found: list[tuple[float, ...]] = []
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            named = [node[key] for key in keys if key in node]
            todo.extend(named[:1] or reversed(list(node.values())))
        elif isinstance(node, list):
            if len(node) == size and all(is_number(item) for item in node):
                found.append(tuple(to_float(item) for item in node))
            else:
                todo.extend(reversed(node))
    return found or number_groups(text, size)


def is_number(value: Any) -> bool:
    """Say whether ``value`` is an integer or a float (a boolean is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_float(value: float) -> float:
    """Return ``value`` as a float, infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def finite_tuple(value: Any, size: int) -> tuple[float, ...] | None:
    """Return ``size`` finite numbers of a reference as a tuple, ``None`` if it is anything else."""
    if isinstance(value, list | tuple) and len(value) == size and all(is_number(item) for item in value):
        numbers = tuple(to_float(item) for item in value)
        return numbers if all(math.isfinite(n) for n in numbers) else None
    return None
