"""The learning rate and the threads of whoever names none."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from assay.learning import threads
from assay.learning.rate import fitting_rate


@pytest.mark.parametrize(
    ("parameters", "adapters", "rate"),
    # By hand: 1e-6 (1.5e9 / n)^(3/4), so a tenth of a millionth of the size is 10^(3/4) = 5.62 times the rate.
    [
        (1.5e9, False, 1e-6),
        (1.5e8, False, 5.6e-6),
        (1.5e7, False, 3.2e-5),
        (1.5e6, False, 1.8e-4),
        (7e9, False, 1e-6),
        (1e3, False, 1e-3),
        (7e9, True, 1e-5),
    ],
)
def test_rate(parameters: float, adapters: bool, rate: float) -> None:
    assert fitting_rate(int(parameters), adapters) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": "max 100000"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ({}, math.inf),
    ],
)
def test_the_quota_of_a_control_group(files: dict[str, str], quota: float, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert threads._quota(tmp_path) == quota


@pytest.mark.parametrize(("quota", "found"), [(math.inf, 4), (0.2, 1), (1.5, 2), (64.0, 4)])
def test_processors(monkeypatch: pytest.MonkeyPatch, quota: float, found: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(threads, "_quota", lambda _: quota)
    assert threads.cores() == found


def test_torch_is_told_of_a_quota_and_of_nothing_that_somebody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(threads.torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(threads.torch, "set_num_threads", told.append)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    threads.use_cores()
    assert told == []
    monkeypatch.delenv("OMP_NUM_THREADS")
    threads.use_cores()
    assert told == [2]
    monkeypatch.setattr(threads.torch, "get_num_threads", lambda: 1)
    threads.use_cores()
    assert told == [2]
