"""Mutants: small faults put into a right program, of which a good suite finds every one that matters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError

_BINARY: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.FloorDiv),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult, ast.Div),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitAnd,),
}
_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_REMOVABLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete, ast.Break, ast.Continue)
_DEEPEST = 200
"""Nesting of a program that is mutated: Python's own tools recurse."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one fault. ``kind``: operator, comparison, boolean, constant, condition, statement, return."""

    source: str
    kind: str
    line: int
    change: str


@dataclass(frozen=True, slots=True)
class MutationReport:
    """Which mutants a suite finds.

    Attributes:
        killed: mutants that fail a test.
        survived: mutants that pass every test and differ from the right program on some probe: holes in the suite.
        equivalent: mutants that pass every test and behave as the right program on every probe; taken to be equivalent.
        untold: mutants whose run could not be judged.
    """

    killed: tuple[Mutant, ...]
    survived: tuple[Mutant, ...]
    equivalent: tuple[Mutant, ...]
    untold: tuple[Mutant, ...] = ()

    @property
    def score(self) -> float | None:
        """Killed share of the mutants that are not taken to be equivalent; ``None`` without any."""
        counted = len(self.killed) + len(self.survived)
        return len(self.killed) / counted if counted else None


def mutants(source: str) -> list[Mutant]:
    """Return every mutant of a Python program with one change, in the order of the source, without repetitions.

    Changes: an arithmetic or bit operator, a comparison (with its boundary: < and <=), ``and`` and ``or``, a dropped
    ``not``, an integer one more or less, a truth value or a text emptied, a condition made true or false, a statement
    removed, a returned value made ``None``. Docstrings and annotations are left alone.

    Raises:
        UsageError: the program does not parse or is nested too deeply.
    """
    try:
        tree = ast.parse(source)
        original = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"a program that does not parse has no mutants: {error}") from None
    if _depth(tree) > _DEEPEST:
        raise UsageError(f"a program nested more than {_DEEPEST} deep is not mutated")
    seen, found = {original}, []
    skipped = _untouched(tree)
    for node in list(ast.walk(tree)):
        if id(node) in skipped:
            continue
        for change in list(_changes(node)):
            text = _with(tree, node, change)
            if text not in seen:
                seen.add(text)
                found.append(Mutant(text, change.kind, getattr(node, "lineno", change.line), change.text))
    return sorted(found, key=lambda m: m.line)


def mutation_score(
    source: str,
    passes: Callable[[str], bool | None],
    same: Callable[[str], bool | None] | None = None,
    most: int | None = None,
) -> MutationReport:
    """Run a suite on the mutants of a right program.

    Args:
        source: the right program.
        passes: whether a program passes every test of the suite; ``None`` if it could not be judged.
        same: whether a program behaves as the right one on many further inputs (see
            :func:`assay.audit.suite.inputs.separating`); asked of survivors. Without it no mutant is taken to be
            equivalent.
        most: mutants looked at, evenly spread over the program; all unless given.

    Raises:
        UsageError: the program does not parse, or does not itself pass.
    """
    if passes(source) is not True:
        raise UsageError("the program that is mutated does not pass the suite itself")
    chosen: Sequence[Mutant] = mutants(source)
    if most is not None and len(chosen) > most:
        chosen = [chosen[i * len(chosen) // most] for i in range(most)]
    killed, survived, equivalent, untold = [], [], [], []
    for mutant in chosen:
        verdict = passes(mutant.source)
        if verdict is None:
            untold.append(mutant)
        elif not verdict:
            killed.append(mutant)
        elif same is not None and same(mutant.source) is True:
            equivalent.append(mutant)
        else:
            survived.append(mutant)
    return MutationReport(tuple(killed), tuple(survived), tuple(equivalent), tuple(untold))


@dataclass(frozen=True, slots=True)
class Change:
    """``new`` in place of what a node has in ``field``, or in that field's list at ``index``."""

    kind: str
    text: str
    field: str
    new: object
    index: int | None = None
    line: int = 0


def _with(tree: ast.AST, node: ast.AST, change: Change) -> str:
    """Return the program after the change, which is then taken back."""
    owner: Any
    key: Any
    owner, key = (node.__dict__, change.field) if change.index is None else (getattr(node, change.field), change.index)
    old, owner[key] = owner[key], change.new
    try:
        return ast.unparse(tree)
    finally:
        owner[key] = old


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            for other in _BINARY.get(type(op), ()):
                yield Change("operator", f"{type(op).__name__} -> {other.__name__}", "op", other())
        case ast.Compare(ops=ops):
            for i, old in enumerate(ops):
                for new in _COMPARE[type(old)]:
                    yield Change("comparison", f"{type(old).__name__} -> {new.__name__}", "ops", new(), i)
        case ast.BoolOp(op=old_op):
            new_op = ast.Or if isinstance(old_op, ast.And) else ast.And
            yield Change("boolean", f"{type(old_op).__name__} -> {new_op.__name__}", "op", new_op())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            # `not x` becomes `not not x`: x as a truth value, without having to replace the node in its parent.
            yield Change("boolean", "not dropped", "operand", ast.UnaryOp(ast.Not(), operand))
        case ast.UnaryOp(op=ast.USub()):
            yield Change("operator", "minus dropped", "op", ast.UAdd())
        case ast.Constant(value=bool() as value):
            yield Change("constant", f"{value} -> {not value}", "value", not value)
        case ast.Constant(value=int() as value):
            for other_value in (value + 1, value - 1):
                yield Change("constant", f"{_short(value)} -> {_short(other_value)}", "value", other_value)
        case ast.Constant(value=str() as text) if text:
            yield Change("constant", "text emptied", "value", "")
        case ast.If() | ast.While() | ast.IfExp():
            if not isinstance(node, ast.While):
                yield Change("condition", "made true", "test", ast.Constant(True))
            yield Change("condition", "made false", "test", ast.Constant(False))
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield Change("return", "made None", "value", ast.Constant(None))
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(node, field, None)
        if isinstance(statements, list):
            for i, statement in enumerate(statements):
                if isinstance(statement, _REMOVABLE) and not (i == 0 and _is_text(statement)):
                    line = statement.lineno
                    yield Change("statement", f"line {line} removed", field, ast.Pass(), i, line)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _untouched(tree: ast.AST) -> set[int]:
    """Docstrings, annotations and the pieces of formatted strings."""
    found: set[int] = set()
    for node in ast.walk(tree):
        roots: list[ast.AST | None] = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            roots.append(node.value)
        if isinstance(node, ast.JoinedStr):
            roots += [value for value in node.values if isinstance(value, ast.Constant)]
        if isinstance(node, ast.FormattedValue):
            roots.append(node.format_spec)
        for root in roots:
            if isinstance(root, ast.AST):
                found |= {id(n) for n in ast.walk(root)}
    return found


def _depth(tree: ast.AST) -> int:
    deepest, level = 0, [tree]
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        deepest += 1
    return deepest


def _short(value: int) -> str:
    return str(value) if value.bit_length() < 64 else "a large number"
