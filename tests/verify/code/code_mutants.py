"""Small faults put into Python programs."""

from __future__ import annotations

import ast
import copy
import random

COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARE |= {ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
OPERATE = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Div: ast.Mult,
}


def mutants(source: str, entry: str, most: int, seed: int) -> list[str]:
    """Return at most ``most`` programs, each with one fault in the function ``entry`` of ``source``."""
    tree = ast.parse(source)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry)
    count = sum(1 for _ in ast.walk(function))
    made: list[str] = []
    for index in range(count):
        fresh = copy.deepcopy(tree)
        inner = next(n for n in fresh.body if isinstance(n, ast.FunctionDef) and n.name == entry)
        node = list(ast.walk(inner))[index]
        if _change(node):
            made.append(ast.unparse(ast.fix_missing_locations(fresh)))
    made = [text for text in dict.fromkeys(made) if text != ast.unparse(tree)]
    return random.Random(seed).sample(made, min(most, len(made)))


def _change(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        node.ops[0] = COMPARE[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATE:
        node.op = OPERATE[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        node.value = not node.value
    elif isinstance(node, ast.Constant) and type(node.value) is str and len(node.value) < 20:
        node.value += "x"
    elif isinstance(node, ast.Return) and node.value is not None:
        node.value = ast.Constant(None)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    else:
        return False
    return True
