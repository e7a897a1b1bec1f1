"""Reads a Python program without running it; in the sandbox, because parsers can be made to run out of stack."""

from __future__ import annotations

import ast
import warnings
from typing import Any

BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.comprehension)


def analyse(source: str, flakes: bool) -> dict[str, Any]:
    """Return ``parses`` and ``compiles`` (empty, or what is wrong), functions' sizes, and pyflakes' ``flakes``."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {"parses": "", "compiles": "", "functions": [], "lines": _lines(source), "flakes": []}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found["parses"] = found["compiles"] = _told(error)
        return found
    try:
        compile(source, "main.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found["compiles"] = _told(error)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            found["functions"].append([node.name, complexity(node), lines])
    found["functions"].append(["the module", complexity(tree), 0])
    if flakes:
        found["flakes"] = _flakes(tree)
    return found


def complexity(node: ast.AST) -> int:
    """McCabe's number of ``node`` without the functions inside it: one more than its decisions."""
    count, waiting = 1, list(ast.iter_child_nodes(node))
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(inner, BRANCHES):
            count += 1 + (len(inner.ifs) if isinstance(inner, ast.comprehension) else 0)
        elif isinstance(inner, ast.BoolOp):
            count += len(inner.values) - 1
        elif isinstance(inner, ast.match_case):
            count += not (isinstance(inner.pattern, ast.MatchAs) and inner.pattern.pattern is None)
        waiting += ast.iter_child_nodes(inner)
    return count


def _flakes(tree: ast.Module) -> list[str]:
    from pyflakes import checker

    messages = sorted(checker.Checker(tree).messages, key=lambda message: (message.lineno, message.col))
    return [f"line {m.lineno}: {m.message % m.message_args}"[:200] for m in messages[:100]]


def _lines(source: str) -> int:
    return sum(1 for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _told(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"[:200]
    return f"{type(error).__name__}: {error}"[:200]
