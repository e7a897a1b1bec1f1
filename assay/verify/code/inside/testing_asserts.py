"""MBPP's form: a list of statements, each a test."""

from __future__ import annotations

from typing import Any

from assay.verify.code.inside import testing
from assay.verify.code.inside.remote import Unsupported
from assay.verify.code.inside.testing import FILE, Session


def asserts(session: Session) -> None:
    space: dict[str, Any] | None = None
    deaths = -1
    for number, source in enumerate(session.plan["sources"]):
        session.ready()
        error: BaseException | None = None
        try:
            if space is None or deaths != session.deaths:
                space, deaths = session.namespace(), session.deaths
            exec(compile(source, FILE, "exec"), space)
        except Unsupported:
            raise
        except BaseException as raised:
            error = raised
        said = "" if error is None else session.said(error, source)
        session.result(f"test {number + 1}", error is None, said)


def main(plan: dict[str, Any]) -> None:
    testing.main(plan, asserts)
