"""A package with a bug and misspelt names, and a language server that knows where names are defined and used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from assay.environments.base import EnvironmentFailure
from assay.environments.repository.diagnosed import SHOWN, Diagnosed
from assay.environments.tools import ToolError, tool
from assay.errors import RunError
from assay.registry import part
from assay.types import Task
from assay.verify.diagnostics import server
from assay.verify.diagnostics.check import Diagnostic, definitions
from assay.verify.diagnostics.places import Range, confidence, resolve


@part("environment", "language_server")
class LanguageServed(Diagnosed):
    """As ``diagnosed``, and a language server (python-lsp-server) says where a name is defined and used, and renames.

    Its tools take a selector (:func:`assay.verify.diagnostics.places.resolve`), of which the best place counts, and a
    counts how sure that is. A rename is of all files or of none: one that no name stands at, that is not the package's
    own, whose new name is none or is there already, is refused, and the turn is not safe. What was renamed has gone
    only if it is not there by its new name. With ``checker = "pylsp"`` errors are the server's too; a session with it
    takes about a second.

    Args:
        modules, hidden, shown, calls, seconds, partial, checker, typos: as for ``diagnosed``.
        errors, safe, unsure, seed: as there.

    Raises:
        UsageError: as ``diagnosed``, or no server is installed.
    """

    needs = ("pylsp",)

    def begin(self, task: Task, seed: int) -> str:
        self.moved: dict[str, dict[str, str]] = {}  # by path, what definitions are called now
        return super().begin(task, seed)

    def findings(self) -> list[Diagnostic]:
        return [one for one in super().findings() if not (one.code == "gone" and self._is_there(one))]

    def _is_there(self, one: Diagnostic) -> bool:
        now = self.moved.get(one.path, {}).get(one.message.removesuffix(" is gone"))
        return now is not None and now in (definitions(self._text(one.path)) or ())

    def snapshot(self) -> bytes:
        return json.dumps([super().snapshot().decode(), self.moved]).encode()

    def restore(self, snapshot: bytes) -> None:
        inner, self.moved = json.loads(snapshot)
        super().restore(inner.encode())

    @tool
    def definition(self, selector: str) -> str:
        "Where what is named at a place is defined: py://a.b#Class.method:name, or a/b.py@L3:C1."
        return self._told(server.definitions, selector)

    @tool
    def references(self, selector: str) -> str:
        "Where what is named at a place is used, its definition too."
        return self._told(server.references, selector)

    @tool
    def rename(self, selector: str, name: str) -> str:
        "Give what is named at a place another name wherever it stands."
        changed = self._served(server.renamed, self._at(selector), name)
        for path in changed:
            if path.startswith("tests/"):
                raise ToolError(f"{path} would change, which holds tests")
        for path, text in changed.items():
            made = called_now(self._text(path), text, name)
            self._write(path, text)
            moved = self.moved.setdefault(path, {})
            moved.update({old: made.get(new, new) for old, new in moved.items()} | made)
        return f"changed {', '.join(sorted(changed))}"

    def _told(self, ask: Callable[..., list[Range]], selector: str) -> str:
        found = self._served(ask, self._at(selector))
        lines = [f"{p.path}@L{p.line}:C{p.column}-L{p.end_line}:C{p.end_column}" for p in found[:SHOWN]]
        return "\n".join([*lines, *([f"({len(found) - SHOWN} more)"] if len(found) > SHOWN else [])]) or "nowhere here"

    def _at(self, selector: str) -> Range:
        self._spend()
        found = resolve(selector, self._sources())
        self.sure = min(self.sure, confidence(found))
        if not found:
            raise ToolError(f"{selector[:100]!r} names no place")
        return found[0].place

    def _served(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return ask(self._sources(), *arguments)
        except server.Refused as refused:
            raise ToolError(str(refused)) from None
        except RunError as error:
            raise EnvironmentFailure(str(error)) from None


def called_now(before: str, after: str, name: str) -> dict[str, str]:
    """Return what each definition of a source is called after a rename to ``name``, of those that it changed."""
    was, now = definitions(before) or [], definitions(after) or []
    fresh = [one for one in now if one not in was]
    return {old: new for old in was if old not in now for new in fresh if _alike(old, new, name)}


def _alike(old: str, new: str, name: str) -> bool:
    one, other = old.split("."), new.split(".")
    return len(one) == len(other) and all(a == b or b == name for a, b in zip(one, other, strict=True))
