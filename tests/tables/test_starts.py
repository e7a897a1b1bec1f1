"""Parts that `assay new` begins: their own tests pass, and a run takes one of every seam from files."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import recipe

import assay
from assay import cli
from assay.config import apply_override
from assay.tables.starts import STARTS, class_of


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def begin(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["new", *words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("seam", STARTS)
def test_a_new_part_passes_its_own_test(seam: str, place: Path) -> None:
    assert begin(seam, f"my_{seam}") == 0
    tests = dict(inspect.getmembers(importlib.import_module(f"test_my_{seam}"), inspect.isfunction))
    tests["test_by_hand"]()
    assert begin(seam, f"my_{seam}") == 2, "nothing is written over"


def test_a_run_with_a_part_of_ones_own_in_every_seam(place: Path) -> None:
    data = recipe(place / "run", train={"steps": 2}, tasks={"source": {}, "eval_size": 4})
    del data["method"]
    for seam, start in STARTS.items():
        begin(seam, f"my_{seam}")
        apply_override(data, f"{start.key}=my_{seam}.py:{class_of(f'my_{seam}')}")
    result = assay.train(data, quiet=True)
    assert result.stopped_by is None and result.after is not None
    assert len(result.after.samples) == 8


@pytest.mark.parametrize("words", [("credits", "x"), ("credit", "My-Credit"), ("rollout", "x")])
def test_what_cannot_be_begun(words: tuple[str, str], place: Path) -> None:
    assert begin(*words) == 2
    assert list(place.iterdir()) == []
