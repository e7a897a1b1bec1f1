"""Parts that `assay new` begins: their own tests pass, and a run takes one of every seam from files."""

from __future__ import annotations

import importlib
import inspect
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import recipe

import assay
from assay import cli
from assay.api import evaluate
from assay.config import apply_override
from assay.errors import UsageError
from assay.inference.named import make_strategies
from assay.tables.starts import STARTS, class_of, used
from assay.tables.starts.learning import LEARNING
from assay.tables.starts.watching import WATCHING


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


def begun(data: dict[str, Any], *seams: str) -> dict[str, Any]:
    """The recipe with parts of one's own, as what `assay new` prints says."""
    for seam in seams:
        begin(seam, f"my_{seam}")
        words = shlex.split(used(seam, f"my_{seam}"))
        for word in words[words.index("...") + 1 :]:
            apply_override(data, word)
    return data


def test_a_run_with_a_part_of_ones_own_in_every_seam(place: Path) -> None:
    data = recipe(place / "run", train={"steps": 2}, tasks={"source": {}, "eval_size": 4})
    del data["method"]
    result = assay.train(begun(data, *LEARNING, *WATCHING, "rollout", "engine"), quiet=True)
    assert result.stopped_by is None and result.after is not None
    assert len(result.after.samples) == 8
    assert (place / "run" / "MyLogger.txt").read_text().startswith("warmup 1 {")
    begin("scorer", "my_scorer")
    scored = evaluate(place / "run", scorer=str(place / "my_scorer.py:MyScorer"), samples=1, quiet=True)
    assert all(s.confidence is not None and s.confidence < 0 for s in scored.samples)


@pytest.mark.parametrize("seam", ["objective", "credit", "select"])
def test_a_part_of_ones_own_is_learned_by(place: Path, seam: str) -> None:
    """Beside a reward that differs, so that there is something to learn from."""
    data = recipe(place / "run", train={"steps": 2}, warmup={"steps": 0}, evaluate={"every": 0, "samples": 0})
    assay.train(begun(data, seam), quiet=True)
    rows = [json.loads(line) for line in (place / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(row["grad_norm"] > 0 for row in rows)
    assert seam != "objective" or all(0 <= row["bounded"] <= 1 for row in rows)


def test_a_run_in_an_environment_and_with_a_signal_of_ones_own(place: Path) -> None:
    data = recipe(place / "run", train={"steps": 1}, warmup={"steps": 0}, evaluate={"every": 0, "samples": 1})
    data["method"] = {}
    data["tasks"] = {"eval_size": 2, "eval_share": 0.2}
    result = assay.train(begun(data, "environment", "signal"), quiet=True)
    assert result.after is not None and len(result.after.samples) == 2
    assert len(list((place / "run").glob("rollouts/*.parquet"))) == 1


def test_strategies_of_ones_own_by_what_is_printed(place: Path) -> None:
    begin("inference", "my_inference")
    begin("scorer", "my_scorer")
    for seam in ("inference", "scorer"):
        words = shlex.split(used(seam, f"my_{seam}"))
        [made] = make_strategies(words[words.index("--strategy") + 1]).values()
        assert type(getattr(made, "scorer", made)).__name__ == class_of(f"my_{seam}")
    [made] = make_strategies("my_inference.py:MyInference(sampling={max_tokens=3})").values()
    assert made.sampling.max_tokens == 3  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="'Nothing'"):
        make_strategies("best_of_n(scorer=my_scorer.py:Nothing)")


@pytest.mark.parametrize("words", [("credits", "x"), ("credit", "My-Credit"), ("nothing", "x")])
def test_what_cannot_be_begun(words: tuple[str, str], place: Path) -> None:
    assert begin(*words) == 2
    assert list(place.iterdir()) == []
