"""How alike a picture is to the parts of another one that matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

CELLS = 7
"""On a side of the map that :func:`colours` makes."""

Box = tuple[float, float, float, float]
"""Left, top, width and height, as shares of the picture's."""
WHOLE: Sequence[tuple[Box, float]] = (((0.0, 0.0, 1.0, 1.0), 1.0),)
Encoder = Callable[[Any], Float[np.ndarray, "C H W"]]


def colours(image: Any) -> Float[np.ndarray, "27 7 7"]:
    """Return for each cell of a picture the shares of its pixels in 27 colours: dark, middle and bright by channel.

    Args:
        image: a ``PIL.Image``.
    """
    pixels = np.asarray(image.convert("RGB").resize((CELLS * 8, CELLS * 8)))
    third = np.minimum(pixels // 86, 2).astype(int) @ np.array([9, 3, 1])
    cells = third.reshape(CELLS, 8, CELLS, 8).transpose(0, 2, 1, 3).reshape(CELLS, CELLS, 64)
    return np.stack([(cells == colour).mean(-1) for colour in range(27)])


def region_likeness(
    reference: Float[np.ndarray, "C H W"],
    given: Float[np.ndarray, "C H W"],
    boxes: Sequence[tuple[Box, float]] = WHOLE,
) -> float:
    """Return the mean over a reference's boxes, by their weights, of the greatest cosine with a window of another map.

    A box is the mean of what its cells have, at least one; windows are of its size, at every place of the other map.
    In [0, 1].
    """
    _, height, width = reference.shape
    total, weights = 0.0, 0.0
    for (x, y, w, h), weight in boxes:
        left, top = (min(int(at * size), size - 1) for at, size in ((x, width), (y, height)))
        right = max(left + 1, min(width, int((x + w) * width)))
        bottom = max(top + 1, min(height, int((y + h) * height)))
        wanted = reference[:, top:bottom, left:right].mean((1, 2))
        size = (bottom - top, right - left)
        windows = np.lib.stride_tricks.sliding_window_view(given, size, (1, 2)).mean((-1, -2)).reshape(len(given), -1)
        norms = np.linalg.norm(wanted) * np.linalg.norm(windows, axis=0)
        cosines = wanted @ windows / np.where(norms > 0, norms, 1.0)
        total, weights = total + weight * max(float(cosines.max()), 0.0), weights + weight
    return min(total / weights, 1.0)
