"""Programs with one small fault in what they run: operators, constants, conditions, a step left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from assay.verify.formal.imperative.syntax import Assign, Claimed, Expr, If, Program, While

_OPERATORS: dict[str, tuple[str, ...]] = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "/": ("%",),
    "%": ("/",),
    "&&": ("||",),
    "||": ("&&",),
}
_PROOF = ("invariants", "decreases", "line", "value")


def variants(program: Program) -> Iterator[Program]:
    """Yield the program with each fault, one at a time; not all of them have types that fit."""
    method = program.method
    for body in _changed(method.body):
        yield Program(program.functions, replace(method, body=body))


def _changed(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple):
        for i, one in enumerate(tree):
            for other in _changed(one):
                yield (*tree[:i], other, *tree[i + 1 :])
            if isinstance(one, Assign):
                yield (*tree[:i], *tree[i + 1 :])
    elif is_dataclass(tree) and not isinstance(tree, type | Claimed):
        yield from _here(tree)
        for field in fields(tree):
            if field.name not in _PROOF:
                for other in _changed(getattr(tree, field.name)):
                    yield replace(tree, **{field.name: other})


def _here(node: Any) -> Iterator[Any]:
    if isinstance(node, If | While):
        yield replace(node, condition=Expr("!", (node.condition,)))
    if not isinstance(node, Expr):
        return
    if node.op == "int":
        yield replace(node, value=node.value + 1)
        yield replace(node, value=node.value - 1)
    elif node.op == "bool":
        yield replace(node, value=not node.value)
    elif len(node.args) == 2:
        for other in _OPERATORS.get(node.op, ()):
            yield replace(node, op=other)
    elif node.op == "-":
        yield node.args[0]
