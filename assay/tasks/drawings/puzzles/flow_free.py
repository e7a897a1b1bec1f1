"""FlowFree boards with one solution, and the solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from assay.verify.drawings.puzzles.cells import EMPTY, LETTERS, WALL, Cell, beside, where

COLOURS = range(WALL + 1, len(LETTERS))


def make(rng: np.random.Generator, side: int, moves: int) -> list[np.ndarray]:
    """Return the boards of a puzzle, and of its one solution drawn path by path in at most ``moves`` moves.

    Args:
        rng: draws it.
        side: cells on a side.
        moves: at least one.
    """
    while True:
        paths = _cover(rng, side)
        if paths is None or all(len(path) == 2 for path in paths):
            continue
        first = np.full((side, side), EMPTY)
        for colour, path in zip(COLOURS, paths, strict=False):
            first[path[0]] = first[path[-1]] = colour
        solutions = solve(first)
        found = next(solutions)
        if next(solutions, None) is None:
            return _drawn(first, found, moves)


def solve(first: np.ndarray) -> Iterator[dict[int, list[Cell]]]:
    """Yield all solutions: for each colour a path between its two cells that nowhere touches itself, no cell empty.

    A path is led on from its head, colour by colour; a cell that no path can come to any more ends the search there.
    """
    ends = {int(colour): where(first, int(colour)) for colour in np.unique(first) if colour != EMPTY}
    state = {(r, c): int(first[r, c]) for r, c in np.ndindex(first.shape)}
    near = {cell: list(beside(cell, first.shape)) for cell in state}
    order = list(ends)
    paths: dict[int, list[Cell]] = {colour: [ends[colour][0]] for colour in order}

    def stuck(turn: int) -> bool:
        """Whether an empty cell has fewer than two neighbours that a path could still come from."""
        alive = {paths[order[turn]][-1], *(ends[c][1] for c in order[turn:]), *(ends[c][0] for c in order[turn + 1 :])}
        return any(
            state[cell] == EMPTY and sum(state[n] == EMPTY or n in alive for n in near[cell]) < 2 for cell in state
        )

    def go(turn: int) -> Iterator[dict[int, list[Cell]]]:
        if turn == len(order):
            if EMPTY not in state.values():
                yield {colour: list(path) for colour, path in paths.items()}
            return
        colour = order[turn]
        path, end = paths[colour], ends[colour][1]
        head = path[-1]
        if head == end:
            yield from go(turn + 1)
            return
        for cell in near[head]:
            # A cell that touches the path elsewhere, or its end without going there, is none of a path.
            touching = sum(state[n] == colour for n in near[cell])
            if (cell == end and touching == 1) or (state[cell] == EMPTY and touching == 1 + (end in near[cell])):
                before, state[cell] = state[cell], colour
                path.append(cell)
                if not stuck(turn):
                    yield from go(turn)
                path.pop()
                state[cell] = before

    return go(0)


def _cover(rng: np.random.Generator, side: int) -> list[list[Cell]] | None:
    """Return paths that cover a board, each growing at both ends until it is stuck; ``None`` if too many or short."""
    free = {(r, c) for r in range(side) for c in range(side)}
    paths = []
    while free:
        path = [sorted(free)[rng.integers(len(free))]]
        free.discard(path[0])
        for _ in range(2):
            while True:
                own = set(path)
                ways = [
                    cell
                    for cell in beside(path[-1], (side, side))
                    if cell in free and sum(n in own for n in beside(cell, (side, side))) == 1
                ]
                if not ways:
                    break
                path.append(ways[rng.integers(len(ways))])
                free.discard(path[-1])
            path.reverse()
        paths.append(path)
    return paths if len(paths) <= len(COLOURS) and min(map(len, paths)) > 1 else None


def _drawn(first: np.ndarray, solution: dict[int, list[Cell]], moves: int) -> list[np.ndarray]:
    cells = [(cell, colour) for colour, path in solution.items() for cell in path[1:-1]]
    count = min(moves, len(cells))
    states = [first]
    for part in np.array_split(np.arange(len(cells)), count):
        state = states[-1].copy()
        for i in part:
            cell, colour = cells[i]
            state[cell] = colour
        states.append(state)
    return states
