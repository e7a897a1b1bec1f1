"""A second policy that is trained in turns with the first, both sharded over two ranks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ranked import ranked, train
from test_sharding import alone, assert_alike, together

import assay
from assay.records.checkpoints import last_checkpoint

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="ranks are started by forking")

TURNS: dict[str, dict[str, Any]] = {
    "method": {
        "name": "S066",
        "options": {
            "form": "letters",
            "template": "{question}{response}|",
            "steps": {"by": "newline"},
            "warm_up": 1,
            "every": 2,
            "verifications": 3,
            "verifier_tokens": 3,
            "verifier_lr": 2e-3,
        },
        "reward": None,
    },
    "tasks": {"verify": f"{Path(__file__)}:even"},
    "model": {"nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 24, "alphabet": "0123456789+=\n|TF"}},
    "train": {"schedule": "constant", "lr": 1e-3, "mini_batches": 2, "epochs": 1, "token_budget": 40},
}
"""Of four steps the first and the last are the verifier's."""


def even(task: Any, response: str) -> bool:
    return sum(map(ord, response)) % 2 == 0


def sections(steps: int) -> dict[str, dict[str, Any]]:
    return {**TURNS, "train": {**TURNS["train"], "steps": steps}}


def partner(run: Path) -> dict[str, Any]:
    """The second policy's weights in the last checkpoint."""
    from safetensors.torch import load_file

    return load_file(last_checkpoint(run)[2] / "partner" / "model.safetensors")


def assert_both_alike(run: Path, other: Path) -> None:
    assert_alike(run, other)
    mine, theirs = partner(run), partner(other)
    assert mine.keys() == theirs.keys()
    assert all((weight - theirs[name]).abs().max() < 1e-4 for name, weight in mine.items())


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return alone(tmp_path_factory.mktemp("one") / "run", **sections(4))


@pytest.mark.slow
def test_two_policies_on_two_ranks_are_those_of_one_process(one: Path, tmp_path: Path) -> None:
    assert_both_alike(together(tmp_path / "two", **sections(4)), one)


@pytest.mark.slow
def test_they_go_on_on_another_number_of_ranks(one: Path, tmp_path: Path) -> None:
    shrunk = together(tmp_path / "shrunk", **sections(2))
    assay.train(resume=shrunk, overrides=["scale.trainers=1", "train.steps=4"], quiet=True)
    assert_both_alike(shrunk, one)
    grown = alone(tmp_path / "grown", **sections(2))
    grow = ["--resume", str(grown), "scale.trainers=2", "train.steps=4"]
    assert ranked(2, train, tmp_path / "log", *grow) == [0, 0]
    assert_both_alike(grown, one)
    assert (last_checkpoint(grown)[2] / "partner" / "shards").is_dir()
