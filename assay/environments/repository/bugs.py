"""Bugs as people make them: one small change of a program's syntax tree, written into its text where it stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}


@dataclass(frozen=True, slots=True)
class Bug:
    """A change of a source: ``[start, end)``, in characters, becomes ``text``.

    Attributes:
        kind: what went wrong, in words.
        function: the function it is in, as ``name`` or ``Class.name``.
    """

    kind: str
    function: str
    start: int
    end: int
    text: str

    def put(self, source: str) -> str:
        """Return the source with the bug in it."""
        return source[: self.start] + self.text + source[self.end :]


def bugs(source: str) -> list[Bug]:
    """Return every bug that can be put into the functions of a source, each alone, in the order they stand there."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(row: int, column: int) -> int:
        # Columns of the tree count bytes.
        return starts[row - 1] + len(lines[row - 1].encode()[:column].decode())

    found = []
    for name, function in _functions(ast.parse(source)):
        for node in ast.walk(function):
            for kind, changed in _changes(node):
                start = place(node.lineno, node.col_offset)  # type: ignore[attr-defined]
                end = place(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
                text = ast.unparse(changed)
                if text != source[start:end]:
                    found.append(Bug(kind, name, start, end, text))
    return sorted(found, key=lambda bug: (bug.start, bug.end, bug.text))


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, ast.FunctionDef))


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a node could have been by mistake; a node without a place of its own has none."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        for i, operator in enumerate(node.ops):
            if type(operator) in COMPARED:
                yield "a comparison is wrong", _with(node, lambda n, i=i: _set(n.ops, i, COMPARED[type(n.ops[i])]()))
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        yield "an operator is wrong", _with(node, lambda n: setattr(n, "op", COMPUTED[type(n.op)]()))
    elif isinstance(node, ast.BoolOp):
        other = ast.And if isinstance(node.op, ast.Or) else ast.Or
        yield "a condition is wrong", _with(node, lambda n: setattr(n, "op", other()))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "a condition is wrong", node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "off by one", ast.Constant(node.value + 1)
        if node.value:
            yield "off by one", ast.Constant(node.value - 1)
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        yield "arguments are swapped", _with(node, lambda n: n.args.reverse())
    elif isinstance(node, ast.If) and not node.orelse:
        yield "a branch is missing", ast.Pass()
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "a step is missing", ast.Pass()


def _with(node: ast.AST, change: Callable[..., object]) -> ast.AST:
    made = deepcopy(node)
    change(made)
    return made


def _set(values: list[ast.cmpop], index: int, value: ast.cmpop) -> None:
    values[index] = value
