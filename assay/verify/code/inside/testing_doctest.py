"""Examples as an interactive session shows them."""

from __future__ import annotations

import doctest
import sys
import traceback
from typing import Any

from assay.verify.code.inside import testing
from assay.verify.code.inside.remote import Unsupported
from assay.verify.code.inside.testing import FILE, Session


def run_doctest(session: Session) -> None:
    session.proxy()
    space = session.namespace()
    for example in doctest.DocTestParser().get_examples(session.plan["source"]):
        session.ready()
        said, ok = "", False
        stream = Tee()
        previous, sys.stdout = sys.stdout, stream
        hook, sys.displayhook = sys.displayhook, _display
        try:
            exec(compile(example.source, FILE, "single"), space)
            ok = True
        except Unsupported:
            raise
        except Exception as error:
            last = traceback.format_exception_only(type(error), error)[-1]
            ok = example.exc_msg is not None and last == example.exc_msg
            said = "" if ok else session.said(error, example.source.strip())
        except BaseException as error:
            said = session.said(error, example.source.strip())
        finally:
            sys.stdout, sys.displayhook = previous, hook
        if ok and example.exc_msg is None:
            flags = sum(flag for flag, on in example.options.items() if on)
            ok = doctest.OutputChecker().check_output(example.want, stream.text, flags)
            said = (
                ""
                if ok
                else f"{example.source.strip()}; expected {example.want.strip()!r}, got {stream.text.strip()!r}"
            )
        session.result(f"line {example.lineno + 1}", ok, said)


class Tee:
    """Standard output of an example."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def _display(value: Any) -> None:
    if value is not None:
        sys.stdout.write(repr(value) + "\n")


def main(plan: dict[str, Any]) -> None:
    testing.main(plan, run_doctest)
