"""Five small games, one of each genre."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assay.environments.arcade.game import Arcade, State, held
from assay.environments.games.game import grid
from assay.environments.games.tiles import grown, pushed

WIDTH = 12
STAY: dict[str, tuple[str, ...]] = {"wait": ("wait",)}


def fallen(height: int, speed: int) -> tuple[int, int]:
    """Return height and speed a tick later: the ground is at 0, speed falls by one."""
    return (max(height + speed, 0), speed - 1) if height + speed > 0 else (0, 0)


class Keyed:
    """What a game that takes no clicks has."""

    def click(self, state: State, at: tuple[float, float]) -> State:
        return state


class Runner(Keyed):
    """Obstacles come from the right; who stands on the ground at one has lost. The score is the distance.

    A state is (height, speed, columns of obstacles, distance, lost).
    """

    genre, target = "runner", 40.0
    rules = "Runner: jump over the obstacles (#) with Space. Your place is column 2."
    table: Mapping[str, tuple[str, ...]] = {"jump": held("Space"), **STAY}

    def start(self, rng: np.random.Generator) -> State:
        return 0, 0, (WIDTH - 1,), 0, False

    def press(self, state: State, key: str, rng: np.random.Generator) -> State:
        height, _, coming, distance, lost = state
        return (0, 2, coming, distance, lost) if key == "Space" and not height else state

    def tick(self, state: State, held: tuple[str, ...], rng: np.random.Generator) -> State:
        height, speed = fallen(state[0], state[1])
        coming = tuple(x - 1 for x in state[2] if x > 0)
        if (not coming or coming[-1] < WIDTH - 6) and rng.random() < 0.4:
            coming = (*coming, WIDTH - 1)
        return height, speed, coming, state[3] + 1, 2 in coming and not height

    def over(self, state: State) -> bool:
        return bool(state[4])

    def score(self, state: State) -> float:
        return float(state[3])

    def show(self, state: State) -> str:
        cells = ["." if y else "_" for y in (3, 2, 1, 0) for _ in range(WIDTH)]
        for x in state[2]:
            cells[3 * WIDTH + x] = "#"
        cells[(3 - min(state[0], 3)) * WIDTH + 2] = "@"
        return f"{grid(cells, WIDTH)}\ndistance {state[3]}"


class Catcher(Keyed):
    """Fruits fall; a basket of three columns, moved by held arrows, catches them; three missed lose. Score: caught.

    A state is (column of the basket, of the fruit, its row, caught, missed).
    """

    genre, target, side = "arcade", 6.0, 8
    rules = "Catcher: catch the falling fruits (*) with the basket (UUU), moved by ArrowLeft and ArrowRight while held."
    table: Mapping[str, tuple[str, ...]] = {"left": held("ArrowLeft"), "right": held("ArrowRight"), **STAY}

    def start(self, rng: np.random.Generator) -> State:
        return self.side // 2, int(rng.integers(self.side)), 0, 0, 0

    def press(self, state: State, key: str, rng: np.random.Generator) -> State:
        return state

    def tick(self, state: State, held: tuple[str, ...], rng: np.random.Generator) -> State:
        basket, column, row, caught, missed = state
        basket = min(max(basket + ("ArrowRight" in held) - ("ArrowLeft" in held), 0), self.side - 1)
        if row + 1 < self.side - 1:
            return basket, column, row + 1, caught, missed
        hit = abs(basket - column) <= 1
        return basket, int(rng.integers(self.side)), 0, caught + hit, missed + (not hit)

    def over(self, state: State) -> bool:
        return bool(state[4] >= 3)

    def score(self, state: State) -> float:
        return float(state[3])

    def show(self, state: State) -> str:
        cells = ["."] * (self.side * self.side)
        cells[state[2] * self.side + state[1]] = "*"
        for x in range(max(state[0] - 1, 0), min(state[0] + 2, self.side)):
            cells[(self.side - 1) * self.side + x] = "U"
        return f"{grid(cells, self.side)}\ncaught {state[3]}, missed {state[4]}"


class Cavern(Keyed):
    """Ground with pits, crossed by walking and jumping. Falling into a pit loses. The score is how far one has come.

    A state is (place, height, speed, the ground as text, lost).
    """

    genre, target = "platformer", 24.0
    rules = "Cavern: walk right with ArrowRight held, jump over the pits (blanks) with Space."
    leap = ("key_down ArrowRight", "key_down Space", "wait", "key_up Space", "key_up ArrowRight")
    table: Mapping[str, tuple[str, ...]] = {
        "walk": held("ArrowRight"),
        "back": held("ArrowLeft"),
        "leap": leap,
        **STAY,
    }

    def start(self, rng: np.random.Generator) -> State:
        ground = ["_"] * (int(self.target) + 8)
        at = 4
        while at < self.target - 3:
            wide = int(rng.integers(1, 3))
            ground[at : at + wide] = [" "] * wide
            at += wide + int(rng.integers(4, 7))
        return 0, 0, 0, "".join(ground), False

    def press(self, state: State, key: str, rng: np.random.Generator) -> State:
        place, height, _, ground, lost = state
        return (place, 0, 2, ground, lost) if key == "Space" and not height else state

    def tick(self, state: State, held: tuple[str, ...], rng: np.random.Generator) -> State:
        place, height, speed, ground, _ = state
        place = min(max(place + ("ArrowRight" in held) - ("ArrowLeft" in held), 0), len(ground) - 1)
        height, speed = fallen(height, speed)
        return place, height, speed, ground, ground[place] == " " and not height

    def over(self, state: State) -> bool:
        return bool(state[4])

    def score(self, state: State) -> float:
        return float(state[0])

    def show(self, state: State) -> str:
        place, height, _, ground, _ = state
        rows = [
            "".join("@" if x == place and y == min(height, 3) else "." for x in range(len(ground)))
            for y in (3, 2, 1, 0)
        ]
        return "\n".join([*rows, ground])


class Merge(Keyed):
    """2048 on three by three, a push for each arrow that goes down. The score is the greatest tile.

    A state is (board,).
    """

    genre, target = "puzzle", 32.0
    rules = "Merge: push the tiles with the arrows; equal ones that meet become one. Get a tile of 32."
    table: Mapping[str, tuple[str, ...]] = {
        way: held(f"Arrow{way.title()}") for way in ("up", "down", "left", "right")
    } | STAY

    def start(self, rng: np.random.Generator) -> State:
        return (grown(grown((0,) * 9, rng), rng),)

    def press(self, state: State, key: str, rng: np.random.Generator) -> State:
        way = key.removeprefix("Arrow").lower()
        board = pushed(state[0], way) if way in ("up", "down", "left", "right") else state[0]
        return state if board == state[0] else (grown(board, rng),)

    def tick(self, state: State, held: tuple[str, ...], rng: np.random.Generator) -> State:
        return state

    def over(self, state: State) -> bool:
        return all(pushed(state[0], way) == state[0] for way in ("up", "down", "left", "right"))

    def score(self, state: State) -> float:
        return float(max(state[0]))

    def show(self, state: State) -> str:
        return grid([str(tile or ".").rjust(4) for tile in state[0]], 3)


class Stall:
    """A stall of lemonade: clicks on Sell earn a coin, helpers that are bought earn by themselves. The score is earned.

    A state is (coins, helpers, earned).
    """

    genre, target = "simulation", 60.0
    rules = (
        "Stall: click Sell (at 0.25 0.8) to earn a coin, Hire (at 0.75 0.8) to pay 5 coins for a helper, who earns a "
        "coin a tick. Earn 60 coins."
    )
    table: Mapping[str, tuple[str, ...]] = {
        "sell": ("mouse_move 0.25 0.8", "mouse_down", "mouse_up", "wait"),
        "hire": ("mouse_move 0.75 0.8", "mouse_down", "mouse_up", "wait"),
        **STAY,
    }

    def start(self, rng: np.random.Generator) -> State:
        return int(rng.integers(0, 4)), 0, 0

    def press(self, state: State, key: str, rng: np.random.Generator) -> State:
        return state

    def click(self, state: State, at: tuple[float, float]) -> State:
        coins, helpers, earned = state
        if not 0.7 <= at[1] <= 0.9:
            return state
        if at[0] < 0.5:
            return coins + 1, helpers, earned + 1
        return (coins - 5, helpers + 1, earned) if coins >= 5 else state

    def tick(self, state: State, held: tuple[str, ...], rng: np.random.Generator) -> State:
        coins, helpers, earned = state
        return coins + helpers, helpers, earned + helpers

    def over(self, state: State) -> bool:
        return False

    def score(self, state: State) -> float:
        return float(state[2])

    def show(self, state: State) -> str:
        return f"coins {state[0]}, helpers {state[1]}, earned {state[2]}\n[Sell] at 0.25 0.8   [Hire] at 0.75 0.8"


ARCADE: dict[str, Arcade] = {
    "runner": Runner(),
    "catcher": Catcher(),
    "cavern": Cavern(),
    "merge": Merge(),
    "stall": Stall(),
}
