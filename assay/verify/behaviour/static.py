"""What can be said of a world model without playing in it. It passes wrong dynamics: a floor, and no verdict."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from assay.verify.behaviour.model import Language, PddlModel, domain_of
from assay.verify.planning.model import PddlError
from assay.verify.text.exact import shorten


def fault(source: str, language: Language, problems: Sequence[str] = ()) -> str:
    """Return why a text is no world model, in a line; empty where it parses and has what it needs.

    A Python program has to parse and to define ``step`` of two parameters at its outermost level; a PDDL domain has to
    be one whose predicates, types and variables are declared, and over which the true problems can be read.
    """
    return _python(source) if language == "python" else _pddl(source, problems)


def _python(source: str) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"it is no Python: {shorten(str(error), 200)}"
    steps = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "step"]
    if not steps:
        return "it defines no function step(state, action)"
    given = steps[-1].args
    positional = len(given.posonlyargs) + len(given.args)
    needed = positional - len(given.defaults)
    if needed > 2 or (positional < 2 and not given.vararg) or any(d is None for d in given.kw_defaults):
        return "step must take a state and an action"
    return ""


def _pddl(source: str, problems: Sequence[str]) -> str:
    try:
        domain_of(source)
    except PddlError as error:
        return str(error)
    return next((w for w in PddlModel(source, problems).worlds if isinstance(w, str)), "")
