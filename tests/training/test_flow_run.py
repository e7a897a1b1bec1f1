"""Runs of a policy that draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import assert_same, metrics, run

import assay
from assay.errors import UsageError
from assay.training.ahead.in_flight import pack, unpack
from assay.types import Drawing

DRAWING: dict[str, dict[str, Any]] = {
    "model": {"source": "flow", "flow": {"hidden": 8, "layers": 1, "prompt": 4}},
    "tasks": {"source": {"name": "ring"}},
    "method": {"reward": "verdict", "objective": {"name": "clip", "kl_weight": 0.01}},
    "evaluate": {"temperature": 0.0},
}


def test_a_run_that_draws_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", **DRAWING)
    part = run(tmp_path / "part", **{**DRAWING, "train": {"steps": 2}})
    assay.train(resume=part, quiet=True, overrides=["train.steps=4"])
    assert_same(whole, part)
    rows = metrics(whole)
    assert all(row["length/mean"] == 4 for row in rows if "length/mean" in row)
    assert any(row["kl/reference"] > 0 for row in rows if "kl/reference" in row)


def test_samples_asked_ahead_stay_whole_in_a_checkpoint(tmp_path: Path) -> None:
    ahead = run(tmp_path / "ahead", **{**DRAWING, "overlap": {"staleness": 1}, "train": {"steps": 2}})
    assert [row["staleness"] for row in metrics(ahead) if "staleness" in row] == [0, 1]
    drawing = Drawing(np.ones((3, 2), np.float32), np.linspace(1, 0, 3, dtype=np.float32), np.arange(2), 0.7, "cps")
    again = unpack(pack(drawing))
    assert again.noise == 0.7 and again.sampler == "cps" and np.array_equal(again.states, drawing.states)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"scale": {"engines": 1}}, "a flow learns and draws in one process"),
        ({"engine": {"name": "vllm"}}, "engine vllm generates text"),
        ({"method": {"objective": {"name": "clip", "entropy_weight": 0.1}}}, "'entropy', which a FlowPolicy"),
        ({"tasks": {"source": "arithmetic"}}, "a sample of shape"),
    ],
)
def test_what_a_flow_cannot_do_is_said_before_the_first_step(tmp_path: Path, sections: Any, words: str) -> None:
    merged = {key: {**DRAWING.get(key, {}), **sections.get(key, {})} for key in {*DRAWING, *sections}}
    with pytest.raises(UsageError, match=words):
        run(tmp_path / "run", **merged)
    assert not (tmp_path / "run").exists()
