"""Test inputs made from a signature or a stated format, kept when they tell programs apart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.audit.suite.formats import strategy_of
from assay.errors import UsageError

Behaviour = Hashable
"""What a program does on an input, so that two that do the same are equal; ``None``: it could not be told."""
Run = Callable[[str, Sequence[Any]], Sequence[Behaviour]]
"""Runs a program on inputs: one behaviour each, in order."""


def generate(spec: str, count: int, seed: int = 0, keep: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return up to ``count`` different inputs that ``spec`` allows, small and extreme ones among them.

    Args:
        spec: a Python signature (``def f(a: list[int], k: int)``) or a format of text, see
            :func:`assay.audit.suite.formats.strategy_of`. Of a signature an input is a list of arguments, of a format a
            text.
        count: >= 1. Fewer come back where the spec does not allow so many.
        seed: the same seed gives the same inputs under one version of hypothesis.
        keep: a further condition, e.g. the task's input validator.

    Raises:
        UsageError: the spec cannot be read, nothing meets ``keep``, or hypothesis is not installed.
    """
    try:
        import hypothesis
        from hypothesis.errors import Unsatisfiable
    except ImportError:
        raise UsageError("making test inputs needs hypothesis: pip install hypothesis") from None
    if count < 1:
        raise UsageError(f"count {count} must be at least 1")
    found: dict[str, Any] = {}
    strategy = strategy_of(spec)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=4 * count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy.filter(keep) if keep is not None else strategy)
    def collect(value: Any) -> None:
        if len(found) < count:
            found.setdefault(repr(value), value)

    try:
        collect()
    except Unsatisfiable:
        raise UsageError("no input that the spec allows meets the condition") from None
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Separation:
    """Which inputs tell programs apart.

    Attributes:
        kept: the inputs kept, with the behaviour of the right programs.
        detection: per wrong program, which of ``kept`` it fails.
        surviving: indices of the wrong programs that no input rejects.
        disputed: inputs on which right programs differ: invalid, or with more than one right output.
    """

    kept: tuple[tuple[Any, Behaviour], ...]
    detection: tuple[tuple[bool, ...], ...]
    surviving: tuple[int, ...]
    disputed: tuple[Any, ...]


def separating(
    inputs: Sequence[Any], right: Sequence[str], wrong: Sequence[str], run: Run, each: int = 1
) -> Separation:
    """Keep the inputs on which wrong programs behave unlike the right ones.

    Inputs are taken greedily, the one first that rejects most wrong programs which fewer than ``each`` kept inputs
    reject, so that few are kept. An input on which right programs differ, or one could not be run, is not used.

    Args:
        inputs: candidates, see :func:`generate`.
        right, wrong: programs; one right one at least.
        run: see :data:`Run`.
        each: inputs that shall reject each wrong program, >= 1.

    Raises:
        UsageError: no right program.
    """
    if not right:
        raise UsageError("inputs are separated by what right programs do; give one or more")
    table = [list(run(program, inputs)) for program in right]
    agreed = [len({row[i] for row in table}) == 1 and table[0][i] is not None for i in range(len(inputs))]
    known = [all(row[i] is not None for row in table) for i in range(len(inputs))]
    disputed = tuple(x for x, same, told in zip(inputs, agreed, known, strict=True) if told and not same)
    fails = [
        {i for i, got in enumerate(run(program, inputs)) if agreed[i] and got is not None and got != table[0][i]}
        for program in wrong
    ]
    missing = [min(each, len(f)) for f in fails]
    chosen: list[int] = []
    left = {i for f in fails for i in f}
    while any(missing):
        best = max(left, key=lambda i: (sum(i in f for f, m in zip(fails, missing, strict=True) if m), -i))
        left.discard(best)
        chosen.append(best)
        missing = [m - (best in f and m > 0) for f, m in zip(fails, missing, strict=True)]
    chosen.sort()
    return Separation(
        tuple((inputs[i], table[0][i]) for i in chosen),
        tuple(tuple(i in f for i in chosen) for f in fails),
        tuple(w for w, f in enumerate(fails) if not f),
        disputed,
    )


def clusters(inputs: Sequence[Any], programs: Sequence[str], run: Run) -> tuple[list[list[int]], list[Any]]:
    """Group programs that behave alike, where nobody knows which are right; return groups and inputs that split them.

    An input is kept iff it splits a group that the inputs before it left together. Groups are indices into
    ``programs``, largest first. A behaviour that could not be told splits nothing.
    """
    table = [list(run(program, inputs)) for program in programs]
    groups: list[list[int]] = [list(range(len(programs)))] if programs else []
    kept = []
    for i, value in enumerate(inputs):
        if any(row[i] is None for row in table):
            continue
        finer: list[list[int]] = []
        for group in groups:
            by: dict[Behaviour, list[int]] = {}
            for index in group:
                by.setdefault(table[index][i], []).append(index)
            finer += by.values()
        if len(finer) > len(groups):
            kept.append(value)
        groups = finer
    return sorted(groups, key=lambda g: (-len(g), g)), kept


def calls(function: str, seconds: float = 2.0) -> Run:
    """Return a :data:`Run` that calls ``function`` of Python programs in the sandbox, with lists of arguments.

    A behaviour is what was returned, the type of exception, or that it ended without an answer.
    """
    from assay.sandbox import Limits, Program, sandbox

    def run(source: str, inputs: Sequence[Any]) -> list[Behaviour]:
        found: list[Behaviour] = []
        # A program that ends, or is ended, in one call is asked for the rest in a new process.
        while len(found) < len(inputs):
            asked: list[tuple[Sequence[Any], dict[str, Any]]]
            asked = [(tuple(arguments), {}) for arguments in inputs[len(found) :]]
            out = sandbox().call(Program(source), function, asked, Limits(cpu_seconds=seconds))
            found += [
                ("returns", repr(c.value)) if c.returned else ("raises", c.exception.split(":")[0]) for c in out.calls
            ]
            if out.outcome.status == "ok":
                break
            if out.outcome.failed_here:
                found += [None] * (len(inputs) - len(found))
            elif len(found) < len(inputs):
                found.append(("ends", out.outcome.status))
        return found[: len(inputs)]

    return run


def texts(language: str = "python", seconds: float = 2.0) -> Run:
    """Return a :data:`Run` that gives programs their input as standard input, in the sandbox.

    A behaviour is the words printed, or how the program ended.
    """
    from assay.sandbox import Limits, Program, sandbox

    def run(source: str, inputs: Sequence[Any]) -> list[Behaviour]:
        outcomes = sandbox().run_many(Program(source, language), inputs, Limits(cpu_seconds=seconds))
        outcomes += outcomes[-1:] * (len(inputs) - len(outcomes))
        return [
            None if o.failed_here else ("prints", *o.stdout.split()) if o.status == "ok" else ("ends", o.status)
            for o in outcomes
        ]

    return run


def suite(run: Run, tests: Iterable[tuple[Any, Behaviour]]) -> Callable[[str], bool | None]:
    """Return whether a program passes ``tests``, inputs with the behaviour wanted, as a function of its source.

    That function gives ``None`` if nothing speaks against a program but some test could not be run.
    """
    pairs = list(tests)

    def passes(source: str) -> bool | None:
        found = list(run(source, [value for value, _ in pairs]))
        if any(got is not None and got != wanted for got, (_, wanted) in zip(found, pairs, strict=True)):
            return False
        return None if None in found else True

    return passes
