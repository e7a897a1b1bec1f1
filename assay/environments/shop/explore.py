"""Tasks found forwards: a start at the edge of the rules, an explorer who takes what they let him, and where that ends.

Nothing is made up backwards from calls: what a wish comes to is what the engine of rules allows from the start on.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.environments.naming import FIRST, made_up
from assay.environments.shop.database import Database, image
from assay.environments.shop.domain import Domain, Operation
from assay.environments.shop.themes import CLAUSES, THEMES, Clause, Theme, make_domain
from assay.environments.tools import ToolError
from assay.tasks.seeded import generator
from assay.verify.structured.state import Tables, distance, facts

Persona = Literal["plain", "terse", "wordy"]
Call = tuple[Operation, str, dict[str, Any]]

PROBES = 60
"""Starts at most in which a domain's rules are probed."""
RANKS = {"cheapest": ("price", 1), "dearest": ("price", -1), "earliest ending": ("last_day", 1)}
"""What a client can want of a category: the column, and whether the lowest (1) or the highest (-1) comes first."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client wants.

    Attributes:
        kind: ``take`` something of a category, ``change`` the quantity of a claim, ``cancel`` or ``confirm`` one.
        quantity: of what is taken or changed.
        category, rank: of what is taken.
        target: the resource, by its name, of a claim that there is.
    """

    kind: Literal["take", "change", "cancel", "confirm"]
    quantity: int = 0
    category: str = ""
    rank: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A task that holds: replayed on a fresh database, the calls lead to the goal.

    Attributes:
        domain, theme, clauses: whose rules hold.
        start, goal: the states.
        client: name of the actor; ``wishes`` what he wants, in this order.
        calls: accepted ones, in their order; ``refused`` those tried before, each with what was said.
        persona: how he speaks.
    """

    domain: Domain
    theme: Theme
    clauses: tuple[Clause, ...]
    start: Tables
    goal: Tables
    client: str
    wishes: tuple[Wish, ...]
    calls: tuple[Call, ...]
    refused: tuple[tuple[Call, str], ...]
    persona: Persona


@dataclass(slots=True)
class _Setting:
    """A start under construction."""

    theme: Theme
    rng: np.random.Generator
    today: int
    actors: list[dict[str, Any]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        claims = [{"number": i + 1, **row} for i, row in enumerate(self.claims)]
        t = self.theme
        return {
            t.actor: self.actors,
            "calendar": [{"today": self.today}],
            t.resource: self.resources,
            t.claim: claims,
        }


def explore(seed: int, index: int, themes: Sequence[str], rules: int, wishes: int) -> Found:
    """Return the task of a seed and an index.

    Settings are drawn until one holds: it takes two changes or more, a rule has refused something that the client
    would rather have had, and a replay of the accepted calls from the start ends in the very goal.

    Args:
        themes: one of which is drawn.
        rules: clauses of the policy, at most.
        wishes: at most, 2 or more.
    """
    rng = generator(seed, index)
    while True:
        theme = themes[int(rng.integers(len(themes)))]
        count = int(rng.integers(2, rules + 1))
        some = sorted(rng.choice(len(CLAUSES), count, replace=False).tolist())
        clauses = tuple(CLAUSES[i] for i in some)
        domain = proven(theme, clauses)
        words = THEMES[theme]
        setting = _set(words, rng)
        wanted = _wishes(setting, clauses, int(rng.integers(2, wishes + 1)), rng)
        _edge(setting, clauses, wanted, rng)
        start = setting.tables()
        client = setting.actors[0]
        persona: Persona = ("plain", "terse", "wordy")[int(rng.integers(3))]
        made, refused, goal = _pursue(domain, words, start, client["id"], wanted)
        found = Found(domain, words, clauses, start, goal, client["name"], wanted, made, refused, persona)
        if holds(found):
            return found


@functools.cache
def proven(theme: str, clauses: tuple[Clause, ...]) -> Domain:
    """Return the domain of a theme and clauses, once each of its rules has let a call through and refused one.

    Raises:
        ValueError: a rule that never does.
    """
    domain, words = make_domain(THEMES[theme], clauses), THEMES[theme]
    wanted = {(rule.event, rule.code) for rule in domain.rules if rule.code}
    refused: set[tuple[str, str]] = set()
    accepted: set[str] = set()
    for index in range(PROBES):
        rng = generator(index)
        setting = _set(words, rng)
        _edge(setting, clauses, _wishes(setting, clauses, 3, rng), rng)
        tables = setting.tables()
        database = Database(domain, image(domain, tables))
        for event, calls in _probes(words, tables, rng):
            with database.tried():
                try:
                    for call in calls:
                        database.call(*call)
                    accepted.add(event)
                except ToolError as error:
                    refused.add((event, str(error)))
        database.close()
        if wanted <= refused and {event for event, _ in wanted} <= accepted:
            return domain
    raise ValueError(f"no probe shows that these rules of {theme} act: {sorted(wanted - refused)}")


def _probes(theme: Theme, tables: Tables, rng: np.random.Generator) -> list[tuple[str, list[Call]]]:
    """Return calls after which a rule's event has come to pass or been refused."""
    a, r, c = theme.actor, theme.resource, theme.claim
    out: list[tuple[str, list[Call]]] = []
    client = tables[a][0]["id"]
    new = [{a: client, r: o["id"], "quantity": int(rng.integers(1, 10))} for o in tables[r]]
    out += [("insert", [("create", c, row)]) for row in new]
    out += [("insert", [("create", c, {**row, "quantity": 1}) for row in new[:4]])]
    out += [("insert", [("create", c, {**new[0], "status": "confirmed"})])]
    for row in tables[c]:
        key = {a: row[a], r: row[r]}
        confirm: Call = ("update", c, {**key, "status": "confirmed"})
        changed: Call = ("update", c, {**key, "quantity": int(rng.integers(1, 10))})
        removed: Call = ("delete", c, key)
        for event, call in (("update of quantity", changed), ("delete", removed), ("update of status", confirm)):
            out += [(event, [call]), (event, [confirm, call])]
    return out


def holds(found: Found) -> bool:
    """Whether a task is kept: two changes, a refusal, and a replay of its calls that ends in the very goal."""
    return replays(found.domain, found.start, found.goal, found.calls, [said for _, said in found.refused])


def replays(domain: Domain, start: Tables, goal: Tables, calls: Sequence[Call], refusals: Sequence[str]) -> bool:
    """Whether these calls make a task: two or more, a rule's refusal on the way, and the very goal when played anew."""
    if len(calls) < 2 or not any(said.startswith("POLICY") for said in refusals):
        return False
    database = Database(domain, image(domain, start))
    try:
        for operation, table, arguments in calls:
            database.call(operation, table, arguments)
        end = database.tables()
    except ToolError:
        return False
    finally:
        database.close()
    of = functools.partial(facts, keys=domain.keys, volatile=domain.volatile)
    return not distance(of(end), of(goal)) and distance(of(start), of(goal)) > 0


def _set(theme: Theme, rng: np.random.Generator) -> _Setting:
    """Return actors, resources and claims at random: the noise that a wish has to be found in."""
    names, setting = made_up(rng, 40), _Setting(theme, rng, int(rng.integers(100, 200)))
    letters = theme.resource[0].upper(), theme.actor[0].upper()
    numbers = rng.choice(9000, 30, replace=False) + 1000
    for i in range(3):
        setting.actors.append(
            {
                "id": f"{letters[1]}{numbers[i]}",
                "name": f"{rng.choice(FIRST)} {next(names)}",
                "balance": int(rng.integers(200, 400)),
                "tier": int(rng.integers(0, 2)),
            }
        )
    prices = rng.choice(np.arange(5, 60), 12, replace=False)
    days = rng.choice(60, 12, replace=False)
    for i in range(12):
        capacity = int(rng.integers(12, 30))
        setting.resources.append(
            {
                "id": f"{letters[0]}{numbers[3 + i]}",
                "name": next(names),
                "category": theme.categories[i % len(theme.categories)],
                "price": int(prices[i]),
                "capacity": capacity,
                "taken": int(rng.integers(0, capacity - 10)),
                "tier": 0,
                "last_day": int(setting.today + days[i]),
            }
        )
    for actor in setting.actors:
        for k in rng.choice(12, 2, replace=False).tolist():
            resource, quantity = setting.resources[k], int(rng.integers(1, 4))
            resource["taken"] += quantity
            setting.claims.append(
                {theme.actor: actor["id"], theme.resource: resource["id"], "quantity": quantity, "status": "asked"}
            )
    return setting


def _wishes(setting: _Setting, clauses: Sequence[Clause], count: int, rng: np.random.Generator) -> tuple[Wish, ...]:
    """Return what the client, who is the first actor, wants: always to take something, and other things besides."""
    t, client = setting.theme, setting.actors[0]
    own = [c for c in setting.claims if c[t.actor] == client["id"]]
    names = {r["id"]: r for r in setting.resources}
    held = {names[c[t.resource]]["category"] for c in own}
    free = [c for c in t.categories if c not in held]
    quantity = int(rng.integers(1, 4))
    ranks = [r for r in RANKS if r != "earliest ending" or "deadline" in clauses]
    take = Wish("take", quantity, str(rng.choice(free)), str(rng.choice(ranks)))
    others = []
    kinds = ["change", "cancel", *(["confirm"] if "status" in clauses else [])]
    for claim, kind in zip(own, rng.permutation(kinds).tolist(), strict=False):
        target = names[claim[t.resource]]["name"]
        new = claim["quantity"] + int(rng.integers(1, 4))
        others.append(Wish(kind, new if kind == "change" else 0, target=target))
    wanted = [take, *others[: count - 1]]
    return tuple(wanted[i] for i in rng.permutation(len(wanted)).tolist())


def _edge(setting: _Setting, clauses: Sequence[Clause], wanted: Sequence[Wish], rng: np.random.Generator) -> None:
    """Put the start at the edge of the rules: the first choice just out of reach, the second one just within it."""
    take = next(w for w in wanted if w.kind == "take")
    column, sign = RANKS[take.rank]
    of = sorted((r for r in setting.resources if r["category"] == take.category), key=lambda r: sign * r[column])
    first, second = of[0], of[1]
    client = setting.actors[0]
    ways = [c for c in ("capacity", "deadline", "tier", "price") if c in clauses]
    ways = [w for w in ways if (w, take.rank) not in (("deadline", "earliest ending"), ("price", "cheapest"))]
    if not ways:
        return
    way = str(rng.choice(ways))
    if way == "capacity":
        first["taken"] = first["capacity"] - take.quantity + 1
    elif way == "deadline":
        first["last_day"] = setting.today - 1
    elif way == "tier":
        first["tier"] = client["tier"] + 1
    elif wanted[0] is take:
        client["balance"] = first["price"] * take.quantity - 1
    if "capacity" in clauses and rng.random() < 0.5:
        second["taken"] = second["capacity"] - take.quantity
    if "deadline" in clauses and take.rank != "earliest ending" and rng.random() < 0.5:
        second["last_day"] = setting.today


def _pursue(
    domain: Domain, theme: Theme, start: Tables, client: str, wanted: Sequence[Wish]
) -> tuple[tuple[Call, ...], tuple[tuple[Call, str], ...], Tables]:
    """Pursue wishes in their order on the real engine: the adviser's menu, the client's pick, until one is let through.

    Returns:
        The calls that were accepted, those that were refused, and the state at the end.
    """
    made: list[Call] = []
    refused: list[tuple[Call, str]] = []
    database = Database(domain, image(domain, start))
    try:
        for wish in wanted:
            for call in _menu(theme, database.tables(), client, wish):
                try:
                    database.call(*call)
                except ToolError as error:
                    refused.append((call, str(error)))
                else:
                    made.append(call)
                    break
        return tuple(made), tuple(refused), database.tables()
    finally:
        database.close()


def _menu(theme: Theme, tables: Tables, client: str, wish: Wish) -> list[Call]:
    """Return the calls that would grant a wish, what the client likes best first."""
    a, r, c = theme.actor, theme.resource, theme.claim
    if wish.kind == "take":
        column, sign = RANKS[wish.rank]
        options = sorted((o for o in tables[r] if o["category"] == wish.category), key=lambda o: sign * o[column])
        return [("create", c, {a: client, r: o["id"], "quantity": wish.quantity}) for o in options]
    row: dict[str, Any] = {a: client, r: next(o["id"] for o in tables[r] if o["name"] == wish.target)}
    changes: Mapping[str, tuple[Operation, dict[str, Any]]] = {
        "change": ("update", {"quantity": wish.quantity}),
        "confirm": ("update", {"status": "confirmed"}),
        "cancel": ("delete", {}),
    }
    operation, values = changes[wish.kind]
    return [(operation, c, row | values)]


# What the user says

_OPENINGS: dict[Persona, str] = {
    "plain": "I am {name}. {wishes}",
    "terse": "{name}. {wishes}",
    "wordy": "Good day! My name is {name}, and I hope that you can help me with something. {wishes} Thank you so much!",
}


def speech(found: Found, withheld: Sequence[int] = ()) -> str:
    """Return what the user asks for, without the details of some wishes.

    It has the client's name and what he knows of his own claims: no id, and no name of anything that only the goal has.
    """
    said = [_said(found, w, i not in withheld) for i, w in enumerate(found.wishes)]
    words = " ".join(f"{('First', 'Then', 'After that')[min(i, 2)]}, {s}." for i, s in enumerate(said))
    return _OPENINGS[found.persona].format(name=found.client, wishes=words)


def detail(found: Found, wish: int) -> tuple[tuple[str, ...], str]:
    """Return what a wish that was withheld answers to, and how."""
    w, t = found.wishes[wish], found.theme
    if w.kind == "take":
        keys = (w.category, "which", "many", "quantity", t.unit, t.resource)
        return keys, f"{_said(found, w, True)}."
    return (w.target.lower(), "many", "quantity", t.unit), f"Please {_said(found, w, True)}."


def _said(found: Found, wish: Wish, whole: bool) -> str:
    t = found.theme
    own = f"my {t.claim} of {wish.target}"
    if wish.kind == "take":
        kind = f"{t.resource} of the category {wish.category}"
        if not whole:
            return f"I would like a {t.claim} of a {kind}"
        return f"I would like a {t.claim} of the {wish.rank} {kind} that I can get in a quantity of {wish.quantity}"
    if wish.kind == "change":
        return f"change {own} to a quantity of {wish.quantity}" if whole else f"change the quantity of {own}"
    return f"{wish.kind} {own}"
