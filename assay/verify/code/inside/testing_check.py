"""HumanEval's form: ``check(candidate)`` with asserts inside, each of them a test."""

from __future__ import annotations

import ast
from typing import Any

from assay.verify.code.inside import testing
from assay.verify.code.inside.remote import Unsupported
from assay.verify.code.inside.testing import FILE, Failed, Session


class _Asserts(ast.NodeTransformer):
    """Reports every ``assert`` by number: ``try: assert ... except Exception as e: report(k, e) else: report(k)``."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Assert(self, node: ast.Assert) -> Any:
        number = len(self.found)
        self.found.append(ast.unparse(node)[:200])
        made = ast.parse(
            f"try:\n    pass\nexcept Exception as __error__:\n    __report__({number}, __error__)\n"
            f"else:\n    __report__({number})"
        ).body[0]
        assert isinstance(made, ast.Try)
        made.body = [node]
        for inner in ast.walk(made):
            if inner is not node and not hasattr(inner, "_kept"):
                ast.copy_location(inner, node)
        return made


def check(session: Session) -> None:
    tree = ast.parse(session.plan["source"])
    asserts = _Asserts()
    for node in tree.body:
        asserts.visit(node)
    ast.fix_missing_locations(tree)
    state: dict[int, bool] = {}
    said: list[str] = []
    hows: dict[int, str] = {}

    def report(number: int, error: Exception | None = None) -> None:
        state[number] = state.get(number, True) and error is None
        if error is not None:
            said.append(session.said(error, asserts.found[number]))
            hows[number], session.how = session.how, ""
            if session.plan["stop"]:
                raise Failed

    failure, entry = "", session.plan["entry"]
    space = session.namespace()
    space["__report__"] = report
    finished = False
    found = session.found(entry)
    if not found:
        failure = f"the program defines no {entry}"
    else:
        candidate = space[entry] = found[0]
        try:
            exec(compile(tree, FILE, "exec"), space)
            space["check"](candidate)
            finished = True
        except Unsupported:
            raise
        except Failed:
            pass
        except BaseException as error:
            failure = session.said(error)
    session.plan["stop"] = False
    fails = [n for n, ok in state.items() if not ok]
    for number in sorted(state):
        shown = said[0] if said and number == fails[0] else ""
        how = hows.get(number, "")
        session.link.tell({"test": f"assert {number + 1}", "ok": state[number], "said": shown, "how": how})
    if not finished and not fails:
        session.result("check", False, failure or "the tests did not run to their end")
    elif not state:
        session.result("check", finished and not fails, failure)
    elif session.link.deaths > session.deaths:
        session.result("check", False, failure or "the program ended")
    session.link.tell({"count": len(asserts.found)})


def main(plan: dict[str, Any]) -> None:
    testing.main(plan, check)
