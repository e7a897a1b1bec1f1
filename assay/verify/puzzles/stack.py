"""A program for a stack machine, run on every test in this process: the language has no loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.text.exact import shorten

LONGEST = 10_000
"""Instructions of a program, at most."""
LARGEST = 10**12
"""A number beyond this, either way, ends the program."""
OPERATIONS = {"+": 2, "-": 2, "*": 2, "m": 2, "M": 2, "<": 2, "?": 3, "d": 1, "s": 2}
"""Numbers each instruction takes off the stack."""


class ProgramError(Exception):
    """The program has no result for an input; the message says why."""


@part("verify", "stack")
@dataclass(frozen=True, slots=True)
class StackProgram(Marked):
    """Right iff the program gives the expected number on every test; see :func:`run` for the language.

    ``task.reference`` is ``{"tests": [[{"x": 3, "y": 5}, 8], ...]}``, inputs by one-letter name and the result.
    ``parts`` are the tests, ``test 0`` and so on, 1 passed and 0 not. White space in a program is ignored.

    Args:
        score: ``all``: 1 if every test is passed, else 0; ``share``: the share of tests passed.
        rules: markers of the final answer, see :func:`~assay.verify.answer.extract.extract`; else the last line.
    """

    score: Literal["all", "share"] = "all"
    rules: tuple[Rule, ...] = ("answer_tag",)
    fallback: ClassVar[Fallback] = "line"

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            tests = [({str(k): int(v) for k, v in inputs.items()}, int(value)) for inputs, value in _tests(task)]
        except (TypeError, KeyError, ValueError, AttributeError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'tests': [[inputs, result], ...]}}")
        if not tests:
            return Verdict.abstain(f"task {task.id}: reference has no tests")
        program = "".join((extract(response, self.rules, self.fallback) or "").split())
        parts: dict[str, float | None] = {}
        complaint = ""
        for i, (inputs, expected) in enumerate(tests):
            try:
                got = run(program, inputs)
                fault = "" if got == expected else f"gives {got}, not {expected}"
            except ProgramError as error:
                fault = str(error)
            parts[f"test {i}"] = float(not fault)
            if fault and not complaint:
                given = ", ".join(f"{k} = {v}" for k, v in inputs.items())
                complaint = f"{shorten(program)!r} with {given}: {fault}"
        share = sum(v or 0.0 for v in parts.values()) / len(tests)
        passed = not complaint
        return Verdict(share if self.score == "share" else float(passed), passed, parts, complaint)


def run(program: str, inputs: Mapping[str, int]) -> int:
    """Return what ``program`` leaves on the stack.

    Each character is an instruction. A digit pushes itself, the name of an input its value. ``+ - * m M <`` replace the
    two topmost numbers a b by a+b, a-b, a*b, the smaller, the larger, 1 if a<b else 0; ``?`` replaces c a b by a if
    c is not 0, else b; ``d`` doubles the top, ``s`` swaps the two topmost.

    Raises:
        ProgramError: an unknown instruction, too few numbers for one, a number beyond :data:`LARGEST`, more than
            :data:`LONGEST` instructions, or not exactly one number left.
    """
    if len(program) > LONGEST:
        raise ProgramError(f"has more than {LONGEST} instructions")
    stack: list[int] = []
    for place, name in enumerate(program):
        if name in inputs:
            stack.append(inputs[name])
            continue
        if name in "0123456789":
            stack.append(int(name))
            continue
        takes = OPERATIONS.get(name)
        if takes is None:
            raise ProgramError(f"instruction {place + 1}, {name!r}, is unknown")
        if len(stack) < takes:
            raise ProgramError(f"instruction {place + 1}, {name!r}, finds {len(stack)} numbers and needs {takes}")
        operands = stack[-takes:]
        del stack[-takes:]
        stack += _apply(name, *operands)
        if abs(stack[-1]) > LARGEST:
            raise ProgramError(f"instruction {place + 1}, {name!r}, gives a number beyond {LARGEST}")
    if len(stack) != 1:
        raise ProgramError(f"leaves {len(stack)} numbers, not one")
    return stack[0]


def _apply(name: str, a: int, b: int = 0, c: int = 0) -> list[int]:
    match name:
        case "+":
            return [a + b]
        case "-":
            return [a - b]
        case "*":
            return [a * b]
        case "m":
            return [min(a, b)]
        case "M":
            return [max(a, b)]
        case "<":
            return [int(a < b)]
        case "?":
            return [b if a else c]
        case "d":
            return [a, a]
        case _:
            return [b, a]


def _tests(task: Task) -> list[tuple[Mapping[str, int], int]]:
    return list(task.reference["tests"])
