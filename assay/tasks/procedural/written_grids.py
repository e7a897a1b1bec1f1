"""Puzzles on grids of arrows, letters and words: how each family is drawn, told and solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np

from assay.tasks.procedural.grids import Made
from assay.tasks.procedural.words import WORDS
from assay.verify.puzzles.grids import BLANK, Cell
from assay.verify.puzzles.written_grids import ARROWS, CLUES, rays, told, words_in

KINDS = (
    ("red", "blue", "green", "white", "black", "pink", "grey", "brown"),
    ("cat", "dog", "fish", "horse", "snail", "fox", "owl", "goat"),
    ("tea", "milk", "juice", "beer", "wine", "cocoa", "water", "cider"),
    ("cook", "nurse", "pilot", "judge", "smith", "clerk", "poet", "guard"),
)
"""Of what is told apart in a zebra puzzle: colours, pets, drinks, trades."""


def arrow_maze(rng: np.random.Generator, n: int) -> Made:
    """Numbers send out rays of any length until no cell is free; a third of the arrows is shown."""
    grid: dict[Cell, str] = {}
    for i in rng.permutation(n * n).tolist():
        start = divmod(i, n)
        if start in grid:
            continue
        grid[start] = "0"
        for arrow, (down, right) in ARROWS.items():
            cell = (start[0] + down, start[1] + right)
            for _ in range(int(rng.integers(0, n))):
                if cell in grid or not (0 <= cell[0] < n and 0 <= cell[1] < n):
                    break
                grid[cell] = arrow
                cell = (cell[0] + down, cell[1] + right)
    rows = [[grid[(r, c)] for c in range(n)] for r in range(n)]
    # Where one number's ray runs into arrows of another's that point the same way, they are both's: count at the end.
    solved = [
        [x if x in ARROWS else str(len(rays(rows, (r, c)))) for c, x in enumerate(row)] for r, row in enumerate(rows)
    ]
    board = [["X" if x in ARROWS and rng.random() < 2 / 3 else x for x in row] for row in solved]
    text = (
        f"Put an arrow, one of {' '.join(ARROWS)}, in place of each X. Of a number's eight neighbours, an arrow that "
        "points away from it begins a ray, which goes on as long as the next cell in its direction has the same arrow. "
        "A number says how many arrows its rays have together; each arrow is in the ray of a number.\n"
    )
    return text + "\n".join(" ".join(row) for row in board), {"board": board}, solved


def wordscapes(rng: np.random.Generator, n: int) -> Made:
    """Words cross at letters that they share and touch nowhere else."""
    order = [WORDS[i] for i in rng.permutation(len(WORDS)).tolist()]
    letters: dict[Cell, str] = {}
    placed: tuple[list[str], list[str]] = ([], [])
    for word in order:
        ways = _ways(word, letters, placed) if letters else [((0, 0), 0)]
        if ways:
            start, way = ways[int(rng.integers(len(ways)))]
            letters |= _laid(word, start, way)
            placed[way].append(word)
        if sum(map(len, placed)) == n:
            break
    grid = _boxed(letters)
    shape = ["".join("X" if x != BLANK else x for x in row) for row in grid]
    across, down = (sorted(words) for words in placed)
    text = (
        f"Fill letters into the cells X; cells {BLANK} stay as they are. From left to right, the runs of two or more "
        f"letters are to be {', '.join(across)}; from top to bottom, {', '.join(down)}.\n"
    )
    return text + "\n".join(" ".join(row) for row in shape), {"shape": shape, "across": across, "down": down}, grid


def _laid(word: str, start: Cell, way: int) -> dict[Cell, str]:
    return {(start[0] + way * i, start[1] + (1 - way) * i): x for i, x in enumerate(word)}


def _ways(word: str, letters: dict[Cell, str], placed: tuple[list[str], list[str]]) -> list[tuple[Cell, int]]:
    """Where a word can be laid so that it crosses another and every run of letters is a word, with its way."""
    ways = []
    for (r, c), i, way in product(letters, range(len(word)), (0, 1)):
        start = (r - way * i, c - (1 - way) * i)
        laid = _laid(word, start, way)
        if letters[(r, c)] != word[i] or any(letters.get(cell, x) != x for cell, x in laid.items()):
            continue
        grid = _boxed(letters | laid)
        found = words_in(grid), words_in(zip(*grid, strict=True))
        if all(Counter(found[k]) == Counter([*placed[k], *([word] if k == way else [])]) for k in (0, 1)):
            ways.append((start, way))
    return ways


def _boxed(letters: dict[Cell, str]) -> list[list[str]]:
    rows, columns = zip(*letters, strict=True)
    return [
        [letters.get((r, c), BLANK) for c in range(min(columns), max(columns) + 1)]
        for r in range(min(rows), max(rows) + 1)
    ]


def zebra_puzzle(rng: np.random.Generator, n: int) -> Made:
    """n houses in a row, each with a colour, a pet and so on; of what is so of two of these, some is told."""
    kinds = [sorted(kind[i] for i in rng.permutation(len(kind))[:n]) for kind in KINDS[: min(n, len(KINDS))]]
    grid = [list(row) for row in zip(*([kind[i] for i in rng.permutation(n)] for kind in kinds), strict=True)]
    house = {value: r for r, row in enumerate(grid) for value in row}
    true: list[list[str | int]] = [["at", value, r] for value, r in house.items()]
    for a, b in product(house, house):
        true += [[kind, a, b] for kind in CLUES if kind != "at" and a != b and CLUES[kind](house[a], house[b])]
    clues = [true[i] for i in rng.permutation(len(true))[: 2 * n * len(kinds)].tolist()]
    lines = [f"{told(str(kind), str(a), b)}." for kind, a, b in clues]
    text = (
        f"There are {n} houses in a row, numbered 1 to {n} from left to right. Each has one of each of these:\n"
        + "\n".join(f"{', '.join(kind)};" for kind in kinds)
        + "\nIt is known that:\n"
        + "\n".join(lines)
        + f"\nWrite a line for each house, from 1 to {n}, with what it has in the order of the lists above."
    )
    return text, {"kinds": kinds, "clues": clues}, grid


WRITTEN: dict[str, Callable[[np.random.Generator, int], Made]] = {
    "arrow_maze": arrow_maze, "wordscapes": wordscapes, "zebra_puzzle": zebra_puzzle,
}  # fmt: skip
"""By family, from a generator and a side's length: of wordscapes the number of words, of zebra puzzles of houses."""
