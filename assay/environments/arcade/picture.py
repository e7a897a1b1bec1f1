"""What a game shows as a picture: a coloured tile for each sign of its board, numbers as they are written."""

from __future__ import annotations

from assay.media import Picture, canvas

SKY, GROUND, PLAYER = (225, 238, 250), (110, 80, 50), (30, 80, 200)
TILES = {
    ".": SKY,
    "_": GROUND,
    " ": (20, 20, 30),
    "#": (60, 60, 60),
    "@": PLAYER,
    "*": (220, 40, 40),
    "U": (150, 100, 40),
}
"""Colours of signs; round ones are drawn on the sky."""
ROUND = "@*"
TILE = 12
"""Pixels on a side of a tile."""


def picture_of(shown: str) -> Picture:
    """Return lines of a game as a picture: those of signs, with or without blanks between, as tiles, others written.

    Raises:
        UsageError: Pillow is not installed.
    """
    lines = shown.split("\n")
    image, pen = canvas(TILE * max(8, *map(len, lines)), TILE * len(lines))
    for row, line in enumerate(lines):
        signs = line[::2] if set(line[1::2]) == {" "} else line
        if set(signs) - set(TILES) or line[:1] == " ":
            pen.text((1, TILE * row), line, fill=(0, 0, 0))
            continue
        for column, sign in enumerate(signs):
            box = (TILE * column, TILE * row, TILE * (column + 1) - 1, TILE * (row + 1) - 1)
            pen.rectangle(box, TILES["." if sign in ROUND else sign])
            if sign in ROUND:
                pen.ellipse(box, TILES[sign])
    return Picture.of(image)
