"""Households and goals made up from a seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from assay.environments.household.house import (
    CLEAN,
    DIRTY,
    PLAIN,
    Condition,
    Fixture,
    Home,
    House,
    Thing,
    Use,
    reached,
)
from assay.environments.household.plan import way
from assay.environments.stated import Interface
from assay.tasks.seeded import check_index, generator
from assay.types import Task

Goal = Literal["open", "close", "take", "put", "store", "two", "clean", "heat", "cool"]
GOALS: tuple[Goal, ...] = ("open", "close", "take", "put", "store", "two", "clean", "heat", "cool")

FURNITURE: dict[str, tuple[tuple[str, bool, Use], ...]] = {
    "kitchen": (
        ("table", False, ""),
        ("sink", False, "clean"),
        ("fridge", True, "cool"),
        ("microwave", True, "heat"),
        ("cupboard", True, ""),
        ("drawer", True, ""),
    ),
    "hall": (("bench", False, ""), ("closet", True, ""), ("shelf", False, "")),
    "bedroom": (("bed", False, ""), ("wardrobe", True, ""), ("drawer", True, ""), ("desk", False, "")),
    "bathroom": (("shelf", False, ""), ("basin", False, "clean"), ("cabinet", True, "")),
    "living room": (("sofa", False, ""), ("coffee table", False, ""), ("chest", True, ""), ("bookcase", False, "")),
    "study": (("desk", False, ""), ("safe", True, ""), ("drawer", True, ""), ("bookcase", False, "")),
    "cellar": (("rack", False, ""), ("freezer", True, "cool"), ("crate", True, "")),
    "dining room": (("table", False, ""), ("sideboard", True, ""), ("stove", False, "heat")),
}
"""By room, what can stand there: name, whether it opens, what it is good for. The first always does, and is open."""
KINDS: dict[str, tuple[bool, bool]] = {
    "mug": (True, True),
    "plate": (True, True),
    "bowl": (True, True),
    "apple": (True, True),
    "potato": (True, True),
    "tomato": (True, True),
    "egg": (False, True),
    "bread": (False, True),
    "fork": (True, False),
    "knife": (True, False),
    "pan": (True, False),
    "cloth": (True, False),
    "book": (False, False),
    "candle": (False, False),
    "key": (False, False),
    "pencil": (False, False),
}
"""By kind of thing whether it can be washed, and whether heated and cooled."""
RULES = (
    "You are in a house and carry one thing at a time. Actions: look; go to ROOM; open or close FIXTURE, or door to "
    "ROOM; take THING from FIXTURE; put THING in or on FIXTURE, as it is seen there; clean, heat or cool THING with "
    "FIXTURE, while you hold it."
)


@dataclass(frozen=True, slots=True)
class HouseholdTasks:
    """Endless households, each with a goal; kinds of goals take turns. A household is in ``meta["setup"]``."""

    seed: int
    goals: tuple[Goal, ...]
    rooms: int
    things: int
    interface: Interface

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        goal = self.goals[check_index(index, None) % len(self.goals)]
        setup = make_setup(goal, self.rooms, self.things, generator(self.seed, index))
        how = "the tool act" if self.interface == "tool" else "a line at the end of your turn"
        return Task(
            id=f"household/{self.seed}/{goal}/{index}",
            prompt=f"{setup['text']} {RULES} Take one action a turn, by {how}.",
            reference=setup,
            kind="none",
            meta={"goal": goal, "setup": setup},
        )


def make_setup(goal: Goal, rooms: int, things: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw a household in which the goal takes at least one action, as plain data."""
    while True:
        house = _house(rooms, rng)
        text, wanted, kind = _goal(goal, house, rng)
        house, home = _furnished(house, things, kind, goal, wanted, rng)
        if not reached(house, home, wanted):
            return {
                "rooms": house.rooms,
                "doors": house.doors,
                "fixtures": tuple(map(tuple, house.fixtures)),
                "things": tuple(map(tuple, house.things)),
                "home": tuple(home),
                "goal": tuple(asdict(condition) for condition in wanted),
                "text": text,
                "actions": len(way(house, home, wanted)),
            }


def _house(rooms: int, rng: np.random.Generator) -> House:
    """Draw rooms, the kitchen among them, doors that join them to a tree, and what stands there."""
    others = [name for name in FURNITURE if name != "kitchen"]
    names = [str(name) for name in rng.permutation(["kitchen", *rng.choice(others, rooms - 1, replace=False)])]
    doors = tuple((int(rng.integers(b)), b) for b in range(1, rooms))
    fixtures = []
    for room, name in enumerate(names):
        first, *rest = FURNITURE[name]
        # Where something is cleaned, heated and cooled there always is in the kitchen.
        kept = [f for f in rest if (name == "kitchen" and f[2]) or rng.random() < 0.6]
        fixtures += [Fixture(f"{name} {noun}", room, opens, use) for noun, opens, use in (first, *kept)]
    return House(tuple(names), doors, tuple(fixtures), ())


def _goal(goal: Goal, house: House, rng: np.random.Generator) -> tuple[str, tuple[Condition, ...], str]:
    """Draw what is asked for: its words, its conditions, and the kind of thing it is about."""
    fixtures = [f for f, fixture in enumerate(house.fixtures) if fixture.use != goal]
    opening = [f for f in fixtures if house.fixtures[f].opens]
    fixture = int(rng.choice(opening if goal in ("open", "close", "store") else fixtures))
    name, holds = house.fixtures[fixture].name, house.fixtures[fixture].holds
    if goal == "open":
        return f"Open the {name}.", (Condition("open", fixture),), ""
    if goal == "close":
        return f"Close the {name}.", (Condition("closed", fixture),), ""
    fit = [k for k, (wash, edible) in KINDS.items() if {"clean": wash, "heat": edible, "cool": edible}.get(goal, True)]
    kind = str(rng.choice(fit))
    some = f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
    if goal == "take":
        room = int(rng.integers(len(house.rooms)))
        return f"Hold {some} in the {house.rooms[room]}.", (Condition("held", room=room, kind=kind),), kind
    if goal == "store":
        into = (Condition("in", fixture, kind=kind), Condition("closed", fixture))
        return f"Put {some} {holds} the {name}, and close it.", into, kind
    if goal == "two":
        plural = {"knife": "knives", "bread": "breads"}.get(kind, f"{kind}{'es' if kind.endswith('o') else 's'}")
        return f"Put two {plural} {holds} the {name}.", (Condition("in", fixture, kind=kind, count=2),), kind
    if goal == "put":
        return f"Put {some} {holds} the {name}.", (Condition("in", fixture, kind=kind),), kind
    word: dict[str, str] = {"clean": "clean", "heat": "hot", "cool": "cold"}
    how: Use = goal
    return f"Put a {word[goal]} {kind} {holds} the {name}.", (Condition("in", fixture, kind=kind, how=how),), kind


def _furnished(
    house: House, things: int, kind: str, goal: Goal, wanted: tuple[Condition, ...], rng: np.random.Generator
) -> tuple[House, Home]:
    """Draw what lies where, and where you are; of ``kind`` as many as are needed or one more, none of them in place."""
    needed = (2 if goal == "two" else 1) + int(rng.integers(2)) if kind else 0
    others = [str(k) for k in rng.choice([k for k in KINDS if k != kind], max(0, things - needed))]
    kinds = [str(k) for k in rng.permutation([kind] * needed + others)]
    counted = [kinds[: i + 1].count(k) for i, k in enumerate(kinds)]
    made = tuple(Thing(f"{k} {n}", k, *KINDS[k]) for k, n in zip(kinds, counted, strict=True))
    target = wanted[0].fixture if kind else -1
    places = []
    for k in kinds:
        free = [f for f in range(len(house.fixtures)) if k != kind or f != target]
        places.append(int(rng.choice(free)))
    ajar = [bool(rng.random() < 0.5) for _ in house.doors]
    ajar += [not fixture.opens or bool(rng.random() < 0.1) for fixture in house.fixtures]
    if goal in ("open", "close"):
        ajar[house.slot(wanted[0].fixture)] = goal == "close"
    wash = [DIRTY if thing.washable and (thing.kind == kind or rng.random() < 0.5) else CLEAN for thing in made]
    room = int(rng.integers(len(house.rooms)))
    home = Home(room, tuple(ajar), tuple(places), tuple(wash), (PLAIN,) * len(made))
    return House(house.rooms, house.doors, house.fixtures, made), home
