"""S220: the scale and the course by hand, records of different worth, ends told apart, a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run

from assay.catalogue import make
from assay.environments.control.recorded import recorded
from assay.environments.control.returns import Course, course, normalised_return, scale_of
from assay.errors import UsageError
from assay.select.off_policy.offline import DualRL
from assay.signals.transitions.columns import Columns

pytestmark = pytest.mark.usefixtures("one_thread")

CORNER: dict[str, Any] = {"name": "point_mass", "start": [-0.7, -0.7, 0.1]}


def test_the_worked_scale() -> None:
    assert [normalised_return(j, 10, 90) for j in (10, 50, 90, 110)] == [0, 50, 100, 125]
    with pytest.raises(UsageError, match="a higher one of an expert"):
        normalised_return(1.0, 5.0, 5.0)
    random, expert = scale_of("point_mass")
    assert random < -20 < -15 < expert
    # Of other seeds the same policies are near 0 and 100.
    for quality, score in (("random", 0), ("expert", 100)):
        found = recorded("point_mass", {quality: 40}, 99).returns.mean()
        assert normalised_return(float(found), random, expert) == pytest.approx(score, abs=25)


def test_the_worked_course() -> None:
    curve = [(2, 5.0), (4, 10.0), (6, 30.0), (10, 50.0)]
    assert course(curve, 4) == Course(10.0, ((6, 30.0), (10, 50.0)), (2 * 20 + 4 * 40) / 6)
    assert course(curve, 5) == Course(10.0, ((6, 30.0), (10, 50.0)), (1 * 20 + 4 * 40) / 5)
    for offline in (1, 10):
        with pytest.raises(UsageError, match=f"up to step {offline}"):
            course(curve, offline)


def test_qualities_are_of_different_worth() -> None:
    worth = {q: float(recorded("point_mass", {q: 20}, 2).returns.mean()) for q in ("expert", "noisy", "play", "random")}
    assert worth["expert"] > worth["noisy"] > worth["play"] >= -30 and worth["noisy"] > worth["random"]
    mixed = recorded("point_mass", {"expert": 3, "play": 5}, 2)
    assert len(mixed.returns) == 8 and 0 < mixed.expert.sum() < len(mixed)


def test_no_crossing_goes_all_the_way() -> None:
    record = recorded(CORNER, {"crossing": 8}, 1)
    ends = np.flatnonzero(record.terminated | record.truncated)
    begins = np.array([0, *(ends[:-1] + 1)])
    from_start = record.states[begins, :2].max(1) < -0.5
    assert from_start.tolist() == [True, False] * 4 and record.terminated[ends].tolist() == [False, True] * 4
    middle = np.abs(record.states[:, :2]).max(1) < 1e-6
    assert all(middle[b : e + 1].any() for b, e in zip(begins, ends, strict=True))


def test_ends_are_told_apart_in_the_record() -> None:
    record = recorded(CORNER, {"crossing": 2}, 1)
    columns = Columns(len(record), (4, 2))
    columns.add(record)
    done = columns.columns["done"]
    assert done.sum() == 1 and np.array_equal(done, record.terminated) and record.truncated.sum() == 1


def test_the_row_is_its_parts() -> None:
    made = make("S220", offline=2, data={"environment": CORNER, "mix": {"crossing": 2}})
    select = made.select
    assert isinstance(select, DualRL) and select.offline == 2 and not select.half
    assert (select.options["weight"], select.options["temperature"], select.options["form"]) == (
        0.9,
        10.0,
        "chi_square",
    )
    assert (select.options["discount"], select.options["rate"], select.options["lr"]) == (0.99, 0.005, 3e-4)
    assert (select.updates, select.batch, select.capacity, select.options["hidden"]) == (1, 256, 100_000, (256, 256))


def test_it_trains(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"source": "control", "control": {"hidden": [8], "environment": CORNER}, "nano": {}},
        tasks={"source": {"name": "environment", "environment": CORNER}, "eval_size": 2},
        warmup={"steps": 0},
        method={
            "name": "S220",
            "rollout": {"name": "vector", "normalised": True},
            "reward": "verdict",
            "options": {
                "data": {"environment": CORNER, "mix": {"crossing": 2}},
                "offline": 1,
                "batch": 8,
                "hidden": [8],
            },
        },
        rollout={"prompts": 1, "group": 1},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1, "temperature": 0.0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    random, expert = scale_of(CORNER)
    for row in rows:
        assert row["return/normalised"] == pytest.approx(100 * (row["return/mean"] - random) / (expert - random))
    assert rows[1]["transitions"] > rows[0]["transitions"]
    assert course([(k + 1, row["return/normalised"]) for k, row in enumerate(rows)], 1).offline <= 100
