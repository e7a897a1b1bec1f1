"""Boards as pictures and back: a block of one colour for each cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

EMPTY, WALL, RED, GREEN, BLUE, YELLOW, MAGENTA, CYAN = range(8)
LETTERS = ".#RGBYMC"
"""A cell as text."""
COLOURS = np.array(
    [[1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=np.float64
)
COLOURS *= 255
UNREADABLE = -1

Cell = tuple[int, int]
Puzzle = Literal["maze", "flow_free", "sokoban"]


def render(states: np.ndarray, pixels: int) -> np.ndarray:
    """Return boards ``(F, R, C)`` as frames ``(F, R pixels, C pixels, 3)`` uint8."""
    return COLOURS.astype(np.uint8)[states].repeat(pixels, axis=1).repeat(pixels, axis=2)


def parse(frames: np.ndarray, rows: int, columns: int, tolerance: float) -> np.ndarray | None:
    """Return the boards ``(F, rows, columns)`` of frames ``(F, H, W, 3)``; ``None`` if they do not divide into cells.

    A cell has the colour that its mean is nearest to; it is ``UNREADABLE`` if that is further off than ``tolerance``,
    of 255, in one of red, green and blue.
    """
    count, height, width, _ = frames.shape
    if height % rows or width % columns:
        return None
    blocks = frames.reshape(count, rows, height // rows, columns, width // columns, 3).mean((2, 4))
    apart = np.abs(blocks[..., None, :] - COLOURS)
    nearest = (apart**2).sum(-1).argmin(-1)
    off = np.take_along_axis(apart.max(-1), nearest[..., None], -1)[..., 0]
    return np.where(off <= tolerance, nearest, UNREADABLE)


def text(state: np.ndarray) -> str:
    """Return a board as text, a line for each row."""
    return "\n".join("".join(LETTERS[cell] for cell in row) for row in state.tolist())


def where(state: np.ndarray, *colours: int) -> list[Cell]:
    """Return the cells that have one of some colours, row by row."""
    rows, columns = np.isin(state, colours).nonzero()
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def beside(cell: Cell, shape: tuple[int, ...], far: int = 1) -> Iterator[Cell]:
    """Yield the cells of a board that are ``far`` steps above, below, left and right of one."""
    for down, right in ((-far, 0), (far, 0), (0, -far), (0, far)):
        row, column = cell[0] + down, cell[1] + right
        if 0 <= row < shape[0] and 0 <= column < shape[1]:
            yield row, column
