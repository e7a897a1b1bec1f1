"""A way to a goal from any state of a household, by whom nothing is hidden from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from assay.environments.household.house import Condition, Home, House


class Walk:
    """Actions taken one after the other, each one that can be taken where it is."""

    def __init__(self, house: House, home: Home, lines: Sequence[str] = ()):
        self.house, self.home, self.lines = house, home, list(lines)

    def act(self, line: str) -> None:
        self.home = self.house.done(self.home, self.house.deeds(self.home)[line])
        self.lines.append(line)

    def meet(self, condition: Condition) -> None:
        """Do what a condition asks for, with the things that take the fewest actions."""
        if condition.what == "open":
            self._reach(condition.fixture)
        elif condition.what == "closed":
            self._go(self.house.fixtures[condition.fixture].room)
            if not condition.met(self.house, self.home):
                self.act(f"close {self.house.fixtures[condition.fixture].name}")
        while not condition.met(self.house, self.home):
            there = [
                t
                for t in condition.candidates(self.house)
                if self.home.places[t] != condition.fixture or not condition.fits(self.home, t)
            ]
            self._take(self._to(condition, thing) for thing in there)

    def _take(self, walks: Iterable[Walk]) -> None:
        """Go on as the shortest of some walks, of equal ones the first."""
        best = min(walks, key=lambda walk: len(walk.lines))
        self.home, self.lines = best.home, best.lines

    def _copy(self) -> Walk:
        return Walk(self.house, self.home, self.lines)

    def _to(self, condition: Condition, thing: int) -> Walk:
        """Return the walk on which a thing does what a condition asks for."""
        walk = self._copy()
        walk._fetch(thing)
        if not condition.fits(walk.home, thing):
            fixtures = [fixture for fixture in self.house.fixtures if fixture.use == condition.how]
            ways = []
            for fixture in fixtures:
                ways.append(walk._copy())
                ways[-1]._go(fixture.room)
                ways[-1].act(f"{condition.how} {self.house.things[thing].name} with {fixture.name}")
            walk._take(ways)
        if condition.what == "held":
            walk._go(condition.room)
        else:
            walk._put(condition.fixture)
        return walk

    def _go(self, room: int) -> None:
        """Walk through the fewest rooms, opening doors that are closed."""
        before = {self.home.room: self.home.room}
        waiting = deque(before)
        while room not in before:
            at = waiting.popleft()
            for _, behind in self.house.ways(at):
                if behind not in before:
                    before[behind] = at
                    waiting.append(behind)
        way = [room]
        while way[-1] != self.home.room:
            way.append(before[way[-1]])
        for there in reversed(way[:-1]):
            name = self.house.rooms[there]
            if f"open door to {name}" in self.house.deeds(self.home):
                self.act(f"open door to {name}")
            self.act(f"go to {name}")

    def _reach(self, fixture: int) -> None:
        """Go to a fixture and open it."""
        self._go(self.house.fixtures[fixture].room)
        if not self.home.ajar[self.house.slot(fixture)]:
            self.act(f"open {self.house.fixtures[fixture].name}")

    def _put(self, fixture: int) -> None:
        self._reach(fixture)
        held, there = self.house.held(self.home), self.house.fixtures[fixture]
        assert held is not None
        self.act(f"put {self.house.things[held].name} {there.holds} {there.name}")

    def _fetch(self, thing: int) -> None:
        """Take a thing, having put down another that is held, where nothing has to be opened for it."""
        held = self.house.held(self.home)
        if held == thing:
            return
        if held is not None:
            here = [f for f, fixture in enumerate(self.house.fixtures) if fixture.room == self.home.room]
            self._put(next(f for f in here if not self.house.fixtures[f].opens))
        place = self.home.places[thing]
        self._reach(place)
        self.act(f"take {self.house.things[thing].name} from {self.house.fixtures[place].name}")


def way(house: House, home: Home, goal: Sequence[Condition]) -> list[str]:
    """Return actions that meet every condition of a goal, in their order; few, if not always the fewest.

    Of a goal's conditions each must leave those before it met.
    """
    walk = Walk(house, home)
    for condition in goal:
        walk.meet(condition)
    return walk.lines
