"""Chains of modular arithmetic: difficulty is the number of steps, and every step is easy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

LONGEST = 100_000
"""Operations of a task, at most."""
LARGEST_MODULUS = 10**15
"""So that a uniform draw of 53 bits reaches every number below it."""


@part("tasks", "chain")
@dataclass(frozen=True, slots=True)
class Chain:
    r"""Endless problems such as ``7+5*3-2%10=``, evaluated strictly from left to right, modulo the number after ``%``.

    The solution has one step per line and the answer on the last: ``7+5=2\n2*3=6\n6-2=4\n4``.

    Args:
        seed: >= 0.
        length: most operations; the number of them is uniform over ``[min_length, length]``.
        min_length: fewest operations; ``None`` means ``length``.
        modulus: at least 2; operands and results are in ``[0, modulus)``.
        ops: the operations to choose from, any of ``+-*``; a repeated one is drawn more often.
        scratchpad: whether the solution shows its steps.
        style: ``compact``, or ``words`` for pretrained models.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    length: int = 4
    min_length: int | None = None
    modulus: int = 10
    ops: str = "+-*"
    scratchpad: bool = True
    style: Literal["compact", "words"] = "compact"

    def __post_init__(self) -> None:
        check_seed("tasks 'chain'", self.seed)
        shortest = self.length if self.min_length is None else self.min_length
        if not 1 <= shortest <= self.length:
            raise UsageError(
                f"tasks 'chain': min_length {shortest} and length {self.length} must satisfy 1 <= min_length <= length"
            )
        if self.length > LONGEST:
            raise UsageError(f"tasks 'chain': length {self.length} must be at most {LONGEST:,}")
        if not 2 <= self.modulus <= LARGEST_MODULUS:
            raise UsageError(f"tasks 'chain': modulus {self.modulus} must be in [2, {LARGEST_MODULUS:,}]")
        if not self.ops or set(self.ops) - set("+-*"):
            raise UsageError(f"tasks 'chain': ops {self.ops!r} must be made of + - *")

    @property
    def size(self) -> None:
        return None

    @property
    def alphabet(self) -> str:
        """Every character of compact prompts and solutions."""
        return "0123456789+-*%=\n"

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        draws = generator(self.seed, index).random(2 * self.length + 2).tolist()
        shortest = self.length if self.min_length is None else self.min_length
        length = shortest + int(draws[0] * (self.length - shortest + 1))
        operands = [int(u * self.modulus) for u in draws[1 : length + 2]]
        ops = [self.ops[int(u * len(self.ops))] for u in draws[self.length + 2 :][:length]]
        value, steps = operands[0], []
        for op, operand in zip(ops, operands[1:], strict=True):
            result = value + operand if op == "+" else value - operand if op == "-" else value * operand
            steps.append(f"{value}{op}{operand}={result % self.modulus}")
            value = result % self.modulus
        chain = str(operands[0]) + "".join(f"{op}{n}" for op, n in zip(ops, operands[1:], strict=True))
        if self.style == "compact":
            prompt = f"{chain}%{self.modulus}="
        else:
            prompt = (
                f"Evaluate {chain} strictly from left to right, ignoring the usual precedence, and reduce modulo "
                f"{self.modulus} after every step. Put only the final number on the last line."
            )
        return Task(
            id=f"chain/{self.seed}/{index}",
            prompt=prompt,
            reference=str(value),
            kind="exact" if self.style == "compact" else "number",
            solution="\n".join([*(steps if self.scratchpad else []), str(value)]),
            meta={"source": "chain", "difficulty": length},
        )
