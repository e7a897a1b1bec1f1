"""A PDDL domain and problem as records, and what makes a condition, effect or expression well formed over them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.verify.logic.sexpr import Node

Types = tuple[str, ...]
"""Alternatives: ``(either a b)``, or one type."""
Parameters = tuple[tuple[str, Types], ...]

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_CONNECTIVES = ("and", "or", "not", "imply")
_QUANTIFIERS = ("forall", "exists")
_COMPARE = ("<", "<=", "=", ">=", ">")
_ARITHMETIC = ("+", "-", "*", "/")
_ASSIGN = ("assign", "increase", "decrease", "scale-up", "scale-down")


class PddlError(ValueError):
    """The text is no domain, problem or condition that is supported; the message says why."""


@dataclass(frozen=True, slots=True)
class Action:
    name: str
    parameters: Parameters
    precondition: Node
    effect: Node


@dataclass(frozen=True, slots=True)
class Domain:
    """``types`` maps a type to its parents; ``predicates`` and ``functions`` map names to their parameters."""

    name: str
    types: dict[str, Types]
    constants: dict[str, Types]
    predicates: dict[str, Parameters]
    functions: dict[str, Parameters]
    actions: dict[str, Action]


@dataclass(frozen=True, slots=True)
class Problem:
    """``metric`` is ``("minimize" | "maximize", expression)`` or ``None``."""

    objects: dict[str, Types]
    facts: frozenset[tuple[str, ...]]
    values: dict[tuple[str, ...], float]
    goal: Node
    metric: tuple[str, Node] | None


def typed(nodes: Sequence[Node]) -> Parameters:
    """Return ``((name, types), ...)`` of a list such as ``a b - t c``; without a type, ``object``."""
    found: list[tuple[str, Types]] = []
    waiting: list[str] = []
    rest = iter(nodes)
    for node in rest:
        if node == "-":
            kind = next(rest, None)
            kinds = tuple(kind[1:]) if isinstance(kind, list) and kind[:1] == ["either"] else (kind,)
            if not all(isinstance(k, str) for k in kinds):
                raise PddlError(f"{kind!r} is no type")
            found += [(name, kinds) for name in waiting]
            waiting = []
        elif isinstance(node, str):
            waiting.append(node)
        else:
            raise PddlError(f"{node!r} is no name")
    return (*found, *((name, ("object",)) for name in waiting))


def check_condition(node: Node, domain: Domain, names: set[str]) -> None:
    """Raise PddlError unless ``node`` is a condition over ``domain`` in which only ``names`` are free."""
    if not isinstance(node, list):
        raise PddlError(f"{node!r} is no condition")
    if not node:
        return
    head, *rest = node
    if head in _CONNECTIVES:
        if (head == "not" and len(rest) != 1) or (head == "imply" and len(rest) != 2):
            raise PddlError(f"{head!r} has {len(rest)} parts")
        for inner in rest:
            check_condition(inner, domain, names)
    elif head in _QUANTIFIERS:
        check_condition(rest[1], domain, names | _bound(rest, domain))
    elif head in _COMPARE and (head != "=" or any(_numeric(term) for term in rest)):
        _two(node)
        for term in rest:
            check_expression(term, domain, names)
    elif head == "=":
        _two(node)
        _terms(rest, names)
    else:
        applied(node, domain.predicates, names)


def check_effect(node: Node, domain: Domain, names: set[str]) -> None:
    """Raise PddlError unless ``node`` is an effect over ``domain`` in which only ``names`` are free."""
    if not isinstance(node, list):
        raise PddlError(f"{node!r} is no effect")
    if not node:
        return
    head, *rest = node
    if head == "and":
        for inner in rest:
            check_effect(inner, domain, names)
    elif head == "forall":
        check_effect(rest[1], domain, names | _bound(rest, domain))
    elif head == "when":
        _two(node)
        check_condition(rest[0], domain, names)
        check_effect(rest[1], domain, names)
    elif head == "not":
        [inner] = rest
        applied(inner, domain.predicates, names)
    elif head in _ASSIGN:
        _two(node)
        applied(rest[0] if isinstance(rest[0], list) else [rest[0]], domain.functions, names)
        check_expression(rest[1], domain, names)
    else:
        applied(node, domain.predicates, names)


def check_expression(node: Node, domain: Domain, names: set[str]) -> None:
    """Raise PddlError unless ``node`` is a numeric expression."""
    if isinstance(node, str):
        if not _numeric(node) and node not in domain.functions:
            raise PddlError(f"{node!r} is no number")
    elif node and node[0] in _ARITHMETIC:
        if len(node) < 2 or (len(node) == 2 and node[0] != "-"):
            raise PddlError(f"{node[0]!r} has {len(node) - 1} parts")
        for inner in node[1:]:
            check_expression(inner, domain, names)
    else:
        applied(node, domain.functions, names)


def _bound(rest: Sequence[Node], domain: Domain) -> set[str]:
    if len(rest) != 2 or not isinstance(rest[0], list):
        raise PddlError("a quantifier needs variables and one condition or effect")
    variables = typed(rest[0])
    for _, kinds in variables:
        known_types(kinds, domain.types)
    return {name for name, _ in variables}


def applied(node: Node, known: dict[str, Parameters], names: set[str]) -> None:
    if not isinstance(node, list) or not node or not isinstance(node[0], str) or node[0] not in known:
        raise PddlError(f"{node[0] if isinstance(node, list) and node else node!r} is not declared")
    if len(node) - 1 != len(known[node[0]]):
        raise PddlError(f"{node[0]} has {len(node) - 1} arguments, declared with {len(known[node[0]])}")
    _terms(node[1:], names)


def _terms(nodes: Sequence[Node], names: set[str]) -> None:
    unknown = next((node for node in nodes if not isinstance(node, str) or node not in names), None)
    if unknown is not None:
        raise PddlError(f"{unknown!r} is neither a variable here nor an object")


def known_types(kinds: Types, types: dict[str, Types]) -> None:
    unknown = next((kind for kind in kinds if kind not in types), None)
    if unknown is not None:
        raise PddlError(f"type {unknown} is not declared")


def _two(node: list[Node]) -> None:
    if len(node) != 3:
        raise PddlError(f"{node[0]!r} has {len(node) - 1} parts, not 2")


def _numeric(node: Node) -> bool:
    if isinstance(node, list):
        return True
    return _NUMBER.fullmatch(node) is not None
