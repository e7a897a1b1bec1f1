"""Which of the program's names are classes, by what the tests and the task say of them.

Of an object of such a class the program may say more than of one that a function returned, see
:mod:`~assay.verify.code.inside.remote`; so neither the program says it, nor how a name is spelt.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from assay.verify.code.inside.wire import PLAIN_METHODS
from assay.verify.code.names import Asked

_ABOUT_CLASSES = ("isinstance", "issubclass", "assertIsInstance", "assertNotIsInstance")


def classes(trees: Iterable[ast.AST], wanted: Asked) -> set[str]:
    """Return the names that

    - the task lists as ``classes`` or defines as such in its solution or prompt;
    - the tests ask ``isinstance`` about, or for an attribute that is none of a function's;
    - the tests call, and then use what they got as no plain data can be: by an attribute that no plain type has, by
      setting one, or by calling a method for what it does.
    """
    found: set[str] = set(wanted.classes)
    for tree in trees:
        made: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in _ABOUT_CLASSES and len(node.args) > 1:
                kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
                found |= {name for name in map(_last, kinds) if name}
            _note(node, made)
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
        for node in ast.walk(tree):
            found |= _used(node, made) - own
    return found - wanted.functions


def _note(node: ast.AST, made: dict[str, set[str]]) -> None:
    """Take down what was assigned from calls: ``s = Stack()``, ``with Stack() as s``, ``return Stack()``."""
    pairs: list[tuple[ast.AST | None, ast.AST | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.With | ast.AsyncWith):
        pairs = [(item.optional_vars, item.context_expr) for item in node.items]
    for target, value in pairs:
        if target is not None and _place(target) and isinstance(value, ast.Call) and (name := _last(value.func)):
            made.setdefault(_place(target), set()).add(name)
    if isinstance(node, ast.FunctionDef):
        # A fixture of pytest's is named by the argument that receives what it returns.
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return | ast.Yield) and isinstance(inner.value, ast.Call):
                made.setdefault(node.name, set()).add(_last(inner.value.func))
            elif isinstance(inner, ast.Return | ast.Yield) and isinstance(inner.value, ast.Name):
                made.setdefault(node.name, set()).update(made.get(inner.value.id, ()))


def _used(node: ast.AST, made: dict[str, set[str]]) -> set[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return set() if node.value.func.attr in ("sort", "reverse") else _makers(node.value.func.value, made)
    if not isinstance(node, ast.Attribute) or node.attr.startswith("__"):
        return set()
    beyond = isinstance(node.ctx, ast.Store) or node.attr not in PLAIN_METHODS
    return _makers(node.value, made) if beyond else set()


def _makers(value: ast.expr, made: dict[str, set[str]]) -> set[str]:
    """The names that may have made ``value`` by being called."""
    if isinstance(value, ast.Call):
        return {_last(value.func)} - {""}
    return made.get(_place(value), set())


def _place(node: ast.AST) -> str:
    """``self.stack`` of a name and its attributes; of anything else nothing."""
    if isinstance(node, ast.Attribute):
        before = _place(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def _called(call: ast.Call) -> str:
    return _last(call.func)


def _last(node: ast.expr) -> str:
    """``Stack`` of ``Stack`` and of ``solution.Stack``."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
