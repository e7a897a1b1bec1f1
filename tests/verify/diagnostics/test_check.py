"""What checkers find, and what hides it."""

from __future__ import annotations

import pytest
from sandbox.support import needs_sandbox

from assay.errors import RunError, UsageError
from assay.sandbox import Outcome, Sandbox
from assay.verify.diagnostics import check as module
from assay.verify.diagnostics.check import Checker, Diagnostic, check, definitions, hidden, installed

WRONG = 'def f(a: int) -> str:\n    return a\n\n\nx: int = "1"\ny = f("2")\n'
MENDED = WRONG.replace("return a", "return str(a)")


@needs_sandbox
def test_errors_that_are_mended() -> None:
    """A file with three type errors has three, and mending one takes one away."""
    pytest.importorskip("mypy")
    found = check({"m.py": WRONG, "notes.txt": "not ( python"}, "mypy")
    assert [(d.line, d.severity) for d in found] == [(2, "error"), (5, "error"), (6, "error")]
    assert len(check({"m.py": MENDED}, "mypy")) == 2
    assert check({}, "mypy") == [] == check({"a.txt": "x"})


@needs_sandbox
def test_what_pyflakes_finds() -> None:
    pytest.importorskip("pyflakes")
    files = {"a/b.py": "import os\nprint(nothing)\n", "c.py": "def f(:\n", "d.py": "x = 1\n"}
    found = check(files)
    assert found == sorted(found) and {d.code for d in found} == {"pyflakes"}
    assert [(d.path, d.line, d.severity) for d in found] == [
        ("a/b.py", 1, "warning"),
        ("a/b.py", 2, "error"),
        ("c.py", 1, "error"),
    ]
    assert found[1].column == 7 and "nothing" in found[1].message
    assert check(files) == found


def test_silence_is_no_win() -> None:
    before = {"m.py": WRONG, "n.py": "class A:\n    def g(self): pass\n    async def h(self): pass\n"}
    assert hidden(before, before) == []
    quiet = {**before, "m.py": WRONG.replace("return a", "return a  # type: ignore").replace('"1"', '"1"  # NOQA: E1')}
    assert [(d.path, d.line, d.code) for d in hidden(quiet, before)] == [
        ("m.py", 2, "suppression"),
        ("m.py", 5, "suppression"),
    ]
    assert hidden(quiet, quiet) == [] and len(hidden(quiet, {"m.py": "# noqa"})) == 1
    emptied = {**before, "n.py": "class A:\n    def g(self): pass\n"}
    assert [d.message for d in hidden(emptied, before)] == ["A.h is gone"]
    assert [d.message for d in hidden({"m.py": WRONG}, before)] == ["A is gone", "A.g is gone", "A.h is gone"]
    assert {d.severity for d in hidden({}, before)} == {"error"} and len(hidden({}, before)) == 4
    # What is no program now is the checker's to tell, and what was none has nothing to lose.
    assert hidden({**before, "n.py": "class ("}, before) == [] == hidden(before, {**before, "n.py": "class ("})
    for comment in ("# pyright: ignore", "#type:ignore[x]", "# mypy: ignore-errors", "# pylint: disable=all"):
        assert len(hidden({"a.py": f"x = 1  {comment}\n"}, {"a.py": "x = 1\n"})) == 1
    assert hidden({"a.py": "# ignore types\n"}, {}) == []


def test_definitions() -> None:
    assert definitions("def f():\n    def g(): pass\nclass A:\n    class B:\n        def h(self): pass\n") == [
        "A", "A.B", "A.B.h", "f", "f.g",
    ]  # fmt: skip
    assert definitions("def (") is None and definitions("a\0b") is None and definitions("") == []


def test_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Checker = "no-such-checker"  # type: ignore[assignment]
    with pytest.raises(UsageError, match="not installed"):
        installed(nothing)
    for outcome in (Outcome("infrastructure", reason="gone"), Outcome("timeout", reason="late")):
        monkeypatch.setattr(Sandbox, "command", lambda *_, outcome=outcome, **__: outcome)
        with pytest.raises(RunError, match=r"gone|late"):
            module.check({"a.py": ""})
    monkeypatch.setattr(Sandbox, "command", lambda *_, **__: Outcome("error", b"", b"No module", exit_code=1))
    with pytest.raises(RunError, match="No module"):
        module.check({"a.py": ""})
    said = b"a.py:3: note: see\na.py:2:4: error: bad\nother.py:1:1: error: no\nnonsense\n"
    monkeypatch.setattr(Sandbox, "command", lambda *_, **__: Outcome("error", said, exit_code=1))
    assert module.check({"a.py": ""}, "mypy") == [
        Diagnostic("a.py", 2, 4, "error", "mypy", "bad"),
        Diagnostic("a.py", 3, 1, "warning", "mypy", "see"),
    ]
