"""Points and pictures that were drawn: scores by hand, and that tasks ask for what their references show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.errors import UsageError
from assay.policies.flow.samples import frames, point, written
from assay.tasks.drawings.ring import Ring
from assay.tasks.drawings.sketches import Sketches
from assay.tasks.pictures.shapes import COLOURS
from assay.types import Task
from assay.verify.drawings.likeness import Likeness
from assay.verify.drawings.near import Near
from assay.verify.drawings.right import Right


def test_nearness() -> None:
    task = Task("t", "", [2, 0])
    found = Near()(task, "2.3 -0.4")
    assert found.score == pytest.approx(math.exp(-0.125)) and found.passed
    assert Near(scale=2.0)(task, "2.3 -0.4").score == pytest.approx(math.exp(-0.25 / 8))
    assert not Near(within=0.4)(task, "2.3 -0.4").passed and not Near()(task, "2 0.6").passed
    for odd in ("2", "2 0 0", "here", "", "inf 0"):
        assert Near()(task, odd).score == 0 and Near()(task, odd).passed is False
    for reference in ("2 0", None, ["a"]):
        with pytest.raises(UsageError, match="the point's numbers"):
            Near()(Task("t", "", reference), "2 0")
    for options in ({"scale": 0.0}, {"within": 0.0}, {"scale": math.inf}):
        with pytest.raises(UsageError, match="numbers above 0"):
            Near(**options)


def test_to_the_right() -> None:
    task = Task("t", "")
    assert Right()(task, "4 9").score == pytest.approx(1 / (1 + math.exp(-1))) and Right()(task, "2 0").score == 0.5
    assert Right()(task, "2 0").passed and Right()(task, "1.9 0").passed is False
    assert Right(middle=0.0, width=1.0)(task, "-3").score == pytest.approx(1 / (1 + math.exp(3)))
    assert Right()(task, "-1e30").score < 1e-300 and Right()(task, "left").passed is False
    with pytest.raises(UsageError, match="width"):
        Right(width=0.0)


def test_likeness_is_what_both_have_of_what_one_has() -> None:
    pytest.importorskip("PIL")
    wanted = np.ones((4, 4, 3), np.float32)
    wanted[0, 1:4] = (1, -1, -1)
    task = Task("t", "", written(wanted))
    assert Likeness()(task, written(wanted)).score == 1
    shifted = np.ones_like(wanted)
    shifted[0, 2:4] = (1, -1, -1)
    shifted[1, 2:4] = (1, -1, -1)
    found = Likeness()(task, written(shifted))
    assert (
        found.score == pytest.approx(2 / 5) and not found.passed and Likeness(within=0.4)(task, written(shifted)).passed
    )
    blue = np.where(wanted == -1, 1, np.where(wanted[..., :1] * wanted[..., 1:2] < 0, -1, wanted)).astype(np.float32)
    assert Likeness()(task, written(blue)).score == 0
    faint = np.ones_like(wanted)
    faint[0, 1:4] = (1, -0.4, -0.4)
    assert Likeness()(task, written(faint)).score == 1 and Likeness(tolerance=70)(task, written(faint)).score == 0
    assert Likeness()(task, written(np.ones_like(wanted))).score == 0
    assert Likeness()(Task("t", "", written(np.ones_like(wanted))), written(np.ones_like(wanted))).score == 1
    for odd in ("red", written(np.ones((4, 5, 3), np.float32)), written(np.stack([wanted, wanted]))):
        assert Likeness()(task, odd).passed is False
    with pytest.raises(UsageError, match="by data: URL"):
        Likeness()(Task("t", "", "red"), "red")
    for options in ({"tolerance": 255}, {"tolerance": -1}, {"within": 0.0}, {"within": 1.5}):
        with pytest.raises(UsageError, match="likeness"):
            Likeness(**options)


def test_points_of_a_ring() -> None:
    ring = Ring(seed=3)
    places = np.array([ring.place(i) for i in range(8)])
    assert places[0].tolist() == [2, 0] and places[2] == pytest.approx([0, 2])
    drawn = np.array([point(str(ring[i].solution)) for i in range(400)])
    nearest = np.linalg.norm(drawn[:, None] - places, axis=-1)
    # Expected distance of a normal point: .15 sqrt(pi / 2) = .188; its standard error over 400 is .005.
    assert nearest.min(1).mean() == pytest.approx(0.188, abs=0.02)
    assert np.bincount(nearest.argmin(1), minlength=8).min() > 25
    assert ring[5].reference == (2, 0) and ring[5].prompt == "place 0 of the ring, point 5"
    free = Ring(wanted=None)
    assert {free[i].meta["wanted"] for i in range(60)} == set(range(8))
    assert all(free[i].reference == free.place(free[i].meta["wanted"]) for i in range(9))
    for odd in ({"places": 0}, {"radius": 0.0}, {"spread": -1.0}, {"wanted": 8}, {"seed": -1}):
        with pytest.raises(UsageError, match="ring"):
            Ring(**odd)


def test_sketches_show_what_is_asked_and_often_something_else() -> None:
    pytest.importorskip("PIL")
    source, wrong = Sketches(seed=2, faithful=0.5), 0
    for i in range(80):
        task = source[i]
        _, colour, _shape, _, _, row, _, column = task.question.replace(",", "").split()
        pixels = frames(str(task.reference))[0]
        there = (pixels == COLOURS[colour]).all(-1)
        at = np.argwhere(there)
        assert (
            (at // 8 == [int(row) - 1, int(column) - 1]).all()
            and len(at) > 8
            and not (~there & (pixels < 200).any(-1)).any()
        )
        assert task.meta["faithful"] == (task.solution == task.reference)
        wrong += not task.meta["faithful"]
    assert 25 <= wrong <= 55  # 40 expected, standard deviation 4.5
    assert all(Sketches(faithful=1.0)[i].meta["faithful"] for i in range(20))
    one = Sketches(grid=1, shapes=("cross",), colours=("red",), faithful=0.0)[0]
    assert one.meta["faithful"] and one.question == "a red cross in row 1, column 1"
    for odd in ({"grid": 0}, {"pixels": 3}, {"faithful": 2.0}, {"shapes": ("star",)}, {"colours": ()}):
        with pytest.raises(UsageError, match="sketches"):
            Sketches(**odd)
