"""A file for pytest that imports the program."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from assay.verify.code.inside import testing
from assay.verify.code.inside.remote import Unsupported
from assay.verify.code.inside.testing import Failed, Session


class _Plugin:
    def __init__(self, session: Session, skip: type[BaseException]):
        self._session, self._skip = session, skip
        self.unsupported: BaseException | None = None
        self.broken = ""
        self._errors: dict[str, tuple[bool | None, str]] = {}

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        if self.unsupported is None:
            self._session.ready()

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, Unsupported):
            self.unsupported = error
        if error is not None and item.nodeid not in self._errors:
            # By pytest's own class, which no exception of the program's can be of.
            passed = None if isinstance(error, self._skip) else False
            self._errors[item.nodeid] = (passed, self._session.said(error))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if getattr(report, "wasxfail", None) is not None and report.when == "call":
            self._errors[report.nodeid] = (True if report.passed else None, "")
        elif report.failed and report.nodeid not in self._errors:
            self._errors[report.nodeid] = (False, str(report.longrepr)[:300])

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        passed, said = self._errors.pop(nodeid, (True, ""))
        with suppress(Failed):
            self._session.result(nodeid.partition("::")[2], passed, said)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.broken = " ".join(str(report.longrepr)[-300:].split())


def run_pytest(session: Session) -> None:
    import pytest

    session.proxy()
    with open("program_tests.py", "w") as file:
        file.write(session.plan["source"])
    plugin = _Plugin(session, pytest.skip.Exception)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--import-mode=importlib", "--color=no"]
    options += ["-x"] if session.plan["stop"] else []
    pytest.main([*options, "program_tests.py"], plugins=[plugin])
    if plugin.unsupported is not None:
        raise plugin.unsupported
    if plugin.broken:
        raise RuntimeError(plugin.broken)


def main(plan: dict[str, Any]) -> None:
    testing.main(plan, run_pytest)
