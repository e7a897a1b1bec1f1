"""Runs on pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import assert_same, metrics, run

import assay

pytest.importorskip("PIL", reason="pip install assay[vision]")

SEEING: dict[str, dict[str, Any]] = {
    "model": {
        "nano": {
            "hidden": 16,
            "layers": 1,
            "heads": 2,
            "context": 64,
            "vision": {"hidden": 16, "layers": 1, "pixels": 32},
        }
    },
    "tasks": {"source": {"name": "shapes", "grid": 2}},
}


def test_a_run_on_pictures_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", **SEEING)
    part = run(tmp_path / "part", **{**SEEING, "train": {"steps": 2}})
    assay.train(resume=part, quiet=True, overrides=["train.steps=4"])
    assert_same(whole, part)
    assert all(row["prompt_tokens"] > 4 for row in metrics(whole) if "prompt_tokens" in row)
