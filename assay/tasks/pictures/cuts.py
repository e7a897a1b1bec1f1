"""What is cut out of a picture, turned, and put elsewhere: arrays of pixels ``(H, W, 3)`` uint8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from assay.tasks.pictures.unlabelled import Pixels

GREY = 128


def turned(image: Pixels, degrees: int, clockwise: bool) -> Pixels:
    """Return a picture turned by a multiple of 90 degrees."""
    return np.rot90(image, (-1 if clockwise else 1) * degrees // 90)


def tiles(image: Pixels, rows: int, columns: int) -> list[Pixels]:
    """Return the tiles of a picture in reading order; what does not divide is left off at the right and below."""
    height, width = image.shape[0] // rows, image.shape[1] // columns
    return [
        image[r * height : (r + 1) * height, c * width : (c + 1) * width] for r in range(rows) for c in range(columns)
    ]


def laid(pieces: Sequence[Pixels], columns: int) -> Pixels:
    """Return the picture whose tiles in reading order are these."""
    return np.concatenate(
        [np.concatenate(pieces[i : i + columns], axis=1) for i in range(0, len(pieces), columns)], axis=0
    )


def patch(image: Pixels, corner: Sequence[int], side: int) -> Pixels:
    """Return the square of so many pixels on a side whose upper left corner is at ``corner``, row and column."""
    row, column = corner
    return image[row : row + side, column : column + side]


def covered(image: Pixels, corner: Sequence[int], side: int) -> Pixels:
    """Return the picture with that square in grey."""
    out = image.copy()
    patch(out, corner, side)[:] = GREY
    return out


def changed(piece: Pixels, rng: np.random.Generator) -> Iterator[Pixels]:
    """Yield a square piece mirrored, turned and recoloured, in random order."""
    turns = [lambda k=k: np.rot90(piece, k) for k in (1, 2, 3)]
    mirrors = [lambda: piece[::-1], lambda: piece[:, ::-1]]
    colours = [lambda o=o: piece[..., o] for o in ([1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0])]
    ways = [*turns, *mirrors, *colours, lambda: 255 - piece]
    for i in rng.permutation(len(ways)):
        yield np.ascontiguousarray(ways[i]())


def elsewhere(image: Pixels, corner: Sequence[int], side: int, rng: np.random.Generator) -> Iterator[Pixels]:
    """Yield squares of the picture that do not touch the one at ``corner``; of each four drawn the one of the nearest
    mean colour."""
    own, (height, width) = patch(image, corner, side).mean((0, 1)), image.shape[:2]
    free = [
        (r, c)
        for r in range(height - side + 1)
        for c in range(width - side + 1)
        if max(abs(r - corner[0]), abs(c - corner[1])) >= side
    ]
    order = [patch(image, free[i], side) for i in rng.permutation(len(free))[: 4 * 16]]
    for i in range(0, len(order), 4):
        yield min(order[i : i + 4], key=lambda piece: float(np.abs(piece.mean((0, 1)) - own).sum()))


def different(pieces: Sequence[Pixels]) -> bool:
    """Whether no two pieces are alike to the last pixel."""
    return len({(piece.shape, piece.tobytes()) for piece in pieces}) == len(pieces)
