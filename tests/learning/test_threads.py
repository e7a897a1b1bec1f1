"""Processors that a process may use, with a quota and without."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from assay.learning import threads


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, math.inf),
        ({"cpu.max": "max 100000"}, math.inf),
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, 2.5),
    ],
)
def test_the_quota_of_a_control_group(tmp_path: Path, files: dict[str, str], quota: float) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert threads._quota(tmp_path) == quota


@pytest.mark.parametrize(("quota", "found"), [(math.inf, 4), (0.2, 1), (1.5, 2), (64.0, 4)])
def test_processors(monkeypatch: pytest.MonkeyPatch, quota: float, found: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(threads, "_quota", lambda _: quota)
    assert threads.cores() == found
