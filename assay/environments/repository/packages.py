"""A package made up from a seed, with one bug in it and tests that tell: those it fails and those it passes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from assay.environments.base import EnvironmentFailure
from assay.environments.repository.bugs import Bug, bugs
from assay.environments.repository.cases import CASES, draw_case
from assay.sandbox import Limits, Program, sandbox
from assay.sandbox.types import MIB
from assay.tasks.seeded import generator

NAMES = ("toolbox", "kitbag", "workbench", "satchel", "drawer", "locker")
TRIES = 60
"""Bugs that are tried: about half are of use."""
LIMITS = Limits(cpu_seconds=2, wall_seconds=10, memory=256 * MIB)
# What runs beside the package knows the calls and no answers: values go out and are compared elsewhere.
EVALUATE = """
import importlib
def evaluate(expression):
    module = expression.partition(".")[0]
    return eval(expression, {module: importlib.import_module(PACKAGE + "." + module)})
"""

Value = tuple[bool, Any]
"""Whether a call returned, and what; else the name of what it raised."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package and its bug.

    Attributes:
        name: of its folder.
        files: what the agent is given, the bug in it.
        bug: where, and what kind of mistake; ``path`` is the file it is in, ``whole`` that file without it.
        tests: calls with what they are to give, those the bug fails first.
        fails: how many of ``tests`` it fails.
        wrong: what the first of them gives with the bug.
    """

    name: str
    files: Mapping[str, str]
    bug: Bug
    path: str
    whole: str
    tests: tuple[tuple[str, Value], ...]
    fails: int
    wrong: Value

    @property
    def issue(self) -> str:
        """What somebody who met the bug would write."""
        expression, right = self.tests[0]
        return f"{expression} {said(self.wrong)}, but it should have {said(right, past=True)}."


def said(value: Value, past: bool = False) -> str:
    if value[0]:
        return f"{'returned' if past else 'returns'} {value[1]!r}"
    return f"{'raised' if past else 'raises'} {value[1]}"


def evaluated(name: str, files: Mapping[str, str | bytes], expressions: Sequence[str]) -> list[Value | None]:
    """Return what each call gives in the sandbox; ``None`` from the one on at which the program ended.

    Raises:
        EnvironmentFailure: the sandbox failed.
    """
    program = Program(f"PACKAGE = {name!r}\n{EVALUATE}", files=files)
    outcome = sandbox().call(program, "evaluate", [((one,), {}) for one in expressions], LIMITS)
    if outcome.outcome.failed_here:
        raise EnvironmentFailure(outcome.outcome.reason)
    done: list[Value | None] = [
        (True, one.value) if one.returned else (False, one.exception.partition(":")[0]) for one in outcome.calls
    ]
    return done + [None] * (len(expressions) - len(done))


def same(one: Value | None, other: Value | None) -> bool:
    """Whether two calls gave the same: values of the same types all the way down, or the same kind of exception."""
    return one is not None and other is not None and repr(one) == repr(other)


def source_of(module: str) -> str:
    return resources.files("assay.environments.repository.bank").joinpath(f"{module}.py").read_text(encoding="utf-8")


@functools.lru_cache(maxsize=1024)
def make_package(seed: int, index: int, modules: int, hidden: int, shown: int) -> Package:
    """Return package ``index`` of a seed.

    Args:
        modules: it has at most.
        hidden: tests of each function of the module with the bug, at least; the other modules have a third of it.
        shown: tests of each function that the agent is given, of those the bug passes.

    Raises:
        EnvironmentFailure: the sandbox failed.
    """
    rng = generator(seed, index, 3)
    chosen = [str(one) for one in rng.permutation(list(CASES))[: int(rng.integers(1, modules + 1))]]
    name = str(rng.choice(NAMES))
    files = {f"{name}/{module}.py": source_of(module) for module in chosen} | {f"{name}/__init__.py": ""}
    drawn = next((one for _ in range(TRIES) if (one := _broken(name, files, chosen, hidden, rng)) is not None), None)
    if drawn is None:
        raise EnvironmentFailure(f"none of {TRIES} bugs in package {index} of seed {seed} was of use")
    bug, path, tests, fails, wrong = drawn
    visible = {f"tests/test_{module}.py": _written(name, module, tests[fails:], shown) for module in chosen}
    broken = {**files, path: bug.put(files[path])}
    return Package(
        name, {**broken, "tests/__init__.py": "", **visible}, bug, path, files[path], tuple(tests), fails, wrong
    )


Drawn = tuple[Bug, str, list[tuple[str, Value]], int, Value]


def _broken(
    name: str, files: Mapping[str, str], chosen: Sequence[str], hidden: int, rng: np.random.Generator
) -> Drawn | None:
    """Return a bug that some tests notice and others do not, the tests that it fails first; ``None`` if it is none."""
    target = str(rng.choice(chosen))
    path = f"{name}/{target}.py"
    every = bugs(files[path])
    bug = every[int(rng.integers(len(every)))]
    calls: dict[str, None] = {}
    for module in chosen:
        for function in CASES[module]:
            for _ in range(hidden if module == target else max(1, hidden // 3)):
                calls[draw_case(module, function, rng)] = None
    expressions = list(calls)
    right = evaluated(name, files, expressions)
    wrong = evaluated(name, {**files, path: bug.put(files[path])}, expressions)
    # One that hangs, or breaks the module, says nothing of single tests.
    if None in right or None in wrong:
        return None
    failed = [i for i, (a, b) in enumerate(zip(right, wrong, strict=True)) if not same(a, b)]
    if not 2 <= len(failed) <= len(calls) // 2:
        return None
    order = [*failed, *(i for i in range(len(expressions)) if i not in set(failed))]
    tests = [(expressions[i], value) for i in order if (value := right[i]) is not None]
    first = wrong[failed[0]]
    assert first is not None
    return bug, path, tests, len(failed), first


def _written(name: str, module: str, tests: Sequence[tuple[str, Value]], shown: int) -> str:
    """Return a file of unit tests with ``shown`` tests of each function."""
    lines = ["import unittest", "", f"from {name} import {module}", "", ""]
    lines.append(f"class Test{module.title()}(unittest.TestCase):")
    numbers: dict[str, int] = {}
    for expression, (returned, value) in tests:
        function = expression.partition("(")[0].partition(".")[2]
        if expression.partition(".")[0] != module or numbers.get(function, 0) >= shown:
            continue
        numbers[function] = numbers.get(function, 0) + 1
        lines.append(f"    def test_{function}_{numbers[function]}(self):")
        if returned:
            lines.append(f"        self.assertEqual({expression}, {value!r})")
        else:
            lines += [f"        with self.assertRaises({value}):", f"            {expression}"]
        lines.append("")
    return "\n".join([*lines, "" if numbers else "    pass\n"])
