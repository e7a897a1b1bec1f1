"""A language server in the sandbox: what it finds, where a name is defined and used, and a name changed wherever it
stands."""

from __future__ import annotations

import json
import keyword
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from assay.errors import RunError
from assay.sandbox import Limits, sandbox
from assay.sandbox.confine import interpreter, visible
from assay.sandbox.types import MIB
from assay.verify.diagnostics import session
from assay.verify.diagnostics.places import Range

LIMITS = Limits(cpu_seconds=60, wall_seconds=60, memory=1024 * MIB, processes=32)
DRIVER, ASKED = "language_server_session.py", "language_server_asked.json"
SEVERE = 1
"""The protocol's number for an error."""


class Refused(Exception):
    """The server would not do what it was asked for; why, in a line."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a session brought.

    Attributes:
        findings: (path, line, column, whether it is an error, message), lines and columns from 1, in order. Columns of
            findings are in bytes, as pyflakes, who finds them, has them.
        answers: of each question, as the protocol has them; an exception where the server refused it.
        root: what addresses of files begin with.
    """

    findings: tuple[tuple[str, int, int, bool, str], ...]
    answers: tuple[Any, ...]
    root: str


def served(files: Mapping[str, str], asked: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> Served:
    """Return what python-lsp-server finds in the files, and answers.

    A session of its own opens all files and asks in order, so the same files and questions have the same answers. The
    server sees the files and the standard library alone.

    Args:
        files: by path; those that are no Python are not shown.
        asked: methods of the protocol and their parameters, with ``path`` for a document.

    Raises:
        RunError: the sandbox, or the server itself, failed.
    """
    sources = {name: text for name, text in files.items() if name.endswith(".py")}
    if not sources:
        return Served((), ((),) * len(asked), "")
    packages = sysconfig.get_path("purelib")
    driver = Path(session.__file__).read_text(encoding="utf-8")
    told = json.dumps({"command": [interpreter(), "-m", "pylsp"], "asked": [(m, dict(p)) for m, p in asked]})
    outcome = sandbox().command(
        [interpreter(), DRIVER, ASKED],
        {**{f"work/{name}": text for name, text in sources.items()}, DRIVER: driver, ASKED: told},
        LIMITS,
        readable=[packages],
        environment={"PYTHONPATH": visible(packages), "HOME": "/tmp"},
    )
    if outcome.status != "ok":
        last = outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RunError("; ".join(["the language server failed", outcome.reason, *last])[:500])
    found = json.loads(outcome.stdout)
    root = found["root"]
    findings = []
    for uri, rows in found["findings"].items():
        path = path_of(uri, root)
        for one in rows:
            start = one["range"]["start"]
            findings.append((path, *place(start), one.get("severity", SEVERE) == SEVERE, one["message"]))
    answers = [Refused(a["error"]["message"]) if "error" in a else a["result"] for a in found["answers"]]
    return Served(tuple(sorted(findings)), tuple(answers), root)


def path_of(uri: str, root: str) -> str:
    """Return the path of a file that the server names; empty where it is none of the files."""
    return unquote(uri[len(root) :]) if uri.startswith(root) else ""


def place(position: Mapping[str, int]) -> tuple[int, int]:
    """Return line and column from 1 of a position from 0: the server counts characters, whatever the protocol says."""
    return position["line"] + 1, position["character"] + 1


def definitions(files: Mapping[str, str], at: Range) -> list[Range]:
    """Return where what is named at a place is defined, in order; what is defined elsewhere is left out."""
    [found], root = _asked(files, at, ("textDocument/definition", {}))
    return _ranges(found, files, root)


def references(files: Mapping[str, str], at: Range) -> list[Range]:
    """Return where what is named at a place is used, its definition too, in order."""
    [found], root = _asked(files, at, ("textDocument/references", {"context": {"includeDeclaration": True}}))
    return _ranges(found, files, root)


def renamed(files: Mapping[str, str], at: Range, name: str) -> dict[str, str]:
    """Return the files that change when what is named at a place is called ``name`` wherever it stands.

    Raises:
        Refused: no name stands there, it is not defined in these files, ``name`` is none or would take another's place,
            or the server would change something else.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise Refused(f"{name[:60]!r} is no name")
    where = {"context": {"includeDeclaration": True}}
    asked = [("textDocument/definition", {}), ("textDocument/references", where)]
    [there, used, change], root = _asked(files, at, *asked, ("textDocument/rename", {"newName": name}))
    if not _ranges(there, files, root):
        raise Refused("what stands there is not defined in these files")
    edits: dict[str, list[Any]] = {}
    for document in (change or {}).get("documentChanges", ()):
        edits.setdefault(path_of(document["textDocument"]["uri"], root), []).extend(document["edits"])
    for uri, rows in ((change or {}).get("changes") or {}).items():
        edits.setdefault(path_of(uri, root), []).extend(rows)
    if not edits or not set(edits) <= set(files):
        raise Refused("the server would change nothing, or what is none of these files")
    out = {path: edited(files[path], rows) for path, rows in edits.items()}
    if any(_stands(files[one.path], name) for one in _ranges(used, files, root)):
        raise Refused(f"{name} is there already")
    return {path: text for path, text in out.items() if text != files[path]}


def edited(text: str, edits: Sequence[Mapping[str, Any]]) -> str:
    """Return a text after edits of the protocol, all of them of the text as it was."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(where: Mapping[str, int]) -> int:
        line, column = place(where)
        return min(starts[min(line, len(starts)) - 1] + column - 1, len(text))

    cuts = sorted(((offset(e["range"]["start"]), offset(e["range"]["end"]), e["newText"]) for e in edits), reverse=True)
    for start, end, new in cuts:
        text = text[:start] + new + text[end:]
    return text


def _asked(files: Mapping[str, str], at: Range, *asked: tuple[str, dict[str, Any]]) -> tuple[list[Any], str]:
    if at.path not in files or at.line > files[at.path].count("\n") + 1:
        raise Refused(f"there is no place {at.path}@L{at.line}")
    here = {"path": at.path, "position": {"line": at.line - 1, "character": at.column - 1}}
    found = served(files, [(method, {**here, **more}) for method, more in asked])
    for one in found.answers:
        if isinstance(one, Refused):
            raise one
    return list(found.answers), found.root


def _ranges(found: Any, files: Mapping[str, str], root: str) -> list[Range]:
    out = set()
    for one in found or ():
        path = path_of(one["uri"], root)
        if path in files:
            out.add(Range(path, *place(one["range"]["start"]), *place(one["range"]["end"])))
    return sorted(out)


def _stands(text: str, name: str) -> bool:
    """Whether a name stands in a text as a word."""
    return name in set(_words(text))


def _words(text: str) -> list[str]:
    word, out = "", []
    for c in [*text, " "]:
        if c.isidentifier() or (word and (word + c).isidentifier()):
            word += c
        elif word:
            out.append(word)
            word = ""
    return out
