"""Functions that are called with arguments and whose values are compared, outside of the program's process."""

from __future__ import annotations

import ast
from typing import Any

from assay.sandbox import Limits, Program
from assay.verify.code.reference import CallTests
from assay.verify.code.results import Abstain, Case, brief, ending
from assay.verify.code.settings import Settings
from assay.verify.code.values import same_value

COMPARING = Limits(cpu_seconds=20, wall_seconds=60)


def judge_calls(tests: CallTests, program: Program, settings: Settings) -> list[Case]:
    """Call the function of ``program`` with each test's arguments; raise Abstain if that cannot be done.

    All calls share a process and its limits. If the process ends within one, that test has failed, and the rest go on
    in a new process where all tests are wanted.
    """
    function = _locate(program.source, tests.function)
    cases: list[Case] = []
    spent = 0.0
    while len(cases) < len(tests.calls):
        left = tests.calls[len(cases) :]
        if spent > settings.total:
            cases.append(
                Case(f"test {len(cases) + 1}", False, f"not run: it took more than {settings.total:g} s so far")
            )
            break
        done = settings.box.call(program, function, [(args, {}) for args, _ in left], settings.limits)
        if done.outcome.failed_here:
            raise Abstain(f"the sandbox failed: {done.outcome.reason}")
        spent += done.outcome.cpu_seconds
        for (args, expected), call in zip(left, done.calls, strict=False):
            shown = f"{tests.function}({', '.join(map(brief, args))})"
            if not call.returned:
                passed, said = False, f"{shown} raised {call.exception}"
            else:
                passed = _same(call.value, expected, args, tests.wrapped, settings)
                said = "" if passed else f"{shown} gave {brief(call.value)}, expected {brief(expected)}"
            cases.append(Case(f"test {len(cases) + 1}", passed, said, call.cpu_seconds))
            if settings.stop and not passed:
                return cases
        if len(done.calls) == len(left):
            break
        args = left[len(done.calls)][0]
        shown = f"{tests.function}({', '.join(map(brief, args))})"
        cases.append(Case(f"test {len(cases) + 1}", False, f"{shown}: {ending(done.outcome)}"))
        if settings.stop:
            break
    return cases


def _same(value: Any, expected: Any, args: Any, wrapped: bool, settings: Settings) -> bool:
    if settings.comparing is not None:
        return _ask(value, expected, args, settings)
    wanted = [expected, expected[0]] if wrapped else [expected]
    return any(same_value(value, one, settings.values, settings.relative, settings.absolute) for one in wanted)


def _ask(value: Any, expected: Any, args: Any, settings: Settings) -> bool:
    """Have the task's own comparer decide, in a process of its own."""
    comparing = settings.comparing or {}
    program = Program(str(comparing["source"]), packages=tuple(comparing.get("packages", ())))
    function = str(comparing.get("function", "same"))
    done = settings.box.call(program, function, [((value, expected, list(args)), {})], COMPARING)
    if done.calls and done.calls[0].returned:
        return bool(done.calls[0].value)
    if not done.outcome.failed_here:
        # On the expected value it has to work; if it does, the program's value was to blame.
        again = settings.box.call(program, function, [((expected, expected, list(args)), {})], COMPARING)
        if again.calls and again.calls[0].returned:
            return False
    raise Abstain(f"the task's comparer failed: {done.calls[0].exception if done.calls else done.outcome.reason}")


def _locate(source: str, function: str) -> str:
    """Return ``function``, or ``Solution.function`` where the program defines it as a method of that class."""
    if "." in function:
        return function
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return function
    methods = ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return function
        inside = node.body if isinstance(node, ast.ClassDef) and node.name == "Solution" else []
        if any(isinstance(inner, ast.FunctionDef) and inner.name == function for inner in inside):
            methods = f"Solution.{function}"
    return methods or function
