"""Programs judged by code that compares by itself: asserts, ``check(candidate)``, unittest, pytest, doctest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from assay.sandbox import Program
from assay.verify.code.apart import Report, run_apart
from assay.verify.code.reference import CodeTests
from assay.verify.code.results import Abstain, Case, ending, status_of
from assay.verify.code.settings import Settings

SHARED = "judged in one process with its tests, which it could have changed"


class Judged(NamedTuple):
    """What came of the tests.

    Attributes:
        cases: the tests that were run.
        total: how many there are.
        shared: whether they were run in one process with the program.
        whole: processor seconds of the program for all of them, and most bytes of memory.
    """

    cases: list[Case]
    total: int
    shared: bool
    whole: tuple[float, int]


def judge_asserted(
    tests: CodeTests, program: Program, settings: Settings, shared: bool, files: Mapping[str, Any]
) -> Judged:
    """Run the tests on ``program``; raise Abstain if that cannot be done.

    Args:
        shared: whether tests that stand-ins cannot serve may be run in one process with the program.
    """
    plan = {**tests.plan, "stop": settings.stop}
    report = run_apart(plan, program, settings.limits, settings.box, files, settings.total)
    together = False
    if report.unsupported:
        if not shared:
            hint = "allow_shared_process = true judges it in one process with its tests"
            raise Abstain(f"{report.unsupported}, which cannot be done apart from the program; {hint}")
        together = True
        both = {**program.files, **files}
        report = run_apart({**plan, "shared": program.source}, program, settings.limits, settings.box, both)
    return Judged(*_cases(report, tests.count, together), together, (report.cpu_seconds, report.memory))


def _cases(report: Report, count: int, together: bool) -> tuple[list[Case], int]:
    judge, program = report.judge, report.program
    assert judge is not None
    if judge.failed_here or (program is not None and program.failed_here):
        failed = judge if judge.failed_here or program is None else program
        raise Abstain(f"the sandbox failed: {failed.reason}", "infrastructure")
    gone = ending(program) if program is not None and program.status != "ok" else ""
    if report.problem:
        status = status_of(program) if program is not None else ""
        return [Case("loads", False, _said(report.problem, gone), status=status or "runtime error")], max(count, 1)
    if report.broken:
        raise Abstain(f"the tests failed by themselves: {report.broken}")
    cases = []
    for name, ok, said, how, ended in report.tests:
        status = "runtime error" if how and ok is False else ""
        if ended is not None and ok is False:
            status = status_of(ended) or status
        cases.append(Case(name, ok, _said(said, ending(ended) if ended is not None else gone), status=status))
    if not report.ended and all(case.passed is not False for case in cases):
        if gone or together:
            status = status_of(program if program is not None and gone else judge) or "runtime error"
            said = gone or ending(judge) or "the program ended the tests"
            cases.append(Case("loads", False, said, status=status))
        elif judge.status == "ok" or not report.answers:
            # The program gave the tests nothing yet that could have led them astray.
            raise Abstain(f"the tests did not run to their end: {ending(judge) or 'no reason is known'}")
        else:
            # With a right program the tests end well: what this one gave them was too much for them.
            cases.append(Case("ends", False, f"with what the program returned, the tests failed: {ending(judge)}"))
    if cases and report.answers and all(case.score is None for case in cases):
        cases.append(Case("ends", 0.0, "with what the program has, or has not, the tests skip themselves"))
    return cases, max(count, report.count)


def _said(said: str, gone: str) -> str:
    return said.replace("the program ended", gone) if gone else said
