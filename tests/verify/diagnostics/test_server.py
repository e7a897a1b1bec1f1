"""A language server: findings, places and renames of a few files, and what is refused."""

from __future__ import annotations

import pytest
from sandbox.support import needs_sandbox

from assay.errors import RunError
from assay.sandbox import Outcome, Sandbox
from assay.verify.diagnostics.check import Diagnostic, check
from assay.verify.diagnostics.places import Range, resolve
from assay.verify.diagnostics.server import (
    Refused,
    definitions,
    edited,
    path_of,
    place,
    references,
    renamed,
    served,
)

pytest.importorskip("pylsp")
pytestmark = needs_sandbox

FILES = {
    "a/__init__.py": "",
    "a/b.py": "def add(x, y):\n    return x + y\n\n\nclass Sum:\n    def go(self):\n        return add(1, 2)\n",
    "c.py": "from a.b import add as plus, add\n\n'\U0001d4b3'; print(add(1, nothing))\n",
    "notes.txt": "add",
}
OUT = Outcome("error", reason="it said nothing", stderr=b"EOFError: it has ended")
[ADD, *_] = [one.place for one in resolve("py://a.b#add:name", FILES)]


def test_what_a_server_knows() -> None:
    asked = [
        ("textDocument/definition", {"path": "c.py", "position": {"line": 2, "character": 11}}),
        ("textDocument/none", {}),
    ]
    found = served(FILES, asked)
    assert [(path, line, column, error) for path, line, column, error, _ in found.findings] == [
        ("c.py", 1, 1, False),
        ("c.py", 3, 22, True),  # in bytes
    ]
    assert "nothing" in found.findings[1][4] and isinstance(found.answers[1], Refused)
    [one] = found.answers[0]
    assert path_of(one["uri"], found.root) == "a/b.py" and place(one["range"]["start"]) == (1, 5)
    assert served(FILES, asked).findings == found.findings
    assert check(FILES, "pylsp")[1] == Diagnostic("c.py", 3, 22, "error", "pylsp", found.findings[1][4])
    assert served({"notes.txt": "x"}).findings == () and check({}, "pylsp") == []


@pytest.mark.slow
def test_where_a_name_is_used() -> None:
    assert Range("a/b.py", 1, 5, 1, 8) == ADD
    used = references(FILES, ADD)
    assert [(one.path, one.line, one.column) for one in used] == [
        ("a/b.py", 1, 5),
        ("a/b.py", 7, 16),
        ("c.py", 1, 17),
        ("c.py", 1, 30),
        ("c.py", 3, 12),
    ]
    assert definitions(FILES, used[-1]) == [ADD]
    assert definitions(FILES, Range("c.py", 3, 6, 3, 11)) == []  # print is not theirs
    for nowhere in (Range("d.py", 1, 1, 1, 1), Range("c.py", 9, 1, 9, 1)):
        with pytest.raises(Refused, match="no place"):
            references(FILES, nowhere)


@pytest.mark.slow
def test_a_rename_is_of_all_files_or_none() -> None:
    changed = renamed(FILES, ADD, "total")
    assert changed["a/b.py"] == FILES["a/b.py"].replace("add", "total")
    assert changed["c.py"] == FILES["c.py"].replace("add", "total") and set(changed) == {"a/b.py", "c.py"}
    for at, name, why in (
        (ADD, "1x", "is no name"),
        (ADD, "class", "is no name"),
        (Range("c.py", 3, 6, 3, 11), "show", "not defined in these files"),
        (ADD, "Sum", "is there already"),
    ):
        with pytest.raises(Refused, match=why):
            renamed(FILES, at, name)


def test_edits_are_of_the_text_as_it_was() -> None:
    text = "a\n\U0001d4b3\u00e9x\n"
    cut = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 3}}
    first = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    both = [{"range": first, "newText": "bb"}, {"range": cut, "newText": "y"}]
    assert edited(text, both) == "bb\n\U0001d4b3\u00e9y\n" == edited(text, both[::-1])
    end = {"start": {"line": 9, "character": 0}, "end": {"line": 9, "character": 0}}
    assert edited("a", [{"range": end, "newText": "b"}]) == "ab"


def test_a_server_that_fails_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sandbox, "command", lambda *_, **__: OUT)
    with pytest.raises(RunError, match="the language server failed; it said nothing; EOFError: it has ended"):
        served(FILES)
