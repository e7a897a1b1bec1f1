"""Programs that read standard input and write standard output."""

from __future__ import annotations

from assay.sandbox import Outcome, Program
from assay.verify.code.checker import check_output
from assay.verify.code.interactive import converse
from assay.verify.code.reference import TextTests
from assay.verify.code.results import Abstain, Case, brief_bytes, ending, status_of
from assay.verify.code.settings import Settings
from assay.verify.code.text import difference, same_text


def judge_text(tests: TextTests, program: Program, settings: Settings) -> list[Case]:
    """Run ``program`` once for each input, and compare what it wrote; raise Abstain if that cannot be done.

    A program that does not end with exit code 0 has failed the test, whatever it wrote.
    """
    cases: list[Case] = []
    spent = 0.0
    lost: set[str] = set()
    for number, (given, expected) in enumerate(tests.pairs, 1):
        name = f"test {number}"
        if settings.skips(name, lost):
            cases.append(Case(name, 0.0, "not run: its group has failed already", status="not run"))
            continue
        if spent > settings.total:
            said = f"not run: the program took more than {settings.total:g} s for those before"
            cases.append(Case(name, 0.0, said, status="not run"))
            break
        limits = settings.limits_of(tests.own[number - 1] if tests.own else {})
        if settings.interactor is not None:
            score, said, outcome = converse(settings.interactor, program, given, expected, limits, settings.box)
        else:
            outcome = settings.box.run(program, given, limits)
            if outcome.failed_here:
                raise Abstain(f"the sandbox failed: {outcome.reason}", "infrastructure")
            score, said = _compare(outcome, given, expected, settings)
        if outcome.status == "compile_error":
            return [Case("compiles", 0.0, said, outcome.cpu_seconds, outcome.memory, "compile error")]
        cases.append(Case(name, score, said, outcome.cpu_seconds, outcome.memory, status_of(outcome)))
        spent += outcome.cpu_seconds
        if settings.enough(name, score >= 1, lost):
            break
    return cases


def _compare(outcome: Outcome, given: str, expected: str, settings: Settings) -> tuple[float, str]:
    shown = f"input {brief_bytes(given)}" if given.strip() else "no input"
    if outcome.status != "ok":
        return 0.0, f"{shown}: {ending(outcome)}"
    if settings.checker is not None:
        score, said = check_output(settings.checker, given, outcome.stdout, expected, settings.box)
        if score >= 1:
            return score, ""
        judged = f"given {score:g} by the checker" if score else "refused by the checker"
        return score, f"{shown}: got {brief_bytes(outcome.stdout)}, {judged}{': ' + said if said else ''}"
    got = outcome.stdout.decode("utf-8", "replace")
    # Line ends are no part of an answer, whatever system the tests were made on.
    got, expected = got.replace("\r\n", "\n"), expected.replace("\r\n", "\n")
    if same_text(got, expected, settings.text, settings.relative, settings.absolute):
        return 1.0, ""
    where = difference(got, expected)
    return 0.0, f"{shown}: got {brief_bytes(got)}, expected {brief_bytes(expected)}{where}"
