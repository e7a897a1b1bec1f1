"""Drawn shapes: the picture has what the answer says, by the pixels themselves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from assay.errors import UsageError
from assay.registry import build
from assay.tasks.pictures.shapes import COLOURS, Drawn, Shapes, draw
from assay.types import pictures
from assay.verify.make import make_verifier

pytest.importorskip("PIL", reason="pip install assay[vision]")


def cells(task: object, grid: int, pixels: int) -> dict[tuple[int, int], tuple[str, int]]:
    """The colour of each cell that is not empty, and how many pixels have it."""
    [picture] = pictures(task.prompt)  # type: ignore[attr-defined]
    image = np.asarray(picture.open())
    assert image.shape == (grid * pixels, grid * pixels, 3)
    found = {}
    for row in range(grid):
        for column in range(grid):
            cell = image[row * pixels : (row + 1) * pixels, column * pixels : (column + 1) * pixels].reshape(-1, 3)
            for name, colour in COLOURS.items():
                if count := int((cell == colour).all(-1).sum()):
                    found[row, column] = (name, count)
    return found


def test_answers_are_what_is_to_be_seen() -> None:
    source, sizes = Shapes(seed=3, grid=3, pixels=16, most=4), sizes_of_shapes(16)
    kinds, numbers = Counter(), Counter()
    for index in range(300):
        task = source[index]
        seen = {at: (colour, sizes[count]) for at, (colour, count) in cells(task, 3, 16).items()}
        assert 0 <= len(seen) <= 4
        question = task.meta["question"]
        kinds[question] += 1
        words = task.question.removeprefix("<image>").rstrip("?").split()
        if question == "colour":
            [colour] = [colour for colour, shape in seen.values() if shape == words[-1]]
            assert task.reference == colour
        elif question == "place":
            [(row, column)] = [at for at, found in seen.items() if found == (words[-2], words[-1])]
            assert task.reference == f"{row + 1},{column + 1}"
        else:
            shape = words[2].removesuffix("es" if words[2] == "crosses" else "s")
            assert task.reference == str(sum(found == (words[-1], shape) for found in seen.values()))
            numbers[task.reference] += 1
    assert min(kinds.values()) > 70  # 100 each; further off than this once in 4,000 times
    assert set(numbers) == set("01234") and min(numbers.values()) >= 8


def sizes_of_shapes(pixels: int) -> dict[int, str]:
    """Each shape by the number of its pixels, which are all different."""
    sizes = {}
    for shape in ("circle", "square", "triangle", "cross"):
        image = np.asarray(draw([Drawn(shape, "red", 0, 0)], 1, pixels))
        sizes[int((image == COLOURS["red"]).all(-1).sum())] = shape
    assert len(sizes) == 4
    return sizes


def test_a_square_by_hand() -> None:
    """Of 8 pixels, less an edge of one on each side, 6 by 6 are blue, in the cell it stands in."""
    image = np.asarray(draw([Drawn("square", "blue", 0, 1)], 2, 8))
    blue = (image == COLOURS["blue"]).all(-1)
    assert int(blue.sum()) == 36 and bool(blue[1:7, 9:15].all()) and not bool((image[:, :8] != 255).any())


def test_tasks_are_judged_and_repeat() -> None:
    source = build("tasks", {"name": "shapes", "seed": 5, "questions": ["place"]})
    task, verifier = source[7], make_verifier("exact")
    assert source[7] == task and source[8] != task and source.size is None
    assert verifier(task, task.solution).passed and not verifier(task, "4,4").passed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grid": 0}, "grid 0 must be 1 to 9"),
        ({"pixels": 7}, "pixels 7 must be 8 to 256"),
        ({"grid": 2, "most": 5}, "most 5 must be 1 to the 4 cells"),
        ({"most": 0}, "most 0 must be"),
        ({"questions": []}, "questions is empty"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_options_are_checked(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build("tasks", {"name": "shapes", **options})
