"""PDDL domains and problems as records. Conditions and effects stay S-expressions, checked when they are read.

Supported: STRIPS, typing (with ``either``), negative and disjunctive preconditions, equality, quantifiers, conditional
effects, constants, numeric fluents and action costs. Refused: durative actions, derived predicates, constraints,
preferences.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.verify.logic.sexpr import Node, parse
from assay.verify.planning.model import (
    Action,
    Domain,
    Parameters,
    PddlError,
    Problem,
    Types,
    applied,
    check_condition,
    check_effect,
    check_expression,
    known_types,
    typed,
)


def read_domain(text: str) -> Domain:
    """Return the domain that ``text`` defines; raise PddlError (or SyntaxFault) if it is none."""
    name, sections = _sections(text, "domain")
    types: dict[str, Types] = {"object": ()}
    constants: dict[str, Types] = {}
    predicates: dict[str, Parameters] = {}
    functions: dict[str, Parameters] = {"total-cost": ()}
    actions: dict[str, Action] = {}
    bodies = []
    for head, *rest in sections:
        if head == ":types":
            types |= dict(typed(rest))
        elif head == ":constants":
            constants |= dict(typed(rest))
        elif head == ":predicates":
            predicates |= {_name(node): typed(node[1:]) for node in _lists(rest)}
        elif head == ":functions":
            kept = [node for node in rest if isinstance(node, list)]  # "- number" says nothing new
            functions |= {_name(node): typed(node[1:]) for node in kept}
        elif head == ":action":
            bodies.append(rest)
        elif head != ":requirements":
            raise PddlError(f"{head} is not supported")
    for parent in [p for parents in types.values() for p in parents]:
        types.setdefault(parent, ("object",))
    types["object"] = ()
    domain = Domain(name, types, constants, predicates, functions, actions)
    for kinds in [kinds for named in (predicates, functions) for p in named.values() for _, kinds in p]:
        known_types(kinds, types)
    for rest in bodies:
        action = _action(rest)
        if action.name in actions:
            raise PddlError(f"action {action.name} is defined twice")
        actions[action.name] = action
        names = set(constants) | {variable for variable, _ in action.parameters}
        for alternatives in [kinds for _, kinds in action.parameters]:
            known_types(alternatives, types)
        check_condition(action.precondition, domain, names)
        check_effect(action.effect, domain, names)
    return domain


def read_problem(text: str, domain: Domain) -> Problem:
    """Return the problem that ``text`` defines over ``domain``; raise PddlError (or SyntaxFault) if it is none."""
    _, sections = _sections(text, "problem")
    objects = dict(domain.constants)
    facts: set[tuple[str, ...]] = set()
    values: dict[tuple[str, ...], float] = {("total-cost",): 0.0}
    goal: Node = None
    metric = None
    init: list[Node] = []
    for head, *rest in sections:
        if head == ":objects":
            objects |= dict(typed(rest))
        elif head == ":init":
            init = rest
        elif head == ":goal":
            [goal] = rest
        elif head == ":metric":
            metric = (rest[0], rest[1])
        elif head not in (":domain", ":requirements"):
            raise PddlError(f"{head} is not supported")
    for alternatives in objects.values():
        known_types(alternatives, domain.types)
    for node in _lists(init):
        if node[0] == "=" and len(node) == 3 and isinstance(node[1], list):
            applied(node[1], domain.functions, set(objects))
            values[tuple(node[1])] = float(node[2])
        elif node[0] == "=":
            raise PddlError("object fluents are not supported")
        elif node[0] != "not":
            applied(node, domain.predicates, set(objects))
            facts.add(tuple(node))
    if goal is None:
        raise PddlError("the problem has no :goal")
    check_condition(goal, domain, set(objects))
    if metric is not None:
        if metric[0] not in ("minimize", "maximize"):
            raise PddlError(f"the metric neither minimizes nor maximizes: {metric[0]}")
        metric = (metric[0], ["total-cost"] if metric[1] == "total-cost" else metric[1])
        if metric[1] not in ("total-time", ["total-time"]):
            check_expression(metric[1], domain, set(objects))
    return Problem(objects, frozenset(facts), values, goal, metric)


def _sections(text: str, kind: str) -> tuple[str, list[list[Node]]]:
    nodes = parse(text.lower(), max_depth=100)
    if len(nodes) != 1 or not isinstance(nodes[0], list) or nodes[0][:1] != ["define"]:
        raise PddlError(f"no single (define ({kind} ...)) in the text")
    _, header, *sections = nodes[0]
    if not isinstance(header, list) or header[:1] != [kind] or len(header) != 2:
        raise PddlError(f"not a {kind}: {header}")
    return str(header[1]), _lists(sections)


def _action(rest: Sequence[Node]) -> Action:
    name, *fields = rest
    given = dict(zip(fields[::2], fields[1::2], strict=True))
    unknown = set(given) - {":parameters", ":precondition", ":effect"}
    if unknown:
        raise PddlError(f"action {name}: {', '.join(sorted(map(str, unknown)))} is not supported")
    return Action(name, typed(given.get(":parameters", [])), given.get(":precondition", []), given.get(":effect", []))


def _lists(nodes: Sequence[Node]) -> list[list[Node]]:
    if not all(isinstance(node, list) and node for node in nodes):
        raise PddlError("a word stands where a list is expected")
    return list(nodes)


def _name(node: list[Node]) -> str:
    if not isinstance(node[0], str):
        raise PddlError(f"{node[0]!r} is no name")
    return node[0]
