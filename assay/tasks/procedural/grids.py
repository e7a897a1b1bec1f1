"""Puzzles on grids, made from a solution: how each family is drawn, told and solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from assay.verify.puzzles.grids import BLANK, MARK, Cell, Grid, around, visible, worked

Made = tuple[str, dict[str, Any], Grid]
"""What is told, the data that rules go by, and a solution."""


def _latin(rng: np.random.Generator, n: int) -> list[list[int]]:
    rows, columns, names = (rng.permutation(n) for _ in range(3))
    return [[int(names[(r + c) % n]) + 1 for c in columns] for r in rows]


def _text(grid: Sequence[Sequence[Any]]) -> str:
    return "\n".join(" ".join(map(str, row)) for row in grid)


def _grown(rng: np.random.Generator, n: int, seeds: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """Regions that grow from seeds until they fill the grid, called A, B, ..."""
    names = [chr(65 + i) if i < 26 else f"R{i}" for i in range(len(seeds))]
    owner = {cell: name for cells, name in zip(seeds, names, strict=True) for cell in cells}
    while len(owner) < n * n:
        edge = [(cell, near) for cell in owner for near in around(cell, n, n) if near not in owner]
        cell, near = edge[int(rng.integers(len(edge)))]
        owner[near] = owner[cell]
    return [[owner[(r, c)] for c in range(n)] for r in range(n)]


def _marks(n: int, cells: Sequence[Cell]) -> Grid:
    return [[MARK if (r, c) in cells else BLANK for c in range(n)] for r in range(n)]


def skyscraper(rng: np.random.Generator, n: int) -> Made:
    square = _latin(rng, n)
    columns = [list(column) for column in zip(*square, strict=True)]
    data = {
        "left": [visible(r) for r in square],
        "right": [visible(r[::-1]) for r in square],
        "top": [visible(c) for c in columns],
        "bottom": [visible(c[::-1]) for c in columns],
    }
    told = (
        f"Fill a {n} x {n} grid with the heights 1 to {n}, each once in every row and column. Of a line, the buildings "
        "higher than all before them are seen from outside. Seen are, "
        + "; ".join(f"from the {k}: {v}" for k, v in data.items())
    )
    return told, data, [[str(x) for x in row] for row in square]


def calcudoko(rng: np.random.Generator, n: int) -> Made:
    square = _latin(rng, n)
    free = [(r, c) for r in range(n) for c in range(n)]
    cages: list[list[Any]] = []
    while free:
        cage = [free[int(rng.integers(len(free)))]]
        for _ in range(int(rng.integers(0, 3))):
            near = [x for cell in cage for x in around(cell, n, n) if x in free and x not in cage]
            if near:
                cage.append(near[int(rng.integers(len(near)))])
        free = [x for x in free if x not in cage]
        numbers = [square[r][c] for r, c in cage]
        usable = [o for o in ("+*-/" if len(cage) == 2 else "+*") if worked(o, numbers) is not None]
        operation = usable[int(rng.integers(len(usable)))]
        cages.append([[list(cell) for cell in sorted(cage)], operation, worked(operation, numbers)])
    lines = [f"{v}{o}: " + " ".join(f"({r + 1},{c + 1})" for r, c in cells) for cells, o, v in cages]
    told = (
        f"Fill a {n} x {n} grid with 1 to {n}, each once in every row and column, so that the numbers of each cage, "
        "cells given as (row, column), make its value by its operation (of two, the larger is first):\n"
        + "\n".join(lines)
    )
    return told, {"cages": cages}, [[str(x) for x in row] for row in square]


def kukurasu(rng: np.random.Generator, n: int) -> Made:
    grid = [[MARK if rng.random() < 0.5 else BLANK for _ in range(n)] for _ in range(n)]
    rows = [sum(k for k, x in enumerate(row, 1) if x == MARK) for row in grid]
    columns = [sum(k for k, x in enumerate(column, 1) if x == MARK) for column in zip(*grid, strict=True)]
    told = (
        f"Mark cells of a {n} x {n} grid with {MARK}, the others with {BLANK}. A mark in column k counts k in its row, "
        f"one in row k counts k in its column. The rows are to come to {rows}, the columns to {columns}."
    )
    return told, {"rows": rows, "columns": columns}, grid


def campsite(rng: np.random.Generator, n: int) -> Made:
    tents: list[Cell] = []
    trees: list[Cell] = []
    for i in rng.permutation(n * n).tolist():
        tent = divmod(i, n)
        if len(tents) == n or tent in trees or set(around(tent, n, n, True)) & set(tents):
            continue
        beside = [x for x in around(tent, n, n) if x not in trees and x not in tents]
        if beside:
            tents.append(tent)
            trees.append(beside[int(rng.integers(len(beside)))])
    grid = [["T" if (r, c) in trees else MARK if (r, c) in tents else BLANK for c in range(n)] for r in range(n)]
    shown = [["T" if x == "T" else BLANK for x in row] for row in grid]
    rows = [row.count(MARK) for row in grid]
    columns = [column.count(MARK) for column in zip(*grid, strict=True)]
    told = (
        f"Each tree T has a tent {MARK} of its own directly beside it. Tents do not touch, not even at corners. The "
        f"rows have {rows} tents, the columns {columns}. Put them into the grid, other cells are {BLANK}:\n"
        f"{_text(shown)}"
    )
    return told, {"trees": [list(t) for t in sorted(trees)], "rows": rows, "columns": columns}, grid


def norinori(rng: np.random.Generator, n: int) -> Made:
    dominoes: list[list[Cell]] = []
    taken: set[Cell] = set()
    for i in rng.permutation(n * n).tolist():
        cell = divmod(i, n)
        beside = around(cell, n, n)
        other = beside[int(rng.integers(len(beside)))]
        near = {x for one in (cell, other) for x in (one, *around(one, n, n))}
        if not near & taken:
            dominoes.append([cell, other])
            taken |= {cell, other}
    regions = _grown(rng, n, dominoes)
    told = (
        f"Mark cells with {MARK}, the others with {BLANK}: two in every region, and each mark has another directly "
        f"beside it, and only one. The regions are:\n{_text(regions)}"
    )
    return told, {"regions": regions}, _marks(n, sorted(taken))


def star_placement(rng: np.random.Generator, n: int) -> Made:
    n = max(n, 4)
    order = rng.permutation(n)
    while bool((abs(np.diff(order)) < 2).any()):
        order = rng.permutation(n)
    cells = [(r, int(c)) for r, c in enumerate(order)]
    regions = _grown(rng, n, [[cell] for cell in cells])
    told = (
        f"Mark cells with {MARK}, the others with {BLANK}: one in every row, every column and every region, and no two "
        f"touch, not even at corners. The regions are:\n{_text(regions)}"
    )
    return told, {"regions": regions}, _marks(n, cells)


def minesweeper(rng: np.random.Generator, n: int) -> Made:
    cells = [divmod(i, n) for i in rng.permutation(n * n).tolist()]
    mines, others = cells[: max(2, n * n // 6)], cells[max(2, n * n // 6) :]
    shown = others[: max(3, 2 * len(others) // 3)]
    clues = [[r, c, len(set(mines) & set(around((r, c), n, n, True)))] for r, c in sorted(shown)]
    board = [[next((str(k) for a, b, k in clues if (a, b) == (r, c)), "?") for c in range(n)] for r in range(n)]
    told = (
        f"Find the {len(mines)} mines. A number says how many of the cells around it are mines; it is none itself. "
        f"Write the grid with {MARK} for mines and {BLANK} for all other cells:\n{_text(board)}"
    )
    return told, {"mines": len(mines), "clues": clues}, _marks(n, mines)


def numbrix(rng: np.random.Generator, n: int) -> Made:
    path = [(r, c if r % 2 == 0 else n - 1 - c) for r in range(n) for c in range(n)]
    for _ in range(8 * n * n):  # the end bites the path at a cell beside it, and what is behind turns round
        if rng.random() < 0.5:
            path.reverse()
        near = around(path[-1], n, n)
        at = path.index(near[int(rng.integers(len(near)))])
        path = path[: at + 1] + path[:at:-1]
    numbers = {cell: i + 1 for i, cell in enumerate(path)}
    kept = rng.permutation(n * n)[: max(2, n * n // 2)].tolist()
    givens = sorted([*divmod(i, n), numbers[divmod(i, n)]] for i in kept)
    board = [[str(numbers[(r, c)]) if r * n + c in kept else "?" for c in range(n)] for r in range(n)]
    told = f"Fill in 1 to {n * n}, each number directly beside the one before it:\n{_text(board)}"
    return told, {"givens": givens}, [[str(numbers[(r, c)]) for c in range(n)] for r in range(n)]


def number_wall(rng: np.random.Generator, n: int) -> Made:
    islands: list[list[Cell]] = []
    land: set[Cell] = set()

    def apart(cell: Cell, own: Sequence[Cell]) -> bool:
        return cell not in land and not (set(around(cell, n, n)) & (land - set(own)))

    def block() -> Cell | None:
        for r in range(n - 1):
            for c in range(n - 1):
                four = [(r, c), (r + 1, c), (r, c + 1), (r + 1, c + 1)]
                if not set(four) & land:
                    open_ = [x for x in four if apart(x, ())]
                    return open_[int(rng.integers(len(open_)))] if open_ else (-1, -1)
        return None

    while (cell := block()) is not None:
        if cell == (-1, -1):  # it cannot be opened any more: begin again
            islands, land = [], set()
            continue
        island = [cell]
        land.add(cell)
        for _ in range(int(rng.integers(0, 3))):
            near = [x for one in island for x in around(one, n, n) if apart(x, island)]
            if near:
                island.append(near[int(rng.integers(len(near)))])
                land.add(island[-1])
        islands.append(island)
    givens = sorted([*island[int(rng.integers(len(island)))], len(island)] for island in islands)
    told_of = {(r, c): str(k) for r, c, k in givens}
    grid = [[told_of.get((r, c), BLANK if (r, c) in land else "A") for c in range(n)] for r in range(n)]
    board = [[told_of.get((r, c), "?") for c in range(n)] for r in range(n)]
    told = (
        f"Build walls A, other cells are {BLANK} or keep their number. What walls part are islands: each has one "
        f"number, which says how many cells it has. No four wall cells form a square of two by two.\n{_text(board)}"
    )
    return told, {"givens": givens}, grid


GRIDS: dict[str, Callable[[np.random.Generator, int], Made]] = {
    "skyscraper": skyscraper, "calcudoko": calcudoko, "kukurasu": kukurasu, "campsite": campsite, "norinori": norinori,
    "star_placement": star_placement, "minesweeper": minesweeper, "numbrix": numbrix, "number_wall": number_wall,
}  # fmt: skip
"""By family, from a generator and a side's length."""
