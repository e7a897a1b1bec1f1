"""Tests of a specification in both directions: what it has to admit and accept, and what it has to reject.

A positive test is an input with its right output; a negative one the same input with a wrong output. Wrong outputs come
from programs with a fault that shows on some positive tests and not on all: one that shows on none has none to show,
and one that shows on all is broken, whose outputs any specification rejects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from assay.verify.formal.backends import WORKERS
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.run import FUEL
from assay.verify.formal.imperative.syntax import BadProgram, written
from assay.verify.formal.imperative.variants import variants
from assay.verify.isolate.workers import Failure

Case = tuple[list[Any], list[Any]]
"""Inputs and outputs."""
SECONDS = 20.0
TRIED = 200
"""Syntactic variants that are tried, at most."""
FROM_CODE, FULL = 8, 10
"""Negative tests for each positive one: from programs at most, and in all."""


class Broken(Exception):
    """The tests could not be run, which says nothing of what is tested."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A faulty program, the share of positive tests it passes, and what it returns on each, or why it does not."""

    source: str
    rate: float
    outputs: tuple[Any, ...]

    @property
    def kept(self) -> bool:
        return 0 < self.rate < 1


def outputs(source: str, inputs: Sequence[Sequence[Any]], fuel: int = FUEL) -> list[Any]:
    """Return what a program returns on each of many inputs: a list of values, or the reason it fails as text.

    Raises:
        BadProgram: it is no program that can be run.
        Broken: the machine failed.
    """
    found = WORKERS.call("execute", source, [list(x) for x in inputs], fuel, seconds=SECONDS)
    return list(_told(found, len(inputs), "outputs"))


def _enough(source: str, inputs: Sequence[Sequence[Any]]) -> int:
    """Steps that a variant of a program may take: ten times as many as the program itself."""
    found = WORKERS.call("execute", source, [list(x) for x in inputs], FUEL, seconds=SECONDS)
    if isinstance(found, Failure) or "error" in found:
        raise Broken(f"the right program cannot be run: {found}")
    return 10 * int(found["steps"]) + 100


def truths(source: str, side: str, cases: Sequence[Sequence[Any]]) -> list[bool | None]:
    """Say of each case whether ``requires`` (of inputs) or ``ensures`` (inputs, then outputs) holds; ``None``: untold.

    Raises:
        BadProgram, Broken: as :func:`outputs`.
    """
    found = _told(WORKERS.call("judged", source, side, [list(c) for c in cases], seconds=SECONDS), len(cases), "values")
    return [x if isinstance(x, bool) else None for x in found]


def _told(found: Any, count: int, key: str) -> Any:
    if isinstance(found, Failure):
        if found.own:
            return [found.reason] * count
        raise Broken(found.reason)
    if "error" in found:
        raise BadProgram(found["error"])
    return found[key]


def tried(source: str, positive: Sequence[Case], fuel: int = FUEL) -> Variant:
    """Return a faulty program with what it returns on positive tests; one that cannot be run passes none."""
    try:
        got = outputs(source, [x for x, _ in positive], fuel)
    except BadProgram as error:
        got = [str(error)] * len(positive)
    right = sum(g == y for g, (_, y) in zip(got, positive, strict=True))
    return Variant(source, right / max(len(positive), 1), tuple(got))


def negatives(source: str, positive: Sequence[Case], semantic: Sequence[str] = ()) -> list[Case]:
    """Return wrong outputs for the inputs of positive tests, ten for each of these.

    1. of ``semantic`` variants of the program, such as people or models write; 2. of its syntactic ones, together at
    most eight for each positive test, from variants that pass some positive tests and not all; 3. of right outputs with
    one thing changed, input by input, until there are enough.

    Raises:
        BadProgram, Broken: as :func:`outputs`.
    """
    fuel = _enough(source, [x for x, _ in positive])
    found: dict[str, Case] = {}
    syntactic = (written(p) for p in islice(variants(parse(source)), TRIED))
    for one in chain(semantic, syntactic):
        if len(found) >= FROM_CODE * len(positive):
            break
        variant = tried(one, positive, fuel)
        for (x, right), y in zip(positive, variant.outputs if variant.kept else (), strict=False):
            if isinstance(y, list) and y != right and len(found) < FROM_CODE * len(positive):
                found.setdefault(repr((x, y)), (x, y))
    changed = [(x, perturbed(y)) for x, y in positive]
    while len(found) < FULL * len(positive) and changed:
        left = []
        for x, more in changed:
            other = next((y for y in more if repr((x, y)) not in found), None)
            if other is not None and len(found) < FULL * len(positive):
                found[repr((x, other))] = (x, other)
                left.append((x, more))
        changed = left
    return list(found.values())


def perturbed(outputs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield outputs with one value changed, by its type; none of them equals what it was made from."""
    for i, value in enumerate(outputs):
        seen = [value]
        for other in _others(value):
            if other not in seen:
                seen.append(other)
                yield [*outputs[:i], other, *outputs[i + 1 :]]


def _others(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + d for step in (1, 2, 5, 10, 100) for d in (step, -step))
        yield from (-value, 0, 2 * value, value // 2)
    else:
        yield from (value[:-1], [*value, 0], value[::-1], [], [*value, *value])
        yield from ([*value[:i], value[i] + d, *value[i + 1 :]] for i in range(len(value)) for d in (1, -1))
        yield from ([*value[:i], *value[i + 1 :]] for i in range(len(value)))
        yield from ([*value, x] for x in (1, -1, 2, 7))
