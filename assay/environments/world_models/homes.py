"""Households as worlds to be modelled: those of the environment ``household``, small ones, by its own rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.environments.household.house import CLEAN, COLD, HELD, HOT, PLAIN, Home, House, conditions
from assay.environments.household.made import Goal, make_setup
from assay.environments.household.plan import way
from assay.environments.world_models.bank import home as program
from assay.environments.world_models.described import Described, completed

GOALS: tuple[Goal, ...] = ("open", "close", "take", "put")
STATES = 150
"""States that are looked at for the actions that there are."""
RULES = (
    "At any time one is in one room, and holds one thing at most.",
    "look can always be done, and changes nothing.",
    "go to ROOM can be done where a door between the two rooms is open; then one is in that room.",
    "open door to ROOM and close door to ROOM can be done in either of its rooms, on a closed and an open door.",
    "open FIXTURE and close FIXTURE can be done in its room with what opens, on a closed and an open one.",
    "take THING from FIXTURE can be done in its room, with empty hands, if the fixture is open: then the thing's place "
    "is hand.",
    "put THING in FIXTURE (on FIXTURE, where it neither opens nor cleans) can be done in its room with what is held, "
    "if the fixture is open.",
    "clean THING with FIXTURE can be done with what is held and can be washed, in the room of what cleans: then it is "
    "clean.",
    "heat and cool THING with FIXTURE can be done with what is held and is food or dishes, in the room of what heats "
    "or cools: then its warmth is hot or cold. For these three the fixture need not be open.",
    "What cannot be done changes nothing and has reward 0.",
    "The action that reaches the goal earns 1 and ends the episode; every other has reward 0.",
)


def make_home(rng: np.random.Generator) -> Described:
    """Return a household that is won in a few actions."""
    while True:
        setup = make_setup(GOALS[int(rng.integers(len(GOALS)))], 2, 2, rng)
        house, start = House.of(setup), Home(*setup["home"])
        names = [f.name for f in house.fixtures]
        if setup["actions"] <= 3 and len(set(names)) == len(names):
            break
    facts = {k: _plain(setup[k]) for k in ("rooms", "doors", "fixtures", "things", "goal")}
    source = completed(program, {"SETUP": facts})
    actions = _actions(house, start, way(house, start, conditions(setup)))
    return Described(_about(setup, house), RULES, source, [actions], [_state(house, start)], horizon=6, effort=1500)


def _actions(house: House, start: Home, plan: list[str]) -> list[str]:
    """Return what can be done in the states nearest to the start, and a little that cannot."""
    seen, waiting = {start}, deque([start])
    found = dict.fromkeys(plan)
    while waiting and len(seen) < STATES:
        at = waiting.popleft()
        for line, deed in house.deeds(at).items():
            found[line] = None
            after = house.done(at, deed)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return [*sorted(found), "go to garden"]


def _state(house: House, at: Home) -> Any:
    """Return a state as the program writes it."""
    places = ["hand" if place == HELD else house.fixtures[place].name for place in at.places]
    things, warmth = [thing.name for thing in house.things], {COLD: "cold", PLAIN: "plain", HOT: "hot"}
    return {
        "room": house.rooms[at.room],
        "open": dict(zip(_names(house), at.ajar, strict=True)),
        "place": dict(zip(things, places, strict=True)),
        "clean": dict(zip(things, [wash == CLEAN for wash in at.wash], strict=True)),
        "warmth": dict(zip(things, [warmth[heat] for heat in at.heat], strict=True)),
    }


def _names(house: House) -> list[str]:
    return [f"door {house.rooms[a]} - {house.rooms[b]}" for a, b in house.doors] + [f.name for f in house.fixtures]


def _about(setup: Mapping[str, Any], house: House) -> str:
    uses = {"clean": "cleans", "heat": "heats", "cool": "cools"}
    fixtures = "; ".join(
        f"{f.name} in the {house.rooms[f.room]}{', opens' if f.opens else ''}{f', {uses[f.use]}' if f.use else ''}"
        for f in house.fixtures
    )
    things = "; ".join(
        f"{t.name}{', can be washed' if t.washable else ''}{', food or dishes' if t.edible else ''}"
        for t in house.things
    )
    return (
        f"A household. Goal: {setup['text']} Rooms: {', '.join(house.rooms)}. Fixtures: {fixtures}. Things: {things}. "
        f'A state is {{"room": name, "open": whether each of {", ".join(_names(house))} is, "place": of each thing its '
        'fixture or hand, "clean": of each thing whether it is, "warmth": of each thing plain, hot or cold}. What does '
        "not open is always open."
    )


def _plain(value: Any) -> Any:
    """Return data as lists."""
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
