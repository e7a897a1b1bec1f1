"""Known programs on the tests of a suite: which pass which, and what that says of the suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.audit.suite.rates import SuiteRates, ceiling, diversity, mean_correlation, suite_rates
from assay.verify.code.text import TextRule

OURS = "the sandbox failed"
"""How a reason begins that is nobody's fault but ours."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of programs that read standard input and write standard output.

    Attributes:
        statement: what is asked.
        truth: a program known to be right; its outputs are the expected ones.
        language: of ``truth`` and of all programs, see :data:`assay.sandbox.languages.LANGUAGES`.
        checker: a judge of outputs where several are right, see
            :func:`assay.verify.code.checker.check_output`; without it outputs are compared.
        compare: how, see :func:`assay.verify.code.text.same_text`.
        seconds: processor seconds of one run of a program.
    """

    statement: str
    truth: str
    language: str = "python"
    checker: Mapping[str, Any] | None = None
    compare: TextRule = "tokens"
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Test:
    """An input, the output of the right program, and why it is there."""

    __test__ = False

    input: str
    output: str
    why: str = ""


def reference(problem: Problem, tests: Sequence[Test]) -> dict[str, Any]:
    """Return ``tests`` as the reference of a task of the kind ``code``."""
    made: dict[str, Any] = {
        "inputs": [test.input for test in tests],
        "outputs": [test.output for test in tests],
        "language": problem.language,
        "time_limit": problem.seconds,
        "compare": problem.compare,
    }
    return made if problem.checker is None else {**made, "checker": dict(problem.checker)}


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one program on one test: passed, failed, or ``None`` if that could not be told; and its output."""

    passed: bool | None
    got: str


@dataclass(frozen=True, slots=True)
class Trial:
    """Right and wrong programs on the same tests.

    Attributes:
        right, wrong: a row of cells for each program, in the order they were given.
        rates: of the programs that could be told; the indices in it are those of the programs as given.
        untold: how many could not be: nothing speaks against them, but a test could not be run.
    """

    right: tuple[tuple[Cell, ...], ...]
    wrong: tuple[tuple[Cell, ...], ...]
    rates: SuiteRates
    untold: int

    @property
    def detection(self) -> NDArray[np.bool_]:
        """``(W, T)`` truth values of the wrong programs that could be told: test t rejects program w."""
        rows = [[cell.passed is False for cell in row] for row in self.wrong if _told(row)]
        return np.array(rows, dtype=bool).reshape(len(rows), -1 if rows else 0)


@dataclass(frozen=True, slots=True)
class Quality:
    """What a detection table says of its suite; see :func:`quality`.

    Attributes:
        detection: share of wrong programs that some test rejects (DR).
        accurate: whether every wrong program is rejected (the problem's VAcc).
        patterns: distinct non-zero detection vectors of the tests (DEPC), and ``ratio``, their share of all tests.
        single: mean share of the wrong programs that one test rejects.
        correlation: mean correlation of two tests; NaN where fewer than two tell programs apart.
        bound: the detection rate that so many tests of this strength and correlation reach, and ``limit``, what no
            number of such tests can pass; NaN where the correlation is.
    """

    detection: float
    accurate: bool
    patterns: int
    ratio: float
    single: float
    correlation: float
    bound: float
    limit: float


def quality(detection: ArrayLike) -> Quality:
    """Return the measures of SAGA (arXiv 2507.06920) for one problem.

    Args:
        detection: ``(W, T)`` truth values: test t rejects wrong program w; W, T >= 1.

    Raises:
        ValueError: no table, or an empty one.
    """
    table = np.asarray(detection, dtype=bool)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"quality needs a table of wrong programs by tests, got shape {table.shape}")
    patterns, ratio = diversity(table)
    single, correlation = float(table.mean()), mean_correlation(table)
    # Tests that disagree more than chance would have it are no weaker than independent ones.
    rho = float(np.clip(correlation, 0, 1)) if correlation == correlation else float("nan")
    known = rho == rho
    return Quality(
        float(table.any(1).mean()),
        bool(table.any(1).all()),
        patterns,
        ratio,
        single,
        correlation,
        ceiling(single, rho, table.shape[1]) if known else float("nan"),
        ceiling(single, rho) if known else float("nan"),
    )


def answers(problem: Problem, inputs: Sequence[str]) -> list[tuple[str | None, str]]:
    """Return for each input the right program's output, or ``None`` and why it has none.

    Raises:
        SandboxUnavailable: programs cannot be run on this machine.
    """
    made: list[tuple[str | None, str]] = []
    for outcome in _run(problem, problem.truth, inputs):
        if outcome.status == "ok":
            made.append((outcome.stdout.decode("utf-8", "replace"), ""))
        elif outcome.failed_here:
            made.append((None, f"{OURS}: {outcome.reason}"))
        else:
            made.append((None, f"the right program fails on it: {outcome.reason}"))
    return made


def trial(problem: Problem, tests: Sequence[Test], right: Sequence[str], wrong: Sequence[str]) -> Trial:
    """Run programs known to be right and known to be wrong on every test.

    A program that does not end well has failed the test. Where the sandbox or the checker fails, nothing is known of
    the program on that test.
    """
    tables = [tuple(tuple(_row(problem, tests, source)) for source in side) for side in (right, wrong)]
    kept = [[i for i, row in enumerate(table) if _told(row)] for table in tables]
    passes = [[[cell.passed is True for cell in table[i]] for i in k] for table, k in zip(tables, kept, strict=True)]
    rates = suite_rates(*passes)
    rates = SuiteRates(
        rates.accepted,
        rates.right,
        rates.rejected,
        rates.wrong,
        tuple(kept[0][i] for i in rates.false_negatives),
        tuple(kept[1][i] for i in rates.false_positives),
    )
    return Trial(tables[0], tables[1], rates, len(right) + len(wrong) - sum(map(len, kept)))


def _told(row: Iterable[Cell]) -> bool:
    passed = [cell.passed for cell in row]
    return False in passed or None not in passed


def _row(problem: Problem, tests: Sequence[Test], source: str) -> list[Cell]:
    from assay.sandbox import sandbox
    from assay.verify.code.checker import check_output
    from assay.verify.code.results import Abstain
    from assay.verify.code.text import same_text

    row = []
    for test, outcome in zip(tests, _run(problem, source, [test.input for test in tests]), strict=True):
        got = outcome.stdout.decode("utf-8", "replace")
        passed: bool | None
        if outcome.failed_here:
            passed = None
        elif outcome.status != "ok":
            passed, got = False, f"{got}[{outcome.reason}]"
        elif problem.checker is not None:
            try:
                score, _ = check_output(problem.checker, test.input, outcome.stdout, test.output, sandbox())
                passed = score >= 1
            except Abstain:
                passed = None
        else:
            passed = same_text(got, test.output, problem.compare, 1e-6, 1e-6)
        row.append(Cell(passed, got))
    return row


def _run(problem: Problem, source: str, inputs: Sequence[str]) -> list[Any]:
    from assay.sandbox import Limits, Program, sandbox

    if not inputs:
        return []
    limits = Limits(cpu_seconds=problem.seconds, wall_seconds=3 * problem.seconds)
    outcomes = sandbox().run_many(Program(source, problem.language), inputs, limits)
    # A program that does not compile has one outcome for all inputs.
    return [*outcomes, *outcomes[-1:] * (len(inputs) - len(outcomes))]
