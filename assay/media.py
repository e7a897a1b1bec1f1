"""Pictures that stand in prompts. Pillow, which reads and writes them, is imported once there is one."""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import UsageError

MARK = "<image>"
"""What stands in a message's text for each of its pictures, in order."""


def marks(count: int) -> str:
    """Return the marks of so many pictures, a line each: some models take two side by side for one."""
    return "\n".join([MARK] * count)


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded picture: a file, read each time it is wanted, or what would stand in one (PNG, JPEG, ...)."""

    source: Path | bytes

    @property
    def data(self) -> bytes:
        """The encoded picture.

        Raises:
            UsageError: the file cannot be read.
        """
        if isinstance(self.source, bytes):
            return self.source
        try:
            return self.source.read_bytes()
        except OSError as error:
            raise UsageError(f"picture {self.source}: {error.strerror}") from error

    @property
    def digest(self) -> bytes:
        """SHA-256 of the encoded picture, by which it is told from others."""
        return hashlib.sha256(self.data).digest()

    def open(self) -> Any:
        """Return it as a ``PIL.Image`` in RGB.

        Raises:
            UsageError: it cannot be read, or Pillow is not installed.
        """
        reader = pillow()
        try:
            return reader.open(io.BytesIO(self.data)).convert("RGB")
        except (OSError, ValueError, SyntaxError, reader.DecompressionBombError) as error:
            what = f"a picture of {len(self.source)} bytes" if isinstance(self.source, bytes) else f"{self.source}"
            raise UsageError(f"{what} is none that Pillow can read: {error}") from error

    @property
    def url(self) -> str:
        """The picture as a ``data:`` URL, as chat APIs take it."""
        data = self.data
        try:
            kind = pillow().open(io.BytesIO(data)).get_format_mimetype()
        except OSError as error:
            raise UsageError(f"a picture of {len(data)} bytes is none that Pillow can read: {error}") from error
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"

    @classmethod
    def from_url(cls, url: str) -> Picture:
        """Return the picture of a ``data:`` URL.

        Raises:
            UsageError: another kind of URL, or none that Pillow can read; nothing is fetched.
        """
        kind, _, data = url.partition(";base64,")
        if not kind.startswith("data:image/"):
            raise UsageError(f"{url[:40]!r} is no data:image/...;base64, URL")
        try:
            picture = cls(base64.b64decode(data, validate=True))
        except ValueError as error:
            raise UsageError(f"a picture by URL is no base 64: {error}") from error
        picture.open()
        return picture

    @classmethod
    def of(cls, image: Any) -> Picture:
        """Return the picture of a ``PIL.Image``, or of pixels ``(H, W, 3)`` uint8, kept as PNG."""
        out = io.BytesIO()
        (pillow().fromarray(image) if isinstance(image, np.ndarray) else image).save(out, "PNG")
        return cls(out.getvalue())


def canvas(width: int, height: int, colour: tuple[int, int, int] = (255, 255, 255)) -> tuple[Any, Any]:
    """Return a ``PIL.Image`` of so many pixels, all of a colour, and a pen to draw on it.

    Raises:
        UsageError: Pillow is not installed.
    """
    maker = pillow()
    from PIL import ImageDraw

    image = maker.new("RGB", (width, height), colour)
    return image, ImageDraw.Draw(image)


def pillow() -> Any:
    """Return ``PIL.Image``.

    Raises:
        UsageError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise UsageError(f"pictures need Pillow: pip install assay[vision] ({error})") from None
    return Image
