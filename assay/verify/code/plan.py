"""How tests that compare by themselves are run: which names are the program's, and which of them are classes.

That is read from the tests, never from the program, which could claim what suits it.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

BUILTINS = frozenset(dir(builtins))
_CHECK = re.compile(r"^def check\(", re.MULTILINE)
_NO_CLASS = ("Error", "Exception", "Warning")
_ALWAYS = {"pytest", "unittest", "numpy", "__future__", "hypothesis"}


def has_check(source: str) -> bool:
    return _CHECK.search(source) is not None


def from_check(source: str, entry: str, prelude: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A plan for HumanEval's ``check(candidate)``; ``prelude`` has the prompt's helpers, for the tests' own use."""
    tree = ast.parse(source)
    names = sorted(_free(tree) - _stored(ast.parse(prelude)))
    made = _plan("check", given, [tree], names, entry=entry, source=source, in_place=_in_place(tree))
    return made | {"setup": prelude + _setup(given)}


def from_asserts(sources: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """A plan for statements, each a test of its own, as MBPP has them."""
    setup = _setup(given)
    trees, padded, lines = [], [], 0
    for source in sources:
        # Each has lines of its own, so that a line says which it is.
        padded.append("\n" * lines + source)
        trees.append(ast.parse(padded[-1]))
        lines += source.count("\n") + 1
    prepared = ast.parse(setup)
    own = _stored(prepared)
    for tree in trees:
        own |= _stored(tree)
    names = (_free(*trees, prepared) - own) | {str(name) for name in given.get("names", ())}
    entry = str(given.get("entry_point", "") or "")
    if not entry:
        # Some functions are called what a builtin is: then the reference program says so, or the calls do.
        defined = _stored(_parse(given.get("code") or given.get("canonical_solution")))
        called = [_called(tree) for tree in trees]
        shared = set.intersection(*map(set, called)) if called else set()
        likely = [n for n in (called[0] if called else []) if n in shared and (n in names or n in defined)]
        entry = (likely or [n for n in (called[0] if called else []) if n in shared and n in BUILTINS] or [""])[0]
    plan = _plan("asserts", given, [*trees, prepared], sorted(names | ({entry} if entry else set())), entry=entry)
    return plan | {"sources": padded, "setup": setup, "in_place": sorted({n for t in trees for n in _in_place(t)})}


def from_file(mode: str, source: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A plan for a file of tests that imports the program, or uses its names as if they stood above."""
    tree = ast.parse(source)
    module = str(given.get("module", "") or _imported(tree, given) or "solution")
    names = sorted(_free(tree) - _stored(tree))
    made = _plan(mode, given, [tree], names, entry=str(given.get("entry_point", "")), source=source)
    imports = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
        if alias.name != "*"
    ]
    return made | {"module": module, "imports": imports, "in_place": _in_place(tree), "setup": _setup(given)}


def from_doctest(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A plan for examples with ``>>>``."""
    import doctest

    trees = [ast.parse(example.source) for example in doctest.DocTestParser().get_examples(text)]
    if not trees:
        raise ValueError("its doctest has no examples")
    own: set[str] = set()
    for tree in trees:
        own |= _stored(tree)
    entry = str(given.get("entry_point", ""))
    names = (_free(*trees) - own) | ({entry} if entry else set())
    return _plan("doctest", given, trees, sorted(names), entry=entry, source=text) | {"setup": _setup(given)}


def _plan(
    mode: str, given: Mapping[str, Any], trees: Iterable[ast.AST], names: list[str], **more: Any
) -> dict[str, Any]:
    classes = given.get("classes")
    found = [str(c) for c in classes] if isinstance(classes, list) else sorted(_classes(trees))
    plan = {"mode": mode, "names": names, "classes": found, "module": str(given.get("module", "") or "solution")}
    return {**plan, "in_place": [], "packages": [str(p) for p in given.get("packages", ())], **more}


def _setup(given: Mapping[str, Any]) -> str:
    imports = given.get("test_imports") or []
    lines = [
        *(imports if isinstance(imports, list) else [imports]),
        given.get("test_setup_code") or given.get("setup") or "",
    ]
    return "\n".join(str(line) for line in lines if line) + "\n"


def _parse(source: Any) -> ast.AST:
    try:
        return ast.parse(str(source or ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _free(*trees: ast.AST) -> set[str]:
    names = {n.id for t in trees for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return names - BUILTINS


def _stored(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def _called(tree: ast.AST) -> list[str]:
    """Names of functions called, outermost first."""
    return [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]


def _classes(trees: Iterable[ast.AST]) -> set[str]:
    """Names that tests use as classes are: capitalised, called or with attributes asked of them, and no exceptions."""
    found: set[str] = set()
    for tree in trees:
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
        for node in ast.walk(tree):
            target = (
                node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Attribute) else None
            )
            name = (
                target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
            )
            if name[:1].isupper() and name not in own and name not in BUILTINS and not name.endswith(_NO_CLASS):
                found.add(name)
    return found


def _imported(tree: ast.AST, given: Mapping[str, Any]) -> str:
    known = set(sys.stdlib_module_names) | _ALWAYS | {str(p) for p in given.get("packages", ())}
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            if name.partition(".")[0] not in known:
                return name
    return ""


def _in_place(tree: ast.AST) -> list[int]:
    """Lines on which a function is called for what it does to its arguments: its value is not used."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sorted(lines)
