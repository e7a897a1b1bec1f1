"""A household, by the rules of the environment of that name."""

from assay.environments.household.house import CLEAN, COLD, HELD, HOT, PLAIN, Home, House, conditions, reached

SETUP = {"rooms": ["hall"], "doors": [], "fixtures": [], "things": [], "goal": []}
HOUSE, GOAL = House.of(SETUP), conditions(SETUP)
WARMTH = {"cold": COLD, "plain": PLAIN, "hot": HOT}
NAMES = [f"door {HOUSE.rooms[a]} - {HOUSE.rooms[b]}" for a, b in HOUSE.doors] + [f.name for f in HOUSE.fixtures]


def step(state, action):
    home = read(state)
    deeds = HOUSE.deeds(home)
    if action not in deeds or reached(HOUSE, home, GOAL):
        return [state, 0.0, False]
    home = HOUSE.done(home, deeds[action])
    won = reached(HOUSE, home, GOAL)
    return [written(home), float(won), won]


def read(state):
    fixtures = [f.name for f in HOUSE.fixtures]
    places = [state["place"][t.name] for t in HOUSE.things]
    return Home(
        HOUSE.rooms.index(state["room"]),
        tuple(state["open"][name] for name in NAMES),
        tuple(HELD if place == "hand" else fixtures.index(place) for place in places),
        tuple(int(state["clean"][t.name]) for t in HOUSE.things),
        tuple(WARMTH[state["warmth"][t.name]] for t in HOUSE.things),
    )


def written(home):
    said = {value: word for word, value in WARMTH.items()}
    things = [t.name for t in HOUSE.things]
    places = ["hand" if place == HELD else HOUSE.fixtures[place].name for place in home.places]
    return {
        "room": HOUSE.rooms[home.room],
        "open": dict(zip(NAMES, home.ajar, strict=True)),
        "place": dict(zip(things, places, strict=True)),
        "clean": {name: wash == CLEAN for name, wash in zip(things, home.wash, strict=True)},
        "warmth": {name: said[heat] for name, heat in zip(things, home.heat, strict=True)},
    }
