"""Samples as text and back: a point as its numbers, a picture as a ``data:`` URL, a video as one URL a line.

What a flow draws is a response like any other: verifiers read its text. A thought may stand before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.errors import UsageError
from assay.media import Picture, pillow

DRAWN = "<drawn>"
"""What stands between a thought and what is drawn after it."""


def split(text: str) -> tuple[str, str]:
    """Return the thought of a response, which may be empty, and the sample's text."""
    thought, _, drawn = text.rpartition(DRAWN)
    return thought, drawn


def written(sample: np.ndarray) -> str:
    """Return a sample ``(*shape)`` as text; pixels, -1 to 1 from dark to bright, are rounded to 256 levels."""
    if sample.ndim == 1:
        return " ".join(f"{x:.9g}" for x in sample.tolist())
    pixels = (np.clip((sample + 1) / 2, 0, 1) * 255).round().astype(np.uint8)
    return pixels_text(pixels if pixels.ndim == 4 else pixels[None])


def pixels_text(pixels: np.ndarray) -> str:
    """Return the pixels ``(F, H, W, 3)`` uint8 of a picture (F = 1) or video as text."""
    return "\n".join(Picture.of(frame).url for frame in pixels)


def point(text: str) -> np.ndarray | None:
    """Return the numbers ``(D,)`` float32 of a point; ``None`` for a text that is none."""
    try:
        found = np.array([float(word) for word in split(text)[1].split()])
    except ValueError:
        return None
    # What no float32 holds is no number of a sample.
    return found.astype(np.float32) if len(found) and (np.abs(found) <= np.finfo(np.float32).max).all() else None


def frames(text: str) -> np.ndarray | None:
    """Return the pixels ``(F, H, W, 3)`` uint8 of a picture (F = 1) or video; ``None`` for a text that is neither.

    Raises:
        UsageError: Pillow is not installed.
    """
    pillow()
    try:
        found = [np.asarray(Picture.from_url(line).open()) for line in split(text)[1].split()]
    except UsageError:
        return None
    return np.stack(found) if found and len({frame.shape for frame in found}) == 1 else None


def video(text: str) -> np.ndarray | None:
    """Return the frames ``(F, H, W, 3)`` float32 of a video, -1 to 1 from dark to bright; ``None`` if it is none."""
    found = frames(text)
    return None if found is None else found.astype(np.float32) / 255 * 2 - 1


def read(text: str, shape: Sequence[int]) -> np.ndarray:
    """Return the sample of a text as float32, pixels between -1 and 1.

    Raises:
        UsageError: the text is no sample of that shape.
    """
    found = point(text) if len(shape) == 1 else video(text)
    if found is not None and len(shape) == 3 and len(found) == 1:
        found = found[0]
    if found is None or found.shape != tuple(shape):
        what = "nothing of the kind" if found is None else f"{list(found.shape)}"
        raise UsageError(f"a sample of shape {list(shape)} is wanted, and {split(text)[1][:40]!r} is {what}")
    return found
