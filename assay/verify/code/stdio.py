"""Programs that read standard input and write standard output."""

from __future__ import annotations

from assay.sandbox import Outcome, Program
from assay.verify.code.checker import check_output
from assay.verify.code.interactive import converse
from assay.verify.code.reference import TextTests
from assay.verify.code.results import Abstain, Case, brief_bytes, ending
from assay.verify.code.settings import Settings
from assay.verify.code.text import difference, same_text


def judge_text(tests: TextTests, program: Program, settings: Settings) -> list[Case]:
    """Run ``program`` once for each input, and compare what it wrote; raise Abstain if that cannot be done.

    A program that does not end with exit code 0 has failed the test, whatever it wrote.
    """
    cases: list[Case] = []
    spent = 0.0
    for number, (given, expected) in enumerate(tests.pairs, 1):
        name = f"test {number}"
        if spent > settings.total:
            cases.append(
                Case(name, False, f"not run: the program took more than {settings.total:g} s for those before")
            )
            break
        if settings.interactor is not None:
            passed, said, seconds = converse(
                settings.interactor, program, given, expected, settings.limits, settings.box
            )
        else:
            outcome = settings.box.run(program, given, settings.limits)
            if outcome.failed_here:
                raise Abstain(f"the sandbox failed: {outcome.reason}")
            passed, said = _compare(outcome, given, expected, settings)
            seconds = outcome.cpu_seconds
            if outcome.status == "compile_error":
                return [Case("compiles", False, said)]
        cases.append(Case(name, passed, said, seconds))
        spent += seconds
        if settings.stop and not passed:
            break
    return cases


def _compare(outcome: Outcome, given: str, expected: str, settings: Settings) -> tuple[bool, str]:
    shown = f"input {brief_bytes(given)}" if given.strip() else "no input"
    if outcome.status != "ok":
        return False, f"{shown}: {ending(outcome)}"
    if settings.checker is not None:
        passed, said = check_output(settings.checker, given, outcome.stdout, expected, settings.box)
        if passed:
            return True, ""
        return False, f"{shown}: got {brief_bytes(outcome.stdout)}, refused by the checker{': ' + said if said else ''}"
    got = outcome.stdout.decode("utf-8", "replace")
    # Line ends are no part of an answer, whatever system the tests were made on.
    got, expected = got.replace("\r\n", "\n"), expected.replace("\r\n", "\n")
    if same_text(got, expected, settings.text, settings.relative, settings.absolute):
        return True, ""
    where = difference(got, expected)
    return False, f"{shown}: got {brief_bytes(got)}, expected {brief_bytes(expected)}{where}"
