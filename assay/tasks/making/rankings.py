"""Strategies that rank programs and tests by which program passes which test: as source, run in the sandbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.errors import RunError

COUNTED = '''def rank(passed):
    """Scores of programs and of tests; passed[s][t] says whether program s passes test t."""
    programs = [sum(row) for row in passed]
    tests = [sum(column) for column in zip(*passed)]
    return programs, tests
'''
"""Programs by the tests they pass, tests by the programs they accept: what evolution begins with."""
DISCRIMINATING = '''def rank(passed):
    """Scores of programs and of tests; passed[s][t] says whether program s passes test t."""
    programs = [sum(row) / len(row) for row in passed]

    def mean(values):
        return sum(values) / len(values) if values else 0.0

    tests = [
        mean([q for q, ok in zip(programs, column) if ok]) - mean([q for q, ok in zip(programs, column) if not ok])
        for column in zip(*passed)
    ]
    return programs, tests
'''
"""The strategy that EvoSyn reports: tests that good programs pass and bad ones fail."""
_HARNESS = """
import json as _json, sys as _sys
_out = []
for _m in _json.load(_sys.stdin):
    _p, _t = rank([list(row) for row in _m])
    _out.append([[float(x) for x in _p], [float(x) for x in _t]])
print(_json.dumps(_out))
"""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores of S programs and of T tests, larger is better."""

    programs: np.ndarray
    tests: np.ndarray

    @property
    def best(self) -> int:
        """The first of the programs with the highest score."""
        return int(self.programs.argmax())

    def order(self) -> list[int]:
        """Return the tests, best first, equal ones in their order."""
        return np.argsort(-self.tests, kind="stable").tolist()


def ranked(source: str, tables: Sequence[np.ndarray], seconds: float = 10.0) -> list[Ranking] | str:
    """Return what a strategy says of each table ``(S, T)`` of passes, or in a line why it cannot be used.

    Args:
        source: Python that defines ``rank(passed)``, which returns the scores of programs and of tests.
        tables: which program passes which test.
        seconds: of processor time, for all tables.

    Raises:
        RunError: the sandbox itself failed.
    """
    from assay.sandbox import Limits, Program, sandbox

    given = json.dumps([np.asarray(table, dtype=int).tolist() for table in tables])
    outcome = sandbox().run(Program(source + _HARNESS), given.encode(), Limits(seconds, 3 * seconds))
    if outcome.failed_here:
        raise RunError(f"the sandbox failed at a strategy: {outcome.reason}")
    if outcome.status != "ok":
        said = outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return "; ".join([outcome.reason, *said])[:300]
    try:
        made = [
            Ranking(np.asarray(p, dtype=float), np.asarray(t, dtype=float))
            for p, t in json.loads(outcome.stdout.decode())
        ]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return "what it prints is not what it returns"
    if len(made) != len(tables):
        return "what it prints is not what it returns"
    for table, one in zip(tables, made, strict=True):
        if (one.programs.shape, one.tests.shape) != ((table.shape[0],), (table.shape[1],)):
            return "it does not score every program and every test"
        if not (np.isfinite(one.programs).all() and np.isfinite(one.tests).all()):
            return "a score is not finite"
    return made
