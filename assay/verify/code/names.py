"""Which of the names that tests use are the program's.

Whoever supplies a name that tests judge with decides the verdict, so that is read from the tests and the task alone,
never from the program:

- what the tests import, define or assign is theirs; what they import from the program's module is the program's;
- a builtin, or a module of the standard library, is Python's, imported or not. Only where the task itself names it
  (``entry_point``, ``names``), or where the tests use no other name that could be, is it the program's: MBPP has
  functions called ``sum``;
- what is left is the program's if the task asks for it: in ``entry_point``, ``names`` or ``classes``, in the reference
  solution, in a definition that the prompt begins, or by name in its text;
- if the task asks for one of them, nothing else is the program's: what the task's own code imports comes from there, so
  does what Python's usual modules have (``isclose``, ``Counter``), and tests that use anything else are broken;
- if it asks for none, as lists of asserts seldom say, all are the program's but those that judge what another gave:
  ``same(f(2), 4)``, ``error(f(2), 4) < 1e-6``, ``norm(f(2)) == norm([4])``. For these the rule before holds.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import re
import symtable
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__"}
USUAL = (
    *("math", "collections", "itertools", "functools", "decimal", "fractions", "typing", "datetime"),
    *("cmath", "unittest", "dataclasses"),
)
"""Modules whose members tests use without having imported them."""
SOLUTIONS = ("code", "canonical_solution", "solution", "starter_code", "prompt")


class Undefined(ValueError):
    """The tests use a name that nobody defines."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the task asks a program for: names it gives outright, and names that its texts mention; of these the classes
    and functions its texts define; and what they import, as module, and member if it is one."""

    outright: frozenset[str] = frozenset()
    mentioned: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    imports: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Names:
    """The program's names, and where in the standard library others come from: module, and member if it is one."""

    program: frozenset[str] = frozenset()
    library: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def asked(given: Mapping[str, Any], question: str = "") -> Asked:
    """Return what the task asks for, by its reference and by the text of its question."""
    listed = given.get("classes")
    classes = {str(name) for name in listed} if isinstance(listed, list) else set()
    outright = {str(name) for name in given.get("names", ())} | classes
    if given.get("entry_point"):
        outright.add(str(given["entry_point"]).partition(".")[0])
    functions: set[str] = set()
    mentioned: set[str] = set()
    imports: dict[str, tuple[str, str]] = {}
    for key in SOLUTIONS:
        text = str(given.get(key) or "")
        found = re.findall(r"^(def|async def|class)[ \t]+(\w+)|^(\w+)[ \t]*=(?!=)", text, re.MULTILINE)
        for kind, name, assigned in found:
            (classes if kind == "class" else functions if kind else mentioned).add(name or assigned)
        imports |= _imports(text)
    mentioned |= classes | functions | _in_prose(f"{given.get('prompt') or ''}\n{question}")
    return Asked(frozenset(outright), frozenset(mentioned), frozenset(classes), frozenset(functions - classes), imports)


def _imports(text: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for module, name in re.findall(r"^import[ \t]+([\w.]+)[ \t]+as[ \t]+(\w+)", text, re.MULTILINE):
        found[name] = (module, "")
    for name in re.findall(r"^import[ \t]+(\w+)[ \t]*$", text, re.MULTILINE):
        found[name] = (name, "")
    for module, names in re.findall(r"^from[ \t]+([\w.]+)[ \t]+import[ \t]+([\w ,\t]+)$", text, re.MULTILINE):
        for member, _, name in (one.strip().partition(" as ") for one in names.split(",")):
            found[(name or member).strip()] = (module, member.strip())
    return found


def _in_prose(text: str) -> set[str]:
    """Names that a text asks for as such; the tests it may show do not count."""
    lines = "\n".join(line for line in text.splitlines() if not re.match(r"[\s>]*assert\b|\s*>>>", line))
    found = set(re.findall(r"\b(?:def|class|function|method|called|named)[ \t]+[`'\"]?([A-Za-z_]\w*)", lines))
    found |= set(re.findall(r"`([A-Za-z_]\w*)(?:\([^`]*\))?`", lines))
    # Words of a language have no underscore, digit or capital inside.
    return found | set(re.findall(r"\b([A-Za-z]+(?:_\w+|[0-9]\w*|[a-z][A-Z]\w*))\b", lines))


def resolve(sources: Sequence[str], own: Iterable[str], wanted: Asked, named: bool = False) -> Names:
    """Return where the names that ``sources`` use and do not define come from.

    Args:
        sources: Python, in the order it is run.
        own: further names the tests have.
        named: whether the program's names are known already, so that there are none among those left.

    Raises:
        Undefined: for a name that neither tests, task nor Python define.
        SyntaxError: for sources that are no Python.
    """
    free = free_names("\n".join(sources)) - set(own)
    trees = [ast.parse(source) for source in sources]
    called = {n.func.id for t in trees for n in ast.walk(t) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    modules = {name for name in free if name in sys.stdlib_module_names and name not in called}
    program = free & wanted.outright
    python = (free & BUILTINS) | modules
    program |= (free & wanted.mentioned) - python
    library = {name: (name, "") for name in modules - program}
    unknown = free - python - program
    helpers = unknown if program or named else judging(trees, unknown)
    for name in sorted(helpers):
        library[name] = wanted.imports.get(name) or _standard(name)
    return Names(frozenset(program | (unknown - helpers)), library)


def _standard(name: str) -> tuple[str, str]:
    if name not in _members():
        hint = "if the program is to define it, say so in the reference's names"
        raise Undefined(f"its tests use {name!r}, which neither they nor the task define; {hint}")
    return _members()[name], name


@functools.cache
def _members() -> dict[str, str]:
    found: dict[str, str] = {}
    for module in USUAL:
        for name in dir(importlib.import_module(module)):
            if not name.startswith("_"):
                found.setdefault(name, module)
    return found


def free_names(source: str) -> set[str]:
    """Return the global names that ``source`` uses and does not bind, in any of its scopes."""
    used: set[str] = set()
    bound: set[str] = set()
    waiting = [symtable.symtable(source, "tests.py", "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            if top or symbol.is_global():
                if symbol.is_assigned() or symbol.is_imported() or (top and symbol.is_namespace()):
                    bound.add(symbol.get_name())
                if symbol.is_referenced():
                    used.add(symbol.get_name())
    return used - bound


def judging(trees: Iterable[ast.AST], unknown: set[str]) -> set[str]:
    """Return those of ``unknown`` whose value decides on what another of them gave, without being compared itself."""
    found: set[str] = set()
    for tree in trees:
        for truth in _truths(tree):
            for inner in _parts(truth):
                found |= _deciding(inner, unknown)
            if isinstance(truth, ast.Compare):
                # The same treatment of both sides: of what the program gave, and of what is expected.
                sides = [truth.left, *truth.comparators]
                around = [{_name(c) for c in _calls(side) if _given(c, unknown)} for side in sides]
                plain = [{_name(c) for c in _calls(side) if not _given(c, unknown)} for side in sides]
                for i, names in enumerate(around):
                    found |= {n for j, others in enumerate(plain) if i != j for n in names & others & unknown}
    return found


def _truths(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions whose value, or whose raising, is the result of a test."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert | ast.If):
            yield node.test
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.value
            if isinstance(node.value.func, ast.Attribute) and len(node.value.args) > 1:
                equals = "Equal" in node.value.func.attr
                yield ast.Compare(node.value.args[0], [ast.Eq() if equals else ast.Lt()], [node.value.args[1]])
            elif isinstance(node.value.func, ast.Attribute):
                yield from node.value.args


def _parts(truth: ast.expr) -> Iterator[ast.expr]:
    if isinstance(truth, ast.BoolOp):
        for value in truth.values:
            yield from _parts(value)
    elif isinstance(truth, ast.UnaryOp):
        yield from _parts(truth.operand)
    elif isinstance(truth, ast.Compare):
        trivial = any(_trivial(side) for side in (truth.left, *truth.comparators))
        if trivial or not all(isinstance(op, ast.Eq | ast.In | ast.Is) for op in truth.ops):
            for side in (truth.left, *truth.comparators):
                yield from _parts(side)
    elif isinstance(truth, ast.Call) and isinstance(truth.func, ast.Name) and truth.func.id in ("abs", "all", "bool"):
        for argument in truth.args:
            yield from _parts(argument)
    else:
        yield truth


def _trivial(side: ast.expr) -> bool:
    """What a comparer answers: no difference, yes, nothing."""
    if isinstance(side, ast.Constant):
        return side.value in (0, 1, None, "")
    if isinstance(side, ast.List | ast.Tuple):
        return not side.elts
    return (isinstance(side, ast.Dict) and not side.keys) or (_name(side) == "set" and len(list(ast.walk(side))) == 3)


def _deciding(node: ast.expr, unknown: set[str]) -> set[str]:
    if not (isinstance(node, ast.Call) and _name(node) in unknown and _given(node, unknown)):
        return set()
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    plain = [a for a in arguments if not any(_name(c) in unknown for c in _calls(a))]
    return {_name(node)} if plain or len(arguments) > 1 else set()


def _given(call: ast.Call, unknown: set[str]) -> bool:
    """Whether a call is given what a call of another unknown name gave."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(_name(c) in unknown and _name(c) != _name(call) for a in arguments for c in _calls(a))


def _calls(node: ast.AST) -> list[ast.Call]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Call)]


def _name(call: ast.expr) -> str:
    """What is called, or what that is an attribute of."""
    target: ast.expr = call.func if isinstance(call, ast.Call) else call
    while isinstance(target, ast.Attribute):
        target = target.value
    return target.id if isinstance(call, ast.Call) and isinstance(target, ast.Name) else ""
