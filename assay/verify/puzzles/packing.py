"""Choosing among numbers: subset sum, knapsack, bin packing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.puzzles.reading import find_label, integers, labels, shown
from assay.verify.text.compare import parse_number
from assay.verify.text.exact import shorten


def _number(value: Any) -> Fraction:
    number = parse_number(str(value)) if not isinstance(value, bool) else None
    if number is None:
        raise ValueError(f"{value!r} is no number")
    return number


@part("verify", "subset_sum")
@dataclass(frozen=True, slots=True)
class SubsetSum(Puzzle):
    """Right iff the integers of the answer are among the given ones, each as often as given, and add up to the target.

    ``task.reference`` is ``{"numbers": [...], "target": t}``; the empty subset is not an answer. ``parts``: ``given``,
    the share of the answer's numbers that may be used; ``sum``.
    """

    shape: ClassVar[str] = "{'numbers': [...], 'target': t}"

    def read(self, reference: Mapping[str, Any]) -> tuple[Counter[int], int]:
        return Counter(int(n) for n in reference["numbers"]), int(reference["target"])

    def check(self, puzzle: tuple[Counter[int], int], answer: str) -> Verdict:
        given, target = puzzle
        # Of "1 + 5 = 6" the left side is the subset.
        chosen = integers(answer.partition("=")[0].replace("+", " "))
        if not chosen:
            raise BadAnswer("no numbers in the answer")
        extra = Counter(chosen) - given
        complaint = (
            f"{shown(next(iter(extra)))} is not given{' so often' if next(iter(extra)) in given else ''}"
            if extra
            else ""
        )
        total = sum(chosen)
        if total != target and not complaint:
            complaint = f"adds up to {shown(total)}, not {shown(target)}"
        allowed = 1 - extra.total() / len(chosen)
        return self.verdict(complaint, 0.5 * allowed, {"given": allowed, "sum": float(total == target)})


@dataclass(frozen=True, slots=True)
class Sack:
    """Weight and value of each item by name, the capacity, and the value that has to be reached."""

    items: Mapping[str, tuple[Fraction, Fraction]]
    capacity: Fraction
    least: Fraction


@part("verify", "knapsack")
@dataclass(frozen=True, slots=True)
class Knapsack(Puzzle):
    """Right iff the items of the answer fit together and are worth enough.

    ``task.reference`` is ``{"items": {name: [weight, value]}, "capacity": c, "at_least": v}``; items given as a list
    are named ``0, 1, ...``. The answer lists names, each once. ``parts``: ``fits``; ``value``, the value reached over
    ``v``.
    """

    shape: ClassVar[str] = "{'items': {name: [weight, value]}, 'capacity': c, 'at_least': v}"

    def read(self, reference: Mapping[str, Any]) -> Sack:
        given = reference["items"]
        pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
        items = {str(name): (_number(weight), _number(value)) for name, (weight, value) in pairs}
        return Sack(items, _number(reference["capacity"]), _number(reference["at_least"]))

    def check(self, puzzle: Sack, answer: str) -> Verdict:
        chosen: list[str] = []
        for word in labels(answer):
            name = find_label(word, puzzle.items)
            if name is None:
                raise BadAnswer(f"{shorten(word, 30)!r} is no item")
            if name in chosen:
                raise BadAnswer(f"takes {name} twice")
            chosen.append(name)
        weight = sum((puzzle.items[name][0] for name in chosen), Fraction())
        value = sum((puzzle.items[name][1] for name in chosen), Fraction())
        complaint = ""
        if weight > puzzle.capacity:
            complaint = f"weighs {float(weight):g}, the capacity is {float(puzzle.capacity):g}"
        elif value < puzzle.least:
            complaint = f"is worth {float(value):g}, at least {float(puzzle.least):g} is asked"
        fits = float(weight <= puzzle.capacity)
        reached = float(min(Fraction(1), max(Fraction(), value / puzzle.least))) if puzzle.least > 0 else 1.0
        return self.verdict(complaint, fits * reached, {"fits": fits, "value": reached})


@dataclass(frozen=True, slots=True)
class Bins:
    sizes: Counter[int]
    capacity: int
    most: int


@part("verify", "bin_packing")
@dataclass(frozen=True, slots=True)
class BinPacking(Puzzle):
    """Right iff the bins hold exactly the given sizes, none is too full, and there are not too many.

    ``task.reference`` is ``{"sizes": [integers], "capacity": c, "bins": k}``. The answer has one bin in each pair of
    brackets (``[[4, 6], [7, 3]]``), else one on each line, what stands before a colon being its name. ``parts``:
    ``packed``, the share of the given sizes that are in a bin; ``fits``, the share of bins not too full; ``bins``.
    """

    shape: ClassVar[str] = "{'sizes': [...], 'capacity': c, 'bins': k}"

    def read(self, reference: Mapping[str, Any]) -> Bins:
        sizes = Counter(int(n) for n in reference["sizes"])
        if not sizes or min(sizes) < 0:
            raise ValueError("sizes are missing or negative")
        return Bins(sizes, int(reference["capacity"]), int(reference["bins"]))

    def check(self, puzzle: Bins, answer: str) -> Verdict:
        separated = answer.replace("[", "\n").replace("]", "\n") if "[" in answer else answer
        bins = [content for line in separated.splitlines() if (content := integers(line.rpartition(":")[2]))]
        if not bins:
            raise BadAnswer("no bins in the answer")
        packed = Counter(size for content in bins for size in content)
        full = [sum(content) for content in bins if sum(content) > puzzle.capacity]
        complaint = ""
        if extra := packed - puzzle.sizes:
            complaint = f"packs {shown(next(iter(extra)))} more often than given"
        elif missing := puzzle.sizes - packed:
            complaint = f"does not pack {next(iter(missing))}"
        elif full:
            complaint = f"a bin holds {shown(full[0])}, its capacity is {puzzle.capacity}"
        elif len(bins) > puzzle.most:
            complaint = f"uses {len(bins)} bins, {puzzle.most} are allowed"
        parts: dict[str, float | None] = {
            "packed": (packed & puzzle.sizes).total() / puzzle.sizes.total(),
            "fits": 1 - len(full) / len(bins),
            "bins": float(len(bins) <= puzzle.most),
        }
        return self.verdict(complaint, sum(v for v in parts.values() if v is not None) / 4, parts)
