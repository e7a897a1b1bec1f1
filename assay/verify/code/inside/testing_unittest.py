"""A file of unittest cases, or of test functions without arguments, that imports the program."""

from __future__ import annotations

import sys
import types
import unittest
from typing import Any

from assay.verify.code.inside import testing
from assay.verify.code.inside.remote import Unsupported
from assay.verify.code.inside.testing import FILE, Session


class _Result(unittest.TestResult):
    """Reports each test when it is over."""

    def __init__(self, session: Session):
        super().__init__()
        self._session, self._errors = session, {}  # type: ignore[var-annotated]
        self.over = False

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self._session.ready()
        self._errors[id(test)] = None

    def _note(self, test: Any, err: Any) -> None:
        if isinstance(err[1], Unsupported):
            raise err[1]
        key = id(getattr(test, "test_case", test))
        if key in self._errors:
            self._errors[key] = self._errors[key] or err[1]
        else:
            self._session.result(str(test), False, self._session.said(err[1]))

    def addError(self, test: Any, err: Any) -> None:
        self._note(test, err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._note(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        if id(test) in self._errors:
            self._errors[id(test)] = unittest.SkipTest(reason)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._errors[id(test)] = AssertionError("it should have failed")

    def stopTest(self, test: Any) -> None:
        error = self._errors.pop(id(test), None)
        name = test.id().removeprefix("tests.")
        if isinstance(error, unittest.SkipTest):
            self._session.result(name, None, f"skipped: {error}")
        else:
            self._session.result(name, error is None, "" if error is None else self._session.said(error))


def run_unittest(session: Session) -> None:
    session.proxy()
    module = types.ModuleType("tests")
    module.__dict__.update(session.namespace("tests"))
    module.__dict__["__file__"] = FILE
    sys.modules["tests"] = module
    exec(compile(session.plan["source"], FILE, "exec"), module.__dict__)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    functions = [v for k, v in vars(module).items() if k.startswith("test") and isinstance(v, types.FunctionType)]
    suite.addTests(unittest.FunctionTestCase(function) for function in functions if not function.__code__.co_argcount)
    suite.run(_Result(session))


def main(plan: dict[str, Any]) -> None:
    testing.main(plan, run_unittest)
