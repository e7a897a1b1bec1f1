"""Functions over a made-up world, as tools: look-ups that lead to the next look-up, and sums of what they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.environments.naming import FIRST, made_up
from assay.environments.tools import ToolError
from assay.types import Tool

Style = Literal["words", "compact"]


@dataclass(frozen=True, slots=True)
class Relation:
    """A property that every entity of a kind has one of, and no two the same.

    Attributes:
        subject: kind of what has it.
        value: kind of what it is, or what it counts, one of :data:`UNITS`.
        noun: how it is spoken of, "the ... of x".
    """

    subject: str
    value: str
    noun: str


RELATIONS = (
    Relation("person", "town", "birthplace"),
    Relation("person", "company", "employer"),
    Relation("person", "person", "teacher"),
    Relation("person", "years", "age"),
    Relation("town", "person", "mayor"),
    Relation("town", "river", "river"),
    Relation("town", "people", "population"),
    Relation("town", "metres", "altitude"),
    Relation("company", "person", "director"),
    Relation("company", "town", "seat"),
    Relation("company", "people", "headcount"),
    Relation("river", "town", "mouth"),
    Relation("river", "metres", "depth"),
    Relation("book", "person", "author"),
    Relation("book", "company", "publisher"),
    Relation("book", "pages", "page count"),
)
UNITS: dict[str, dict[str, int]] = {
    "years": {"years": 1, "quarters": 4, "months": 12},
    "metres": {"metres": 1, "centimetres": 100, "millimetres": 1000},
    "people": {"people": 1},
    "pages": {"pages": 1},
}
"""What numbers count, and by how much a number is multiplied in another unit."""
EACH = 6
"""Entities of a kind."""
LETTERS = "fghk"
"""Names of the compact style's functions, each of them a permutation of the digits."""


@dataclass(frozen=True, slots=True)
class Function:
    """A tool, and what it returns.

    ``value`` is given arguments that fit the schema; it raises ToolError where it has no value for them.
    """

    tool: Tool
    value: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Library:
    """What is true in one task's world, and the functions that tell it.

    Attributes:
        relations: there are; those of the compact style are of the kind ``digit``.
        entities: by kind.
        facts: value of a relation (its place in ``relations``) for an entity.
        complexity: see :class:`~assay.environments.functions.environment.Functions`.
    """

    relations: tuple[Relation, ...]
    entities: Mapping[str, Sequence[Any]]
    facts: Mapping[tuple[int, Any], Any]
    complexity: int

    def name(self, relation: int) -> str:
        """Return the name of the function that tells a relation."""
        r = self.relations[relation]
        if r.subject == "digit":
            return r.noun
        return f"{r.subject}_{'facts' if self.complexity else r.noun.replace(' ', '_')}"

    def arguments(self, relation: int, entity: Any, unit: str | None) -> dict[str, Any]:
        """Return the arguments it takes for an entity, with the number in a unit."""
        r = self.relations[relation]
        if r.subject == "digit":
            return {"x": entity}
        made = {"name" if self.complexity else r.subject: entity}
        if self.complexity:
            made["fact"] = r.noun
        if self.complexity > 1:
            made["unit"] = unit or "none"
        return made

    def asked(self, relation: int, unit: str | None, of: str) -> str:
        """Return how a relation of something is asked for."""
        r = self.relations[relation]
        if r.subject == "digit":
            return f"{r.noun}({of})"
        told = f"the {r.subject} {of}" if r.subject == "book" else of  # nothing leads to a book
        return f"the {r.noun}{f' in {unit}' if unit else ''} of {told}"

    def functions(self) -> dict[str, Function]:
        """Return all there are, by name."""
        made: dict[str, list[int]] = {}
        for i in range(len(self.relations)):
            made.setdefault(self.name(i), []).append(i)
        found = {name: self._lookup(name, relations) for name, relations in made.items()}
        return found if "digit" in self.entities else {**found, **ARITHMETIC}

    def _lookup(self, name: str, places: Sequence[int]) -> Function:
        subject = self.relations[places[0]].subject
        nouns = {self.relations[i].noun: i for i in places}
        units = [u for i in places for u in UNITS.get(self.relations[i].value, {})]
        properties: dict[str, Any]
        if subject == "digit":
            properties = {"x": {"type": "integer"}}
            words = f"Return {name}(x)."
        elif not self.complexity:
            properties = {subject: {"type": "string"}}
            words = f"Return the {next(iter(nouns))} of a {subject}, by its name."
        else:
            properties = {"name": {"type": "string"}, "fact": {"type": "string", "enum": list(nouns)}}
            words = f"Return a fact about the {subject} of a name."
            if self.complexity > 1:
                properties["unit"] = {"type": "string", "enum": ["none", *dict.fromkeys(units)]}
                words += " A number is in the unit that is asked for; what is no number has the unit none."
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

        def value(arguments: Mapping[str, Any]) -> Any:
            entity = arguments.get("x", arguments.get("name", arguments.get(subject)))
            relation = nouns[arguments["fact"]] if "fact" in arguments else places[0]
            if (relation, entity) not in self.facts:
                raise ToolError(f"there is no {subject} {str(entity)[:60]!r}")
            found = self.facts[relation, entity]
            if "unit" not in arguments:
                return found
            known = UNITS.get(self.relations[relation].value, {"none": 1})
            if arguments["unit"] not in known:
                raise ToolError(f"the {arguments['fact']} has the unit {' or '.join(known)}")
            return found * known[arguments["unit"]] if isinstance(found, int) else found

        return Function(Tool(name, words, schema), value)


def _arithmetic(name: str, words: str, of: Callable[[float, float], float]) -> Function:
    numbers = {"a": {"type": "number"}, "b": {"type": "number"}}
    schema = {"type": "object", "properties": numbers, "required": ["a", "b"], "additionalProperties": False}
    return Function(Tool(name, words, schema), lambda arguments: of(arguments["a"], arguments["b"]))


ARITHMETIC = {
    "sum": _arithmetic("sum", "Return the sum of two numbers.", lambda a, b: a + b),
    "difference": _arithmetic("difference", "Return by how much two numbers differ.", lambda a, b: abs(a - b)),
    "product": _arithmetic("product", "Return the product of two numbers.", lambda a, b: a * b),
}


def make_library(rng: np.random.Generator, style: Style, complexity: int) -> Library:
    """Return a world and its functions, drawn from ``rng``."""
    if style == "compact":
        letters = tuple(Relation("digit", "digit", letter) for letter in LETTERS)
        tables = [rng.permutation(10) for _ in letters]
        digits = {(i, x): int(table[x]) for i, table in enumerate(tables) for x in range(10)}
        return Library(letters, {"digit": range(10)}, digits, 0)
    names = made_up(rng, 5 * EACH)
    entities = {
        kind: [f"{rng.choice(FIRST)} {next(names)}" if kind == "person" else next(names) for _ in range(EACH)]
        for kind in ("person", "town", "company", "river", "book")
    }
    facts: dict[tuple[int, Any], Any] = {}
    for i, relation in enumerate(RELATIONS):
        subjects = entities[relation.subject]
        if relation.value in UNITS:
            low, high = {"years": (20, 80), "metres": (3, 900)}.get(relation.value, (100, 9000))
            values: Sequence[Any] = (low + rng.choice(high - low, EACH, replace=False)).tolist()
        else:
            values = [entities[relation.value][k] for k in rng.permutation(EACH)]
            if relation.subject == relation.value:  # nobody is his own teacher
                order = rng.permutation(EACH).tolist()
                after = dict(zip(order, [*order[1:], order[0]], strict=True))
                values = [subjects[after[k]] for k in range(EACH)]
        facts.update({(i, s): v for s, v in zip(subjects, values, strict=True)})
    return Library(RELATIONS, entities, facts, complexity)
