"""The rules of a household: what stands where, what can be done there, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Use = Literal["", "clean", "heat", "cool"]
HELD = -1
"""Place of the thing that is held."""
COLD, PLAIN, HOT = -1, 0, 1
DIRTY, CLEAN = 0, 1


class Fixture(NamedTuple):
    """What things are put in or on: its room, whether it opens, and what it is good for."""

    name: str
    room: int
    opens: bool
    use: Use

    @property
    def holds(self) -> str:
        return "in" if self.opens or self.use == "clean" else "on"


class Thing(NamedTuple):
    """What can be carried: whether it can be washed, and whether heated and cooled."""

    name: str
    kind: str
    washable: bool
    edible: bool


class Home(NamedTuple):
    """A state: plain data.

    Attributes:
        room: where you are.
        ajar: of every door, and after those of every fixture, whether it is open; what has no door is.
        places: of every thing the fixture it is in or on, or :data:`HELD`.
        wash: of every thing, :data:`DIRTY` or :data:`CLEAN`.
        heat: of every thing, :data:`COLD`, :data:`PLAIN` or :data:`HOT`.
    """

    room: int
    ajar: tuple[bool, ...]
    places: tuple[int, ...]
    wash: tuple[int, ...]
    heat: tuple[int, ...]


class Deed(NamedTuple):
    """What an action does: to a field of the state, at an index of it, and what is said of it."""

    field: str
    at: int
    value: int
    said: str


@dataclass(frozen=True, slots=True)
class House:
    """A house; you carry one thing at a time.

    An action is a line: ``look``; ``go to ROOM``, through a door that is open; ``open`` and ``close DOOR or FIXTURE``;
    ``take THING from FIXTURE`` and ``put THING in`` or ``on FIXTURE``, where it is open; ``clean``, ``heat`` and
    ``cool THING with FIXTURE``, of what is held. Heating and cooling undo each other, nothing else is undone by itself.

    Attributes:
        rooms: names.
        doors: the two rooms that each joins.
        fixtures, things: what there is.
    """

    rooms: tuple[str, ...]
    doors: tuple[tuple[int, int], ...]
    fixtures: tuple[Fixture, ...]
    things: tuple[Thing, ...]

    @classmethod
    def of(cls, setup: Mapping[str, Any]) -> House:
        """Return the house of a task's setup."""
        return cls(
            tuple(setup["rooms"]),
            tuple((a, b) for a, b in setup["doors"]),
            tuple(Fixture(*f) for f in setup["fixtures"]),
            tuple(Thing(*t) for t in setup["things"]),
        )

    def ways(self, room: int) -> list[tuple[int, int]]:
        """Return the doors of a room, and the rooms behind them."""
        return [(d, b if a == room else a) for d, (a, b) in enumerate(self.doors) if room in (a, b)]

    def slot(self, fixture: int) -> int:
        """Return the index of a fixture in ``Home.ajar``."""
        return len(self.doors) + fixture

    def held(self, home: Home) -> int | None:
        """Return the thing that is held."""
        return home.places.index(HELD) if HELD in home.places else None

    def deeds(self, home: Home) -> dict[str, Deed]:
        """Return the actions that can be taken, and what they do."""
        held = self.held(home)
        out = {"look": Deed("room", 0, home.room, "")}
        for door, behind in self.ways(home.room):
            name = f"the door to the {self.rooms[behind]}"
            if home.ajar[door]:
                out[f"go to {self.rooms[behind]}"] = Deed("room", 0, behind, f"You go to the {self.rooms[behind]}.")
                out[f"close door to {self.rooms[behind]}"] = Deed("ajar", door, False, f"You close {name}.")
            else:
                out[f"open door to {self.rooms[behind]}"] = Deed("ajar", door, True, f"You open {name}.")
        for f, fixture in enumerate(self.fixtures):
            if fixture.room != home.room:
                continue
            slot, name = self.slot(f), fixture.name
            if fixture.opens:
                verb = "close" if home.ajar[slot] else "open"
                out[f"{verb} {name}"] = Deed("ajar", slot, not home.ajar[slot], f"You {verb} the {name}.")
            if held is None:
                if home.ajar[slot]:
                    for t, place in enumerate(home.places):
                        if place == f:
                            lying = self.things[t].name
                            said = f"You take {lying} from the {name}."
                            out[f"take {lying} from {name}"] = Deed("places", t, HELD, said)
                continue
            thing = self.things[held]
            if home.ajar[slot]:
                said = f"You put {thing.name} {fixture.holds} the {name}."
                out[f"put {thing.name} {fixture.holds} {name}"] = Deed("places", held, f, said)
            said = f"You {fixture.use} {thing.name} with the {name}."
            if fixture.use == "clean" and thing.washable:
                out[f"clean {thing.name} with {name}"] = Deed("wash", held, CLEAN, said)
            elif fixture.use in ("heat", "cool") and thing.edible:
                warmth = HOT if fixture.use == "heat" else COLD
                out[f"{fixture.use} {thing.name} with {name}"] = Deed("heat", held, warmth, said)
        return out

    def done(self, home: Home, deed: Deed) -> Home:
        """Return the state that a deed leads to."""
        if deed.field == "room":
            return home._replace(room=deed.value)
        before = getattr(home, deed.field)
        now: Any = {deed.field: (*before[: deed.at], deed.value, *before[deed.at + 1 :])}
        return home._replace(**now)

    def show(self, home: Home) -> str:
        """Return what is seen from where you are: nothing of other rooms, nor of what is in something closed."""
        lines = [f"You are in the {self.rooms[home.room]}."]
        lying: dict[int, list[str]] = {}
        for t, place in enumerate(home.places):
            lying.setdefault(place, []).append(self.looks(home, t))
        for f, fixture in enumerate(self.fixtures):
            if fixture.room == home.room:
                if not home.ajar[self.slot(f)]:
                    lines.append(f"The {fixture.name} is closed.")
                    continue
                what = ", ".join(lying.get(f, ())) or "nothing"
                lines.append(f"{fixture.holds.capitalize()} the {fixture.name}: {what}.")
        for door, behind in self.ways(home.room):
            lines.append(f"The door to the {self.rooms[behind]} is {'open' if home.ajar[door] else 'closed'}.")
        return "\n".join([*lines, f"You hold {', '.join(lying.get(HELD, ())) or 'nothing'}."])

    def looks(self, home: Home, t: int) -> str:
        """Return a thing as it is seen."""
        thing = self.things[t]
        words = [{DIRTY: "dirty", CLEAN: "clean"}[home.wash[t]]] if thing.washable else []
        words += {COLD: ["cold"], PLAIN: [], HOT: ["hot"]}[home.heat[t]]
        return f"{thing.name} ({', '.join(words)})" if words else thing.name


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that a goal asks for.

    Attributes:
        what: ``in``: ``count`` things of ``kind``, each ``how``, are in or on ``fixture``; ``held``: one is held in
            ``room``; ``open`` and ``closed``: ``fixture`` is.
        kind: of things.
        how: ``clean``, ``heat``, ``cool``, or empty.
    """

    what: Literal["in", "held", "open", "closed"]
    fixture: int = 0
    room: int = 0
    kind: str = ""
    how: Use = ""
    count: int = 1

    def met(self, house: House, home: Home) -> bool:
        if self.what in ("open", "closed"):
            return home.ajar[house.slot(self.fixture)] == (self.what == "open")
        place = HELD if self.what == "held" else self.fixture
        there = sum(home.places[t] == place and self.fits(home, t) for t in self.candidates(house))
        return there >= self.count and (self.what == "in" or home.room == self.room)

    def candidates(self, house: House) -> list[int]:
        return [t for t, thing in enumerate(house.things) if thing.kind == self.kind]

    def fits(self, home: Home, t: int) -> bool:
        """Whether a thing is as it is asked for."""
        if self.how == "clean":
            return home.wash[t] == CLEAN
        return not self.how or home.heat[t] == (HOT if self.how == "heat" else COLD)


def conditions(setup: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return what the goal of a task's setup asks for."""
    return tuple(Condition(**each) for each in setup["goal"])


def reached(house: House, home: Home, goal: Sequence[Condition]) -> bool:
    return all(condition.met(house, home) for condition in goal)
