"""What was drawn, as text: points, and pictures by ``data:`` URL."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from fuzz.entry import Case, entry

RED = ""
if find_spec("PIL") is not None:
    from assay.policies.flow.samples import written

    SQUARE = np.ones((4, 4, 3), np.float32)
    SQUARE[1:3, 1:3] = (1, -1, -1)
    RED = written(SQUARE)

entry(
    "near", marked=False, cases=[Case([2.0, 0.0], ["2 0", "2.1 -0.05"]), Case([0, 0, 1], ["0 0 1", "a<drawn>0 0 .9"])]
)
entry("right", marked=False, apart=False, cases=[Case(None, ["2 0", "1e9"])])
entry("likeness", marked=False, needs=("PIL",), cases=[Case(RED, [RED, f"a red square<drawn>{RED}"])])

START = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAA"
WAY = "\n".join(
    START + rest
    for rest in (
        "MAAAADCAIAAADZSiLoAAAAGklEQVR4nD3BsQEAAAjDoPT/o3ETpqKHoVo7icAI/HFRVRIAAAAASUVORK5CYII=",
        "MAAAADCAIAAADZSiLoAAAAG0lEQVR4nCXIsQEAAACCIP3/aBtixApAucqfOI/lCP7yc7tmAAAAAElFTkSuQmCC",
        "MAAAADCAIAAADZSiLoAAAAFklEQVR4nGP8//8/AzL4//8/I0yMEQCPtwj7KVTnngAAAABJRU5ErkJggg==",
    )
)
"""A red block that goes along the first row of a maze and down to the green one."""
BOARDS = [[[2, 0, 0], [1, 1, 0], [0, 0, 3]], [[0, 0, 2], [1, 1, 0], [0, 0, 3]], [[0, 0, 0], [1, 1, 0], [0, 0, 5]]]
entry(
    "puzzle_video",
    cases=[Case({"puzzle": "maze", "solution": BOARDS}, [WAY])],
    marked=False,
    needs=("PIL",),
)

FALLEN = "\n".join(
    f"{START}EAAAAECAIAAADAusJtAAAAGElEQVR4n{rest}ElFTkSuQmCC"
    for rest in (
        "GP48eMH08KFCxlEREQYGBkZAT0kBQ2oGzpIAAAAA",
        "GN48eIF0/nz5xnk5OQYGBkZAUCcBYVzCAWsAAAAA",
        "GOYMWMGw48fPxhCQ0MZ2NjYADwuBcKoUkSeAAAAA",
        "GNQVlZmOHToEJOcnByDmZkZAB/6A64dZl0KAAAAA",
    )
)
"""A disc that falls in four frames of four pixels by one."""
entry(
    "motion",
    cases=[Case({"positions": [[0.125, y] for y in (0.83, 0.79, 0.67, 0.48)], "video": FALLEN}, [FALLEN])],
    marked=False,
    needs=("PIL",),
)
