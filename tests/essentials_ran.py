"""After the whole suite: did the test of every paper's essential run and pass?"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

Outcomes = dict[str, str]
"""How each test ended, ``passed``, ``failed`` or ``skipped``, by its id."""


class EssentialsRan:
    """Fails a run of the whole suite in which the test of an essential was neither run nor skipped with a reason."""

    def __init__(self) -> None:
        self.outcomes: Outcomes = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not whole(session.config):
            return
        from assay import catalogue

        rows = {row.id: dict(row.essentials) for row in catalogue.rows()}
        if lines := unrun(rows, self.outcomes):
            print("\n" + "\n".join(lines))
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def whole(config: pytest.Config) -> bool:
    """Whether pytest was asked for all tests, but for slow ones, in this process and those under it."""
    options = config.option
    return (
        not hasattr(config, "workerinput")
        and config.args_source == pytest.Config.ArgsSource.TESTPATHS
        and not (options.keyword or options.collectonly or options.lf or options.deselect)
        and options.markexpr in ("", "not slow")
    )


def unrun(rows: Mapping[str, Mapping[str, str]], outcomes: Mapping[str, str]) -> list[str]:
    """Return a line for each essential of which no test ran; one that was skipped says so itself."""
    known = {*outcomes, *(name.partition("[")[0] for name in outcomes)}
    return [
        f"{key}: the test of an essential did not run: {what}: {test}"
        for key, essentials in rows.items()
        for what, test in essentials.items()
        if test not in known
    ]
