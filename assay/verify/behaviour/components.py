"""How many of a PDDL domain's pieces are those of another one, whatever its variables are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from assay.verify.logic.sexpr import Node, show
from assay.verify.planning.model import Domain, Parameters, typed

COMPONENTS = ("predicates", "parameters", "preconditions", "effects")
_CONNECTIVES = ("and", "or")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pieces agree, how many there are, and how many there should be."""

    hit: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        return self.hit / self.predicted if self.predicted else float(not self.gold)

    @property
    def recall(self) -> float:
        return self.hit / self.gold if self.gold else float(not self.predicted)

    @property
    def f1(self) -> float:
        """2 P R / (P + R); 1 where there is nothing and nothing should be."""
        both = self.predicted + self.gold
        return 2 * self.hit / both if both else 1.0


def micro(counts: Iterable[Counts]) -> Counts:
    """Return the counts of all components together, whose F1 is the micro average."""
    every = list(counts)
    return Counts(sum(c.hit for c in every), sum(c.predicted for c in every), sum(c.gold for c in every))


def macro(counts: Iterable[Counts]) -> float:
    """Return the mean of the components' F1."""
    every = list(counts)
    return sum(c.f1 for c in every) / len(every)


def compared(predicted: Domain, gold: Domain) -> dict[str, Counts]:
    """Return the counts of each of :data:`COMPONENTS`.

    A piece is a predicate with its types; a parameter of an action by its place and type; a conjunct of a precondition;
    a part of an effect. Names are compared without case, ``_`` and ``-`` being one; variables by their place.

    Source: Text2World (arXiv 2502.13092), by which Agent2World (arXiv 2512.22336) is measured.
    """
    mine, theirs = pieces(predicted), pieces(gold)
    return {name: Counts(len(mine[name] & theirs[name]), len(mine[name]), len(theirs[name])) for name in COMPONENTS}


def pieces(domain: Domain) -> dict[str, set[str]]:
    """Return the pieces of each component, as text."""
    out: dict[str, set[str]] = {name: set() for name in COMPONENTS}
    for name, parameters in domain.predicates.items():
        out["predicates"].add(f"{_name(name)} {_types(parameters)}")
    for action in domain.actions.values():
        place = _name(action.name)
        names = {variable: f"?{i}" for i, (variable, _) in enumerate(action.parameters)}
        out["parameters"] |= {f"{place} {i} {_types([one])}" for i, one in enumerate(action.parameters)}
        for component, node in (("preconditions", action.precondition), ("effects", action.effect)):
            out[component] |= {f"{place} {show(_plain(inner, names))}" for inner in _conjuncts(node)}
    return out


def _conjuncts(node: Node) -> Iterator[Node]:
    if node and node[0] == "and":
        for inner in node[1:]:
            yield from _conjuncts(inner)
    elif node:
        yield node


def _plain(node: Node, names: Mapping[str, str]) -> Node:
    """Return a condition or effect in one of the ways it can be written."""
    if isinstance(node, str):
        return names.get(node, _name(node))
    if node and node[0] in ("forall", "exists"):
        bound = typed(node[1])
        inner = {**names, **{variable: f"?{len(names) + i}" for i, (variable, _) in enumerate(bound)}}
        return [node[0], _types(bound), _plain(node[2], inner)]
    made = [_plain(one, names) for one in node]
    if made and made[0] in (*_CONNECTIVES, "="):
        return [made[0], *sorted(made[1:], key=show)]
    return made


def _types(parameters: Parameters | list[tuple[str, tuple[str, ...]]]) -> str:
    return " ".join("/".join(sorted(map(_name, kinds))) for _, kinds in parameters)


def _name(text: str) -> str:
    return text.lower().replace("_", "-")
