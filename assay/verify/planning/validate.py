"""Executing a plan: states, conditions and effects of ground actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from assay.verify.logic.sexpr import Node, show
from assay.verify.planning.model import Domain, PddlError, Problem, Types, typed

Atom = tuple[str, ...]
Binding = Mapping[str, str]
MAX_WORK = 1_000_000
"""Conditions and effects evaluated for one plan; beyond that the plan is not judged."""


class TooMuch(RuntimeError):
    """Quantifiers over many objects made the plan too long to check."""


@dataclass(frozen=True, slots=True)
class State:
    facts: frozenset[Atom]
    values: Mapping[Atom, float]


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a plan: its name and the objects it is applied to, in lower case."""

    name: str
    objects: tuple[str, ...]

    def __str__(self) -> str:
        return f"({' '.join((self.name, *self.objects))})"


class World:
    """A domain and a problem, with the objects of each type, and a count of the work done.

    Raises:
        PddlError: when made, if the types have a cycle.
    """

    def __init__(self, domain: Domain, problem: Problem):
        self.domain, self.problem = domain, problem
        self.work = 0
        self._above = {kind: self._ancestors(kind) for kind in domain.types}
        self._members = {
            kind: tuple(name for name, kinds in problem.objects.items() if self.is_a(kinds, (kind,)))
            for kind in domain.types
        }

    def _ancestors(self, kind: str) -> frozenset[str]:
        found, pending = {kind, "object"}, [kind]
        while pending:
            for parent in self.domain.types[pending.pop()]:
                if parent == kind and kind != "object":
                    raise PddlError(f"type {kind} is its own ancestor")
                if parent not in found:
                    found.add(parent)
                    pending.append(parent)
        return frozenset(found)

    def is_a(self, kinds: Types, wanted: Types) -> bool:
        """Say whether an object declared as ``kinds`` may stand where ``wanted`` is asked."""
        return any(w in self._above[kind] for kind in kinds for w in wanted)

    @property
    def initial(self) -> State:
        return State(self.problem.facts, dict(self.problem.values))

    def apply(self, state: State, step: Step) -> tuple[State | None, str]:
        """Return the state after ``step``, or ``None`` and the reason that it cannot be taken."""
        action = self.domain.actions.get(step.name)
        if action is None:
            return None, f"there is no action {step.name!r}"
        if len(step.objects) != len(action.parameters):
            return None, f"{step.name} takes {len(action.parameters)} objects, not {len(step.objects)}"
        for name, (variable, kinds) in zip(step.objects, action.parameters, strict=True):
            if name not in self.problem.objects:
                return None, f"there is no object {name!r}"
            if not self.is_a(self.problem.objects[name], kinds):
                return None, f"{name} is no {' or '.join(kinds)}, as {variable} has to be"
        binding = {variable: name for name, (variable, _) in zip(step.objects, action.parameters, strict=True)}
        false = self.first_false(action.precondition, state, binding)
        if false is not None:
            return None, f"{false} does not hold"
        added: set[Atom] = set()
        deleted: set[Atom] = set()
        values = dict(state.values)
        try:
            self._effect(action.effect, state, binding, added, deleted, values)
        except (KeyError, ZeroDivisionError, OverflowError) as error:
            return None, f"an effect has no number: {error}"
        # As PDDL has it: what is both deleted and added is there afterwards.
        return State((state.facts - deleted) | added, values), ""

    def first_false(self, node: Node, state: State, binding: Binding) -> str | None:
        """Return the first conjunct of a condition that is false in ``state``, as text; ``None`` if all hold."""
        return next(
            (show(_ground(c, b)) for c, b in self.conjuncts(node, binding) if not self.holds(c, state, b)), None
        )

    def conjuncts(self, node: Node, binding: Binding) -> Iterator[tuple[Node, Binding]]:
        """Yield the conjuncts of ``and`` and ``forall``, each with what its variables stand for."""
        if node and node[0] == "and":
            for inner in node[1:]:
                yield from self.conjuncts(inner, binding)
        elif node and node[0] == "forall":
            for extended in self._extensions(node[1], binding):
                yield from self.conjuncts(node[2], extended)
        elif node:
            yield node, binding

    def holds(self, node: Node, state: State, binding: Binding) -> bool:
        """Say whether a condition is true; a comparison of a number that is not defined is false."""
        self._count()
        if not node:
            return True
        head, *rest = node
        if head == "and":
            return all(self.holds(inner, state, binding) for inner in rest)
        if head == "or":
            return any(self.holds(inner, state, binding) for inner in rest)
        if head == "not":
            return not self.holds(rest[0], state, binding)
        if head == "imply":
            return not self.holds(rest[0], state, binding) or self.holds(rest[1], state, binding)
        if head in ("forall", "exists"):
            every = (self.holds(rest[1], state, extended) for extended in self._extensions(rest[0], binding))
            return all(every) if head == "forall" else any(every)
        if head == "=" and all(isinstance(term, str) and _name(term, binding) in self.problem.objects for term in rest):
            return _name(rest[0], binding) == _name(rest[1], binding)
        if head in ("<", "<=", "=", ">=", ">"):
            try:
                left, right = (self.value(term, state, binding) for term in rest)
            except (KeyError, ZeroDivisionError, OverflowError):
                return False
            return {"<": left < right, "<=": left <= right, "=": left == right, ">=": left >= right, ">": left > right}[
                head
            ]
        return _atom(node, binding) in state.facts

    def value(self, node: Node, state: State, binding: Binding) -> float:
        """Return a numeric expression's value; raise KeyError for a fluent without one."""
        self._count()
        if isinstance(node, str):
            return state.values[(node,)] if node in self.domain.functions else float(node)
        head, *rest = node
        if head not in ("+", "-", "*", "/"):
            return state.values[_atom(node, binding)]
        first, *others = (self.value(term, state, binding) for term in rest)
        if head == "-" and not others:
            return -first
        for other in others:
            first = {"+": first.__add__, "-": first.__sub__, "*": first.__mul__, "/": first.__truediv__}[head](other)
        return first

    def _effect(
        self,
        node: Node,
        state: State,
        binding: Binding,
        added: set[Atom],
        deleted: set[Atom],
        values: dict[Atom, float],
    ) -> None:
        # Conditions and numbers are those of the state before the action.
        self._count()
        if not node:
            return
        head, *rest = node
        if head == "and":
            for inner in rest:
                self._effect(inner, state, binding, added, deleted, values)
        elif head == "forall":
            for extended in self._extensions(rest[0], binding):
                self._effect(rest[1], state, extended, added, deleted, values)
        elif head == "when":
            if self.holds(rest[0], state, binding):
                self._effect(rest[1], state, binding, added, deleted, values)
        elif head == "not":
            deleted.add(_atom(rest[0], binding))
        elif head in ("assign", "increase", "decrease", "scale-up", "scale-down"):
            fluent = _atom(rest[0] if isinstance(rest[0], list) else [rest[0]], binding)
            amount = self.value(rest[1], state, binding)
            if head == "assign":
                values[fluent] = amount
            elif head in ("increase", "decrease"):
                values[fluent] = values[fluent] + (amount if head == "increase" else -amount)
            else:
                values[fluent] = values[fluent] * amount if head == "scale-up" else values[fluent] / amount
        else:
            added.add(_atom(node, binding))

    def _extensions(self, variables: Sequence[Node], binding: Binding) -> Iterator[Binding]:
        parameters = typed(variables)
        members = [
            [name for name in self.problem.objects if any(name in self._members[kind] for kind in kinds)]
            if len(kinds) > 1
            else self._members[kinds[0]]
            for _, kinds in parameters
        ]
        for names in product(*members):
            self._count()
            yield {**binding, **dict(zip((variable for variable, _ in parameters), names, strict=True))}

    def _count(self) -> None:
        self.work += 1
        if self.work > MAX_WORK:
            raise TooMuch(f"more than {MAX_WORK} conditions")


def _name(term: str, binding: Binding) -> str:
    return binding.get(term, term)


def _atom(node: Node, binding: Binding) -> Atom:
    return (node[0], *(binding.get(term, term) for term in node[1:]))


def _ground(node: Node, binding: Binding) -> Node:
    return binding.get(node, node) if isinstance(node, str) else [_ground(inner, binding) for inner in node]
