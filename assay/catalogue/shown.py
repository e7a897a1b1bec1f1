"""A paper as ``assay papers show`` tells of it, read from its file: to import that would load a tensor library."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from assay.catalogue.claim import claims_made
from assay.catalogue.papers import PaperRow, Texts, body_of, entry, find, written

CLAIM = ("paper", "text", "setting")
"""What stands first in a claim."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A paper, and what its implementation says of itself.

    Attributes:
        row: the paper; its factory only where its file had to be imported.
        options: of its factory, with their defaults, as values or in the words of the file.
        text: the factory's docstring.
        claims: text and label of each of its claims.
    """

    row: PaperRow
    options: str = ""
    text: str = ""
    claims: tuple[tuple[str, str], ...] = ()


def shown(key: str) -> Shown:
    """Return the paper of an id or short name; a file that is not written out plainly is imported after all.

    Raises:
        UsageError: there is none.
    """
    row, modules = entry(key)
    if row.id not in modules:
        return Shown(row)
    row, body = written(row, modules[row.id]), body_of(modules[row.id])
    try:
        factory, read = _factory(body), _Values(body)
        options = ", ".join(_options(factory.args, read))
        return Shown(row, options, ast.get_docstring(factory) or "", tuple(_claims(body, read)))
    except ValueError:
        return imported(key)


def imported(key: str) -> Shown:
    """Return the same of the objects that the paper's file makes."""
    row = find(key)
    if row.factory is None:
        return Shown(row)
    parameters = inspect.signature(row.factory).parameters.values()
    options = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    made = claims_made().get(row.id, ())
    return Shown(row, options, inspect.getdoc(row.factory) or "", tuple((c.text, c.label) for c in made))


class _Values(Texts):
    """Reads literals, and names of the module's constants."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.known[node.id]) if node.id in self.known else node

    def __call__(self, node: ast.expr) -> Any:
        return ast.literal_eval(self.visit(node))


def _factory(body: list[ast.stmt]) -> ast.FunctionDef:
    for node in body:
        for decorator in getattr(node, "decorator_list", ()):
            named = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(node, ast.FunctionDef) and isinstance(named, ast.Name) and named.id == "paper":
                return node
    raise ValueError("no function is registered")


def _options(arguments: ast.arguments, read: Callable[[ast.expr], Any]) -> Iterator[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    if arguments.vararg is not None:
        plain, defaults = [*plain, arguments.vararg], [*defaults, None]
    plain, defaults = [*plain, *arguments.kwonlyargs], [*defaults, *arguments.kw_defaults]
    if arguments.kwarg is not None:
        plain, defaults = [*plain, arguments.kwarg], [*defaults, None]
    for argument, default in zip(plain, defaults, strict=True):
        yield argument.arg if default is None else f"{argument.arg}={_default(default, read)}"


def _default(node: ast.expr, read: Callable[[ast.expr], Any]) -> str:
    """A value, or for what only running the file could tell, a template of prompts for one, the file's own word."""
    try:
        return repr(read(node))
    except ValueError:
        return ast.unparse(node)


def _claims(body: list[ast.stmt], read: Callable[[ast.expr], Any]) -> Iterator[tuple[str, str]]:
    named: dict[str, dict[str, ast.expr]] = {}
    for node in body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "claims":
            for argument in call.args:
                said = _claim(argument, named)
                name = read(said["name"]) if "name" in said else ""
                yield str(read(said["text"])), str(name or read(said["setting"]))


def _claim(node: ast.expr, named: dict[str, dict[str, ast.expr]]) -> dict[str, ast.expr]:
    """Return what a claim is made with: ``Claim(...)``, ``replace(claim, ...)``, or either with a name."""
    if isinstance(node, ast.NamedExpr):
        named[node.target.id] = _claim(node.value, named)
        return named[node.target.id]
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise ValueError("a claim is made elsewhere")
    said = {str(k.arg): k.value for k in node.keywords}
    if node.func.id == "Claim" and len(node.args) <= len(CLAIM):
        return {**dict(zip(CLAIM, node.args, strict=False)), **said}
    first = node.args[0] if len(node.args) == 1 else None
    if node.func.id == "replace" and isinstance(first, ast.Name) and first.id in named:
        return {**named[first.id], **said}
    raise ValueError("a claim is made in another way")
