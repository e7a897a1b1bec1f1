"""World models with one fault, which parse as the true one does: what static validation lets through."""

from __future__ import annotations

from collections.abc import Iterator

from assay.environments.repository.bugs import bugs
from assay.verify.behaviour.model import Language
from assay.verify.logic.sexpr import Node, parse, show


def mutants(source: str, language: Language) -> list[tuple[str, str]]:
    """Return every model that has one fault: what is wrong, and the text.

    Of a program: changes of its syntax tree as people make them. Of a domain: a precondition is missing, an effect is
    negated, two arguments of an effect or a precondition are swapped.
    """
    if language == "python":
        return [(bug.kind, bug.put(source)) for bug in bugs(source)]
    return list(_domains(source))


def _domains(source: str) -> Iterator[tuple[str, str]]:
    [domain] = parse(source.lower())
    for number, section in enumerate(domain):
        if section[0] != ":action":
            continue
        for field in range(2, len(section) - 1, 2):
            for what, changed in _fields(section[field], section[field + 1]):
                new = [*section[: field + 1], changed, *section[field + 2 :]]
                yield what, show([*domain[:number], new, *domain[number + 1 :]])


def _fields(name: Node, node: Node) -> Iterator[tuple[str, Node]]:
    """Yield what a condition or effect could be by mistake."""
    if name not in (":precondition", ":effect"):
        return
    parts = node[1:] if node[0] == "and" else [node]
    for i, part in enumerate(parts):
        before, after = ["and", *parts[:i]], parts[i + 1 :]
        if name == ":precondition":
            yield "a precondition is missing", [*before, *after]
        else:
            negated = part[1] if part[0] == "not" else ["not", part]
            yield "an effect is negated", [*before, negated, *after]
        inner = part[1] if part[0] == "not" else part
        if len(inner) == 3 and inner[0] != "=":
            swapped = [inner[0], inner[2], inner[1]]
            yield "two arguments are swapped", [*before, ["not", swapped] if part[0] == "not" else swapped, *after]
