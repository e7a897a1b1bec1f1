"""A tool as a program: what its text declares, without running it, and what a call of it comes to, in the sandbox."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import RunError
from assay.sandbox import Program, sandbox
from assay.sandbox.types import Limits
from assay.types import Tool

FUNCTION = "run"
KINDS = {"int": "integer", "float": "number", "str": "string", "bool": "boolean", "list": "array", "dict": "object"}
LIMITS = Limits(cpu_seconds=5.0, wall_seconds=10.0)


class BadTool(Exception):
    """A text that is no tool; the message says why, for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class MadeTool:
    """A tool with the Python that does it: a function ``run`` whose annotated parameters are its arguments."""

    name: str
    source: str

    @property
    def tool(self) -> Tool:
        """What a model is told of it: name, docstring and schema of the arguments.

        Raises:
            BadTool: see :func:`declared`.
        """
        return declared(self.name, self.source)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a call came to: ``ok`` with a ``value`` that JSON can have, or why it did not run."""

    ok: bool
    value: Any = None
    error: str = ""


def declared(name: str, source: str) -> Tool:
    """Read off a source what it declares.

    Raises:
        BadTool: it is no Python, has no function ``run``, or one whose parameters have no types or types that JSON has
            not.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadTool(f"it is no Python: {error}") from None
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION]
    if len(found) != 1:
        raise BadTool(f"it must define one function {FUNCTION}, and defines {len(found)}")
    [made] = found
    if made.args.vararg or made.args.kwarg or made.args.posonlyargs:
        raise BadTool(f"the parameters of {FUNCTION} must have names: no *, ** or /")
    given = [*made.args.args, *made.args.kwonlyargs]
    needed = len(made.args.args) - len(made.args.defaults)
    optional = {a.arg for a in made.args.args[needed:]}
    optional |= {a.arg for a, d in zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True) if d is not None}
    properties = {a.arg: _schema(a) for a in given}
    required = [a.arg for a in given if a.arg not in optional]
    text = ast.get_docstring(made) or ast.get_docstring(tree) or ""
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name, " ".join(text.split()), schema)


def _schema(parameter: ast.arg) -> dict[str, Any]:
    hint = parameter.annotation
    base = hint.value if isinstance(hint, ast.Subscript) else hint
    if not isinstance(base, ast.Name) or base.id not in KINDS:
        known = ", ".join(KINDS)
        raise BadTool(f"the parameter {parameter.arg} of {FUNCTION} needs a type: {known}, or list[...] and dict[...]")
    out: dict[str, Any] = {"type": KINDS[base.id]}
    if base.id == "list" and isinstance(hint, ast.Subscript) and isinstance(hint.slice, ast.Name):
        out |= {"items": {"type": KINDS[hint.slice.id]}} if hint.slice.id in KINDS else {}
    return out


def run(source: str, calls: Sequence[Mapping[str, Any]]) -> list[Ran]:
    """Call a tool with each of ``calls``, in one process of the sandbox, in order.

    A call that raises, hangs or returns what JSON cannot have did not run; nor did those after one that ended the
    process.

    Raises:
        RunError: the sandbox failed, so that nothing is known of the tool.
    """
    if not calls:
        return []
    found = sandbox().call(Program(source), FUNCTION, [((), dict(c)) for c in calls], LIMITS)
    if found.outcome.failed_here:
        raise RunError(f"a tool could not be run: {found.outcome.reason}")
    out = []
    for call in found.calls:
        plain = call.returned and _plain(call.value)
        error = call.exception if not call.returned else "" if plain else "it must return what JSON can have"
        out.append(Ran(plain, call.value if plain else None, error))
    reason = found.outcome.reason or "it ended before its answer"
    return out + [Ran(False, error=reason)] * (len(calls) - len(out))


def _plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
