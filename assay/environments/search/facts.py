"""A small made-up country: people, towns and events, the facts that join them, and an article on each."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from assay.environments.naming import FIRST, made_up
from assay.environments.search.corpus import Corpus, Document
from assay.tasks.seeded import generator


@dataclass(frozen=True, slots=True)
class Relation:
    """A property that every entity of a kind has one of.

    Attributes:
        subject: kind of what has it; ``value``: kind of what it is: an entity's, or one of :data:`VALUES`.
        noun: how it is spoken of, "the ... of x".
        told: sentences that tell it, of ``{s}`` and ``{o}``.
    """

    subject: str
    value: str
    noun: str
    told: tuple[str, ...]


RELATIONS = (
    Relation("person", "town", "birthplace", ("{s} was born in {o}.", "{s} came into the world in {o}.")),
    Relation("person", "person", "teacher", ("{s} learned the trade from {o}.", "The teacher of {s} was {o}.")),
    Relation("person", "trade", "profession", ("{s} worked as a {o}.", "By profession {s} was a {o}.")),
    Relation("person", "year", "year of birth", ("{s}'s year of birth is {o}.", "The birth of {s} fell in {o}.")),
    Relation("town", "region", "region", ("{s} lies in the region {o}.", "{s} belongs to the region {o}.")),
    Relation("town", "river", "river", ("The river {o} flows through {s}.", "{s} stands on the river {o}.")),
    Relation("town", "year", "founding year", ("{s} was founded in {o}.", "The founding of {s} dates from {o}.")),
    Relation("town", "person", "mayor", ("{o} is the mayor of {s}.", "{s} is governed by its mayor {o}.")),
    Relation("event", "town", "host town", ("The {s} is held in {o}.", "{o} is host to the {s}.")),
    Relation("event", "person", "winner", ("The {s} was won by {o}.", "{o} was the winner of the {s}.")),
    Relation(
        "event", "year", "first year", ("The {s} was first held in {o}.", "The {s} began in {o}, its first year.")
    ),
)
TRADES = str.split("baker cooper glazier weaver mason printer saddler tanner tailor potter brewer miller")
EVENTS = ("Fair", "Regatta", "Contest", "Festival", "Race", "Games")


@dataclass(frozen=True, slots=True)
class World:
    """What is true, what is told of it, and where.

    Attributes:
        kinds: entities by kind, and the other values there are by theirs.
        facts: value of each relation (its place in :data:`RELATIONS`) of each entity; a few have none.
        told: the facts that stand in an article.
        article: identifier of the document on each entity.
        corpus: the articles.
    """

    kinds: dict[str, tuple[str, ...]]
    facts: dict[tuple[str, int], str]
    told: frozenset[tuple[str, int]]
    article: dict[str, str]
    corpus: Corpus


@functools.lru_cache(maxsize=8)
def make_world(seed: int, documents: int, silence: float = 0.15) -> World:
    """Return the country that belongs to a seed.

    Args:
        documents: articles in all, at least 10: a fifth on towns, a fifth on events, the others on people.
        silence: share of facts that no article tells.
    """
    rng = generator(seed, documents)
    names = made_up(rng, 2 * documents + 40)
    towns, events = documents // 5, documents // 5
    people = documents - towns - events
    kinds = {
        "town": tuple(next(names) for _ in range(towns)),
        "person": tuple(f"{rng.choice(FIRST)} {next(names)}" for _ in range(people)),
        "event": tuple(f"{next(names)} {rng.choice(EVENTS)}" for _ in range(events)),
        "region": tuple(next(names) for _ in range(8)),
        "river": tuple(next(names) for _ in range(12)),
        "trade": tuple(TRADES),
        "year": tuple(str(year) for year in range(1700, 1900)),
    }
    facts = {}
    for r, relation in enumerate(RELATIONS):
        for i, subject in enumerate(kinds[relation.subject]):
            # A teacher is someone further up, so that nobody has taught his own teacher; the first had none.
            own = kinds["person"][:i] if relation.noun == "teacher" else kinds[relation.value]
            if own:
                facts[subject, r] = str(rng.choice(own))
    told = frozenset(key for key in facts if rng.random() >= silence)
    numbers = rng.choice(16**5, size=documents, replace=False)
    entities = [*kinds["town"], *kinds["event"], *kinds["person"]]
    article = {entity: f"d{int(n):05x}" for entity, n in zip(entities, numbers, strict=True)}
    written = []
    for entity in entities:
        known = [r for r in range(len(RELATIONS)) if (entity, r) in told]
        lines = [
            str(rng.choice(RELATIONS[r].told)).format(s=entity, o=facts[entity, r]) for r in rng.permutation(known)
        ]
        written.append(Document(article[entity], entity, " ".join(lines) or f"Little is known of {entity}."))
    order = rng.permutation(len(written))
    return World(kinds, facts, told, article, Corpus([written[i] for i in order]))
