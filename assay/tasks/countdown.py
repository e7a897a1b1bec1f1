"""Countdown: reach a target with given numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

ATTEMPTS = 5_000
"""Expressions tried before a range of targets is given up; the check at construction makes this unlikely later."""


@part("tasks", "countdown")
@dataclass(frozen=True, slots=True)
class Countdown:
    r"""Endless problems such as ``4,6,61,94>309:``, each with the solution it was built from, here ``94*4-61-6``.

    Every number is used exactly once, with + - * /, and every intermediate result is a whole number >= 0. A scratchpad
    has what is joined, one step per line, and the expression on the last:
    ``94*4=376\n376-61=315\n315-6=309\n94*4-61-6``.

    Args:
        seed: >= 0.
        numbers: how many numbers are given, at least 2.
        low, high: range of the numbers, inclusive, ``low >= 1``.
        target_low, target_high: range of the target, inclusive.
        ordered: whether the numbers are given from the smallest up: then a problem has one prompt alone, and one that
            is held out comes up in no other order.
        scratchpad: share of the solutions that show their steps; the others only state the expression.
        style: ``compact``, or ``words`` for pretrained models, which asks for ``<answer>`` tags.

    Raises:
        UsageError: an option out of range, or no target in the range can be reached.
    """

    seed: int = 0
    numbers: int = 4
    low: int = 1
    high: int = 25
    target_low: int = 1
    target_high: int = 100
    ordered: bool = False
    scratchpad: float = 0.0
    style: Literal["compact", "words"] = "compact"

    def __post_init__(self) -> None:
        check_seed("tasks 'countdown'", self.seed)
        if self.numbers < 2:
            raise UsageError(f"tasks 'countdown': numbers {self.numbers} must be at least 2")
        if not 1 <= self.low <= self.high:
            raise UsageError(f"tasks 'countdown': low {self.low} and high {self.high} must satisfy 1 <= low <= high")
        if not 0 <= self.target_low <= self.target_high:
            raise UsageError(
                f"tasks 'countdown': target_low {self.target_low} and target_high {self.target_high} must satisfy "
                "0 <= target_low <= target_high"
            )
        if not 0 <= self.scratchpad <= 1:
            raise UsageError(f"tasks 'countdown': scratchpad {self.scratchpad} must be in [0, 1]")
        self._problem(_draws(self.seed, 0))

    @property
    def size(self) -> None:
        return None

    @property
    def alphabet(self) -> str:
        """Every character of compact prompts and solutions."""
        return "0123456789+-*/(),>:" + ("=\n" if self.scratchpad else "")

    def __getitem__(self, index: int) -> Task:
        draws = _draws(self.seed, check_index(index, None))
        numbers, target, expression, steps = self._problem(draws)
        if self.ordered:
            numbers = sorted(numbers)
        # Drawn last, so that the problem does not depend on how its solution is written.
        shown = steps if self.scratchpad and next(draws) < self.scratchpad else []
        if self.style == "compact":
            prompt, solution = f"{','.join(map(str, numbers))}>{target}:", expression
        else:
            prompt = (
                f"Use each of the numbers {', '.join(map(str, numbers))} exactly once, with + - * / and parentheses, "
                f"to make {target}. Put the expression between <answer> and </answer>."
            )
            solution = f"<answer>{expression}</answer>"
        return Task(
            id=f"countdown/{self.seed}/{index}",
            prompt=prompt,
            reference={"numbers": numbers, "target": target},
            kind="countdown",
            solution="\n".join([*shown, solution]),
            meta={"source": "countdown", "difficulty": self.numbers},
        )

    def _problem(self, draws: Iterator[float]) -> tuple[list[int], int, str, list[str]]:
        span = self.high - self.low + 1
        for _ in range(ATTEMPTS):
            numbers = [self.low + int(next(draws) * span) for _ in range(self.numbers)]
            target, expression, steps = _combine(numbers, draws)
            if self.target_low <= target <= self.target_high:
                return numbers, target, expression, steps
        raise UsageError(
            f"tasks 'countdown': no target in [{self.target_low}, {self.target_high}] from {self.numbers} numbers in "
            f"[{self.low}, {self.high}] among {ATTEMPTS:,} expressions; widen one of the ranges"
        )


def _draws(seed: int, index: int) -> Iterator[float]:
    rng = generator(seed, index)
    while True:
        yield from rng.random(32).tolist()


def _combine(numbers: list[int], draws: Iterator[float]) -> tuple[int, str, list[str]]:
    """Join two random terms by a random operation until one is left; return its value and text, and the joins."""
    # A term is (value, text, binding): 2 for a number, 1 for a product or quotient, 0 for a sum or difference.
    terms, steps = [(n, str(n), 2) for n in numbers], list[str]()
    while len(terms) > 1:
        a, left, tight = terms.pop(int(next(draws) * len(terms)))
        b, right, tight_right = terms.pop(int(next(draws) * len(terms)))
        op = "+-*/"[int(next(draws) * 4)]
        if op == "/" and (b == 0 or a % b):
            op = "-"
        if op == "-" and a < b:
            a, left, tight, b, right, tight_right = b, right, tight_right, a, left, tight
        binding = 0 if op in "+-" else 1
        value = a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a // b
        steps.append(f"{a}{op}{b}={value}")
        if tight < binding:
            left = f"({left})"
        if tight_right < binding or (tight_right == binding and op in "-/"):
            right = f"({right})"
        terms.append((value, f"{left}{op}{right}", binding))
    return terms[0][0], terms[0][1], steps
