"""Small faults to put into a module: signs, constants, comparisons, denominators, conditions, a detach left out.

Each fault changes one place. What cannot change what a program computes stays as it is: annotations, decorators,
documentation, messages of errors, the claims that a paper registers for the lab and constants that they alone read.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# A table of its own: assay.audit.suite has one, but what faults are put into must not be imported before they are.
COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
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
OPERATE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLS = {"mean": "sum", "min": "max", "max": "min", "amin": "amax", "amax": "amin", "any": "all", "all": "any"}
CALLS |= {"log": "exp", "exp": "log", "logical_and": "logical_or", "logical_or": "logical_and"}
EXACT = frozenset({"strict", "slots", "frozen", "keepdim", "dim", "default_factory"})
"""Keyword arguments whose values are not tried: what they may be follows from shapes, or nothing follows from them."""
ALONG = frozenset({"sum", "mean", "any", "all", "max", "min", "amax", "amin", "argmax", "argmin", "cumsum", "gather"})
ALONG |= {"softmax", "log_softmax", "logsumexp", "flip", "size", "squeeze", "unsqueeze", "flatten", "cat", "stack"}
"""Methods whose whole numbers among the arguments are dimensions, as ``EXACT`` as those called so."""
SIZE = 1.5
"""A constant other than 0 that is no whole number becomes this many times itself."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One changed place: the line it is in, what was done, the module with it, and the lines that run it.

    ``lines`` are those of the statement, or the head of a statement with others in it; none where it runs as the
    module is imported.
    """

    line: int
    what: str
    tree: ast.Module
    lines: range

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def faults(source: str) -> list[Fault]:
    """Return every fault of a module's text, in the order of its lines."""
    found = []
    told = claimed(ast.parse(source))
    for index, node in enumerate(ast.walk(ast.parse(source))):
        for number in range(len(list(changes(node)))):
            tree = ast.parse(source)
            place = parents(tree)
            here = next(n for i, n in enumerate(ast.walk(tree)) if i == index)
            if not spared(here, place, told):
                change = list(changes(here))[number]
                before, line, lines = short(here), getattr(here, "lineno", 0), ran(here, place)
                after = change(place)
                found.append(Fault(line, f"{before} -> {short(after)}", ast.fix_missing_locations(tree), lines))
    return sorted(found, key=lambda fault: fault.line)


def short(node: ast.AST) -> str:
    """A node's text; of a statement with others in it, the line it begins with."""
    return ast.unparse(node).partition("\n")[0]


Place = dict[ast.AST, tuple[ast.AST, str, int | None]]
"""Of each node the one it is in, the field it fills, and its number there where the field is a list."""
Change = Callable[[Place], ast.AST]
"""Changes a tree in one place and returns what stands there now."""


def parents(tree: ast.AST) -> Place:
    place: Place = {}
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for i, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST):
                    place[child] = (node, name, i if isinstance(value, list) else None)
    return place


def ran(node: ast.AST, place: Place) -> range:
    """Return the lines of the statement in a function that a node is of; none outside functions."""
    statement: ast.AST | None = None
    while node in place:
        statement = statement or (node if isinstance(node, ast.stmt) else None)
        up, field, _ = place[node]
        if statement and isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef) and field == "body":
            within = getattr(statement, "body", [])
            end = within[0].lineno - 1 if within else statement.end_lineno
            return range(statement.lineno, max(end, statement.lineno) + 1)
        node = up
    return range(0)


def claimed(tree: ast.Module) -> set[str]:
    """Return the names of a module's constants that nothing reads but claims, and others of these constants."""
    place = parents(tree)
    own = {constant(statement) for statement in tree.body} - {""}
    reads = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in own]
    found = {n.id for n in reads}
    while other := {n.id for n in reads if n.id in found and not of_claims(n, place, found)}:
        found -= other
    return found


def fingerprint(sources: Iterable[str]) -> str:
    """Return a short hash of what modules compute: their text without documentation, comments and claims."""
    return hashlib.sha256("\0".join(map(computes, sources)).encode()).hexdigest()[:12]


def computes(source: str) -> str:
    """Return a module's text without documentation, what a row says of itself, claims and what they alone read."""
    tree = ast.parse(source)
    told = claimed(tree)
    tree.body = [statement for statement in tree.body if constant(statement) not in told]
    return ast.unparse(Computing().visit(tree))


class Computing(ast.NodeTransformer):
    """Leaves out documentation, claims, and what a row says of itself."""

    def visit_keyword(self, node: ast.keyword) -> ast.keyword | None:
        return None if node.arg in ("essentials", "choices", "lacks") else node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        told = isinstance(node.value, ast.Constant) or (
            isinstance(node.value, ast.Call) and called(node.value) == "claims"
        )
        return None if told else node


def constant(statement: ast.AST) -> str:
    """The name that a statement gives a value, and no other; empty for other statements."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def of_claims(node: ast.AST, place: Place, told: set[str]) -> bool:
    """Whether a node is in a claim, or in a constant that claims alone read."""
    while node in place:
        up, _, _ = place[node]
        if isinstance(up, ast.Call) and called(up) in ("claims", "Claim"):
            return True
        if isinstance(up, ast.Module):
            return constant(node) in told
        node = up
    return False


def spared(node: ast.AST, place: Place, told: set[str]) -> bool:
    """Whether a node is in something that computes nothing, or nothing a test could see."""
    if of_claims(node, place, told):
        return True
    while node in place:
        up, field, _ = place[node]
        if field in ("annotation", "returns", "decorator_list") or isinstance(
            up, ast.Raise | ast.Assert | ast.JoinedStr
        ):
            return True
        if isinstance(up, ast.keyword) and up.arg in EXACT:
            return True
        if isinstance(up, ast.Call) and called(up) == "isinstance":
            return True
        if isinstance(up, ast.Call) and field == "args" and along(up.func) and dimension(node):
            return True
        if isinstance(up, ast.If) and isinstance(up.test, ast.Name) and up.test.id == "TYPE_CHECKING":
            return True
        node = up
    return False


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def along(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in ALONG


def dimension(node: ast.AST) -> bool:
    """Whether a node is a whole number, or one less than 0."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) is int


def changes(node: ast.AST) -> Iterator[Change]:
    """Yield what can be done to one node."""
    match node:
        case ast.Compare(ops=[one]):
            for other in COMPARE[type(one)]:
                yield assign(node, "ops", [other()])
        case ast.Compare(ops=several):
            for i, one in enumerate(several):
                for other in COMPARE[type(one)]:
                    yield assign(node, "ops", [*several[:i], other(), *several[i + 1 :]])
        case ast.BoolOp(op=op):
            yield assign(node, "op", ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATE:
            yield assign(node, "op", OPERATE[type(op)]())
        case ast.UnaryOp(operand=inner):
            yield replace(node, inner)
        case ast.Constant(value=bool() as value):
            yield assign(node, "value", not value)
        case ast.Constant(value=int() as value):
            yield assign(node, "value", value + 1)
        case ast.Constant(value=float() as value):
            yield assign(node, "value", value * SIZE or 1.0)
        case ast.Call(func=ast.Attribute(value=inner, attr="detach")):
            yield replace(node, inner)
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in CALLS:
            yield assign(function, "attr", CALLS[name], of=node)
        case ast.Call(func=ast.Name(id=name) as function) if name in CALLS:
            yield assign(function, "id", CALLS[name], of=node)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if isinstance(
            test, ast.Name | ast.Attribute | ast.Call
        ):
            yield assign(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Continue():
            yield replace(node, ast.Break())
        case ast.Break():
            yield replace(node, ast.Continue())


def assign(node: ast.AST, field: str, value: object, of: ast.AST | None = None) -> Change:
    def change(place: Place) -> ast.AST:
        setattr(node, field, copy.copy(value))
        return of or node

    return change


def replace(node: ast.AST, other: ast.AST) -> Change:
    def change(place: Place) -> ast.AST:
        up, field, i = place[node]
        if i is None:
            setattr(up, field, other)
        else:
            getattr(up, field)[i] = other
        return other

    return change
