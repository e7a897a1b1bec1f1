"""How tests that compare by themselves are run: which names are the program's, and which of them are classes.

That is read from the tests, never from the program, which could claim what suits it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.verify.code.classes import classes
from assay.verify.code.names import BUILTINS, Asked, Names, asked, resolve

_CHECK = re.compile(r"^def check\(", re.MULTILINE)
_ALWAYS = {"pytest", "unittest", "numpy", "__future__", "hypothesis"}


def has_check(source: str) -> bool:
    return _CHECK.search(source) is not None


def from_check(source: str, entry: str, prelude: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A plan for HumanEval's ``check(candidate)``; ``prelude`` has the prompt's helpers, for the tests' own use."""
    tree = ast.parse(source)
    setup = prelude + _setup(given)
    wanted = asked(given)
    names = resolve([setup, source], [entry], wanted, named=True)
    return _plan("check", given, [tree], names, wanted, entry=entry, source=source, setup=setup)


def from_asserts(sources: Sequence[str], given: Mapping[str, Any], question: str = "") -> dict[str, Any]:
    """A plan for statements, each a test of its own, as MBPP has them."""
    setup = _setup(given)
    padded, lines = [], 0
    for source in sources:
        # Each has lines of its own, so that a line says which it is.
        padded.append("\n" * lines + source)
        lines += source.count("\n") + 1
    trees = [ast.parse(source) for source in padded]
    wanted = asked(given, question)
    names = resolve([setup, *sources], [], wanted)
    entry = str(given.get("entry_point", "") or "")
    if not entry:
        called = [_called(tree) for tree in trees]
        shared = set.intersection(*map(set, called)) if called else set()
        likely = [name for name in (called[0] if called else []) if name in shared and name in names.program]
        if not names.program:
            # Some functions are called what a builtin is; then the tests use no name that could be another's.
            likely = [name for name in (called[0] if called else []) if name in shared and name in BUILTINS]
        entry = (likely or [""])[0]
    names = Names(names.program | ({entry} - {""}), names.library)
    return _plan("asserts", given, [*trees, ast.parse(setup)], names, wanted, entry=entry, sources=padded, setup=setup)


def from_file(mode: str, source: str, given: Mapping[str, Any], question: str = "") -> dict[str, Any]:
    """A plan for a file of tests that imports the program, or uses its names as if they stood above."""
    tree = ast.parse(source)
    module = str(given.get("module", "") or _imported(tree, given) or "solution")
    wanted = asked(given, question)
    imported = any(isinstance(n, ast.Import) and any(a.name == module for a in n.names) for n in ast.walk(tree))
    imports = _imports(tree, module)
    names = resolve([_setup(given), source], [], wanted, named=(imported or bool(imports)) and "*" not in imports)
    if mode == "pytest" and names.program and not imports:
        # The file is imported by pytest: what it uses has to be in it.
        source = f"from {module} import *\n{source}"
        tree = ast.parse(source)
    made = _plan(mode, given, [tree], names, wanted, entry=str(given.get("entry_point", "")), source=source)
    return made | {"module": module, "imports": [name for name in imports if name != "*"], "setup": _setup(given)}


def from_doctest(text: str, given: Mapping[str, Any], question: str = "") -> dict[str, Any]:
    """A plan for examples with ``>>>``."""
    import doctest

    sources = [example.source for example in doctest.DocTestParser().get_examples(text)]
    if not sources:
        raise ValueError("its doctest has no examples")
    entry = str(given.get("entry_point", ""))
    wanted = asked(given, question)
    names = resolve([_setup(given), *sources], [], wanted)
    names = Names(names.program | ({entry} - {""}), names.library)
    trees = [ast.parse(source) for source in sources]
    plan = _plan("doctest", given, trees, names, wanted, entry=entry, source=text, setup=_setup(given))
    # An example's lines are counted from its own first.
    return plan | {"in_place": [], "quiet": []}


def _plan(
    mode: str, given: Mapping[str, Any], trees: Sequence[ast.AST], names: Names, wanted: Asked, **more: Any
) -> dict[str, Any]:
    return {
        "mode": mode,
        "names": sorted(names.program),
        "library": dict(names.library),
        "classes": sorted(classes(trees, wanted)),
        "module": str(given.get("module", "") or "solution"),
        "in_place": sorted({line for tree in trees for line in _in_place(tree)}),
        "quiet": sorted(_quiet(trees)),
        "packages": [str(package) for package in given.get("packages", ())],
        **more,
    }


def _setup(given: Mapping[str, Any]) -> str:
    imports = given.get("test_imports") or []
    lines = [
        *(imports if isinstance(imports, list) else [imports]),
        given.get("test_setup_code") or given.get("setup") or "",
    ]
    return "\n".join(str(line) for line in lines if line) + "\n"


def _called(tree: ast.AST) -> list[str]:
    """Names of functions called, outermost first."""
    return [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]


def _imported(tree: ast.AST, given: Mapping[str, Any]) -> str:
    """Return the module that is the program; raise ValueError where it could be several."""
    known = set(sys.stdlib_module_names) | _ALWAYS | {str(p) for p in given.get("packages", ())}
    known |= {str(name).partition("/")[0].removesuffix(".py") for name in given.get("test_files") or {}}
    found: list[str] = []
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        found += [name for name in names if name.partition(".")[0] not in known]
    if "solution" in found:
        return "solution"
    if len(set(found)) > 1:
        listed = ", ".join(sorted(set(found)))
        raise ValueError(f"its tests import {listed}: the reference's module says which of them is the program")
    return found[0] if found else ""


def _imports(tree: ast.AST, module: str) -> list[str]:
    return [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    ]


def _in_place(tree: ast.AST) -> list[int]:
    """Lines on which a function is called for what it does to its arguments: its value is not used."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _consumes(node.value):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sorted(lines)


def _consumes(call: ast.Call) -> bool:
    """Whether what is called uses the values of the calls among its arguments: an assertion, a builtin."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr.startswith(("assert", "fail"))
    return isinstance(call.func, ast.Name) and call.func.id in BUILTINS


def _quiet(trees: Iterable[ast.AST]) -> set[int]:
    """Lines in ``with`` blocks that assert nothing: what ends such a block early keeps no assertion from failing."""
    quiet: set[int] = set()
    asserting: set[int] = set()
    for tree in trees:
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.With | ast.AsyncWith):
                inner = [part for statement in node.body for part in ast.walk(statement)]
                told = any(_asserts(part, own) for part in inner)
                (asserting if told else quiet).update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return quiet - asserting


def _asserts(node: ast.AST, own: set[str]) -> bool:
    """Whether a test could fail here: by an assertion, or in a function of the tests'."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return name in own or name.startswith(("assert", "fail", "raises", "warns"))
