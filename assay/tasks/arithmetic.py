"""Addition, subtraction and multiplication of whole numbers, worked as at school."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

Operation = Literal["addition", "subtraction", "multiplication"]

ALPHABET = "0123456789+-*=()\n"
"""Every character of compact prompts and solutions."""

MOST_DIGITS = 4000
"""Of a product; from 4,300 on Python refuses to write a number out."""

_SYMBOL = {"addition": "+", "subtraction": "-", "multiplication": "*"}


@part("tasks", "arithmetic")
@dataclass(frozen=True, slots=True)
class Arithmetic:
    r"""Endless problems such as ``57+86=``, answered by the number or by a scratchpad that ends in it.

    A scratchpad has one step per line and the bare answer on the last, so that reading the last line reads the answer:

    - addition, columns from the right with the carry last: ``7+6=13\n5+8+1=14\n143``;
    - subtraction, ten added to the upper digit where it borrows, the borrow taken last: ``16-7=9\n8-5-1=2\n29``;
    - multiplication, partial products and their sum: ``57*6=342\n57*80=4560\n342+4560=4902\n4902``.

    Subtraction and multiplication take more than two terms from left to right.

    Args:
        seed: >= 0.
        operation: ``addition``, ``subtraction`` or ``multiplication``.
        digits: most digits of a term; each term's length is uniform over ``[min_digits, digits]``.
        min_digits: fewest digits of a term.
        terms: numbers per problem, at least 2.
        scratchpad: share of the solutions that show their steps (``true`` for all); the others only state the answer.
        style: ``compact``, or ``words`` for pretrained models.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    operation: Operation = "addition"
    digits: int = 2
    min_digits: int = 1
    terms: int = 2
    scratchpad: float = 0.0
    style: Literal["compact", "words"] = "compact"

    def __post_init__(self) -> None:
        check_seed("tasks 'arithmetic'", self.seed)
        if not 1 <= self.min_digits <= self.digits:
            raise UsageError(
                f"tasks 'arithmetic': min_digits {self.min_digits} and digits {self.digits} must satisfy "
                "1 <= min_digits <= digits"
            )
        if self.terms < 2:
            raise UsageError(f"tasks 'arithmetic': terms {self.terms} must be at least 2")
        if self.digits * self.terms > MOST_DIGITS:
            raise UsageError(
                f"tasks 'arithmetic': digits {self.digits} times terms {self.terms} must be at most {MOST_DIGITS:,}, "
                "for Python writes no longer numbers"
            )
        if not 0 <= self.scratchpad <= 1:
            raise UsageError(f"tasks 'arithmetic': scratchpad {self.scratchpad} must be in [0, 1]")

    @property
    def size(self) -> None:
        return None

    @property
    def alphabet(self) -> str:
        """Every character of compact prompts and solutions."""
        return ALPHABET

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        rng = generator(self.seed, index)
        numbers = self._numbers(rng)
        symbol = _SYMBOL[self.operation]
        if self.style == "compact":
            prompt = symbol.join(map(str, numbers)) + "="
        else:
            how = (
                "Work step by step and put only the final number on the last line."
                if self.scratchpad
                else "Reply with the number only."
            )
            prompt = f"What is {f' {symbol} '.join(map(str, numbers))}? {how}"
        answer = _reduce(self.operation, numbers)
        shown = self.scratchpad >= 1 or (self.scratchpad > 0 and rng.random() < self.scratchpad)
        steps = work(self.operation, numbers) if shown else []
        return Task(
            id=f"{self.operation}/{self.seed}/{index}",
            prompt=prompt,
            reference=str(answer),
            kind="exact" if self.style == "compact" else "number",
            solution="\n".join([*steps, str(answer)]),
            meta={"source": "arithmetic", "operation": self.operation, "difficulty": max(len(str(n)) for n in numbers)},
        )

    def _numbers(self, rng: np.random.Generator) -> list[int]:
        # One draw for everything: calling the generator costs more than the arithmetic.
        draws = iter(rng.random(self.terms * (self.digits + 1)).tolist())
        numbers = []
        for _ in range(self.terms):
            length = self.min_digits + int(next(draws) * (self.digits - self.min_digits + 1))
            number = int(10 * next(draws)) if length == 1 else 1 + int(9 * next(draws))
            for _ in range(length - 1):
                number = 10 * number + int(10 * next(draws))
            numbers.append(number)
        return numbers


def _reduce(operation: Operation, numbers: list[int]) -> int:
    if operation == "addition":
        return sum(numbers)
    total = numbers[0]
    for n in numbers[1:]:
        total = total - n if operation == "subtraction" else total * n
    return total


def work(operation: Operation, numbers: list[int]) -> list[str]:
    """Return the steps of a scratchpad, without the final answer."""
    if operation == "addition":
        return _add(numbers)
    steps: list[str] = []
    total = numbers[0]
    for i, n in enumerate(numbers[1:], 1):
        pair = _subtract(total, n) if operation == "subtraction" else _multiply(total, n)
        total = total - n if operation == "subtraction" else total * n
        steps += pair
        # An intermediate total is written out, since the next pair starts from it.
        if i < len(numbers) - 1:
            steps.append(str(total))
    return steps


def _digits(number: int) -> list[int]:
    return [int(d) for d in reversed(str(number))]


def _add(numbers: list[int]) -> list[str]:
    columns = [_digits(n) for n in numbers]
    steps, carry = [], 0
    for place in range(max(map(len, columns))):
        column = [c[place] for c in columns if place < len(c)] + ([carry] if carry else [])
        steps.append(f"{'+'.join(map(str, column))}={sum(column)}")
        carry = sum(column) // 10
    return steps


def _subtract(a: int, b: int) -> list[str]:
    if a < 0:
        # -5-3 = -(5+3)
        return [f"-({-a}+{b})", *_add([-a, b])]
    if a < b:
        return [f"-({b}-{a})", *_subtract(b, a)]
    upper, lower = _digits(a), _digits(b)
    steps, borrow = [], 0
    for place, digit in enumerate(upper):
        taken = ([lower[place]] if place < len(lower) else []) + ([borrow] if borrow else [])
        borrow = int(digit < sum(taken))
        left = digit + 10 * borrow
        steps.append(f"{'-'.join(map(str, [left, *taken]))}={left - sum(taken)}")
    return steps


def _multiply(a: int, b: int) -> list[str]:
    parts = [d * 10**place for place, d in enumerate(_digits(b)) if d] or [0]
    steps = [f"{a}*{p}={a * p}" for p in parts]
    if len(parts) > 1:
        steps.append(f"{'+'.join(str(a * p) for p in parts)}={a * b}")
    return steps
