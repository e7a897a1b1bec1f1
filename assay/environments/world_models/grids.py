"""Gridworlds drawn from a seed: walls and, of other features, some; each has a rule that says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.environments.world_models.bank import grid
from assay.environments.world_models.described import Described, completed

FEATURES = ("ice", "pits", "door", "coins", "wraps", "bump")
ACTIONS = (*grid.MOVES, "wait")


def make_grid(rng: np.random.Generator) -> Described:
    """Return a gridworld."""
    rows, columns = (int(n) for n in rng.integers(3, 6, 2))
    some = set(rng.choice(FEATURES, int(rng.integers(2, 5)), replace=False).tolist())
    cells = [[int(i) // columns, int(i) % columns] for i in rng.permutation(rows * columns)]
    goal, start, other = cells.pop(), cells.pop(), cells.pop()
    walls = sorted(cells.pop() for _ in range(int(rng.integers(1, 3))))
    ice = sorted(cells.pop() for _ in range(2)) if "ice" in some else []
    pits = [cells.pop()] if "pits" in some else []
    door, key = (goal, cells.pop()) if "door" in some else (None, None)
    coins = sorted(cells.pop() for _ in range(2)) if cells[1:] and "coins" in some else []
    bump = 0.5 if "bump" in some else 0.0
    constants = {
        "ROWS": rows,
        "COLUMNS": columns,
        "WRAPS": "wraps" in some,
        "BUMP": bump,
        "WALLS": walls,
        "ICE": ice,
        "PITS": pits,
        "DOOR": door,
        "KEY": key,
        "GOAL": goal,
    }
    about = (
        f"A robot moves on a grid of {rows} rows and {columns} columns, numbered from 0. A state is "
        '{"at": [row, column], "key": whether it has the key, "coins": cells with a coin, sorted}. The actions are '
        f"{', '.join(ACTIONS)}."
    )
    starts = [{"at": at, "key": False, "coins": coins} for at in (start, other)]
    return Described(
        about, _rules(constants, coins), completed(grid, constants), [ACTIONS] * 2, starts, horizon=12, effort=1200
    )


def _rules(world: Mapping[str, Any], coins: list[list[int]]) -> tuple[str, ...]:
    edge = "comes out at the opposite edge" if world["WRAPS"] else "stays where it is"
    lost = f"costs {world['BUMP']:g}: the reward is -{world['BUMP']:g}" if world["BUMP"] else "has reward 0"
    said = [
        "north leads to the row above (one less), south to the row below, west to the column before, east to the next.",
        f"At the edge of the grid a move {edge}.",
        f"Into a wall the robot cannot move; walls are at {_cells(world['WALLS'])}.",
        f"A move that leaves the robot where it is changes nothing and {lost}.",
        "wait, and anything else that is no move, changes nothing and has reward 0.",
        f"The goal is at {world['GOAL']}: reaching it earns 2 and ends the episode.",
    ]
    if world["ICE"]:
        said.append(
            f"Cells {_cells(world['ICE'])} are ice: on them the robot slides on in its direction until it comes to a "
            "cell without ice, or cannot go on, within the same action; what it passes counts as reached."
        )
    if world["PITS"]:
        said.append(f"Cell {world['PITS'][0]} is a pit: reaching it costs 1 and ends the episode.")
    if world["DOOR"]:
        said.append(
            f"The goal's cell has a door: without the key it is like a wall. The key is found at {world['KEY']}."
        )
    if coins:
        said.append("A coin is worth 1 when its cell is reached; then it is gone.")
    return tuple(said)


def _cells(cells: list[list[int]]) -> str:
    return " and ".join(map(str, cells))
