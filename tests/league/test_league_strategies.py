"""The league without learning: a bank at several checkpoints, records that go on, the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from running import recipe

from assay.errors import UsageError
from assay.league.strategies import BankSetting, enter, entrants, label, load
from assay.league.strategies_table import cells, records, standing, table
from assay.statistics.paired_effect import paired_effect


def setting(folder: Path, **bank: Any) -> BankSetting:
    sections = {k: v for k, v in recipe("").items() if k not in ("run", "method", "warmup")}
    sections |= {"evaluate": {"samples": 0}, "bank": {"steps": [0, 2, 4], "samples": 4, "budgets": [2, 3], **bank}}
    path = folder / "t.toml"
    path.write_text(tomli_w.dumps(sections))
    return BankSetting("T", path)


def test_a_strategy_answers_at_every_checkpoint_and_its_record_goes_on(tmp_path: Path) -> None:
    here, said = setting(tmp_path), []
    enter(here, ["majority"], tmp_path / "runs", tmp_path / "store", said.append)
    assert len(said) == 3 and said[0].startswith("majority, step 0: 2: ")
    path = tmp_path / "store" / "majority.json"
    whole = json.loads(path.read_text())
    assert [(p["step"], p["budget"]) for p in whole["points"]] == [(s, b) for s in (0, 2, 4) for b in ("2", "3")]
    assert all(len(p["passed"]) == 6 and set(p["passed"]) <= set("01-?") for p in whole["points"])
    assert len(list((tmp_path / "runs" / "bank").iterdir())) == 3
    # Another strategy, from the same weights and responses; of the first, only what its record lacks.
    path.write_text(json.dumps({**whole, "points": [p for p in whole["points"] if p["step"] != 2]}))
    said.clear()
    enter(here, ["majority", "sample"], tmp_path / "runs", tmp_path / "store", said.append)
    missing = ["sample, step 0", "majority, step 2", "sample, step 2", "sample, step 4"]
    assert [line.split(":")[0] for line in said] == missing
    again = json.loads(path.read_text())
    key = lambda p: (p["step"], p["budget"])  # noqa: E731
    assert sorted(again["points"], key=key) == sorted(whole["points"], key=key)
    found = records(here, tmp_path / "store")
    assert list(found) == ["majority", "sample"]
    assert table(here, standing(here, found)).count("\n") == 3


def test_a_record_of_another_setting_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "majority.json").write_text(json.dumps({"setting": "T", "label": "majority", "fingerprint": "other"}))
    with pytest.raises(UsageError, match="another fingerprint than today's; move it away"):
        enter(setting(tmp_path), ["majority"], tmp_path / "runs", store)


def test_strategies_are_looked_at_before_anything_runs() -> None:
    assert entrants("sample, best_of_n(scorer=confidence), ") == ["sample", "best_of_n(scorer=confidence)"]
    with pytest.raises(UsageError, match="sampel"):
        entrants("sampel")
    assert label("best_of_n(scorer=confidence)") == "best_of_n-scorer-confidence"


def record(name: str, passed: list[str], tokens: float, fingerprint: str, scoring: float = 0.0) -> dict[str, Any]:
    points = [
        {"step": step, "budget": budget, "passed": marks, "tokens": tokens, "scoring": scoring, "unscored": 0}
        for step, marks in zip((0, 2, 4), passed, strict=True)
        for budget in ("2", "3")
    ]
    places = [{"commit": "abc", "processors": 2, "accelerators": []}]
    return {"label": name, "fingerprint": fingerprint, "environments": places, "points": points}


def test_a_strategy_is_compared_task_by_task_over_the_checkpoints(tmp_path: Path) -> None:
    """Of five tasks one cannot be judged at a checkpoint; differences of the others: 2/3, 2/3, 0, 0."""
    here = setting(tmp_path)
    base = record("majority", ["00110", "00111", "00101"], 10, here.fingerprint)
    mine = record("x", ["0011?", "11110", "1110-"], 25, here.fingerprint, scoring=5)
    stands = standing(here, {"majority": base, "x": mine})
    assert [s.label for s in stands] == ["x", "majority"]
    effect, expected = stands[0].effect, paired_effect([2 / 3, 2 / 3, 1, 2 / 3], [0, 0, 1, 2 / 3])
    assert effect is not None
    assert (effect.value, effect.low, effect.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert stands[0].accuracy == pytest.approx([2 / 4, 4 / 5, 3 / 5])
    assert (stands[0].tokens, stands[0].scoring, stands[0].unanswered) == pytest.approx((2.5, 0.2, 1 / 15))
    assert stands[0].fewer == pytest.approx([np.nanmean([0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0])])
    row = cells(stands[0])
    assert row[0] == "`x`" and row[1].startswith("+33.33 [") and row[-1] == "abc, 2 cores"
    assert cells(stands[1])[1] == "baseline"


def test_a_strategy_without_every_checkpoint_does_not_stand(tmp_path: Path) -> None:
    here = setting(tmp_path)
    part = record("x", ["00000"] * 3, 1, here.fingerprint)
    part["points"] = part["points"][:4]
    (tmp_path / "x.json").write_text(json.dumps(part))
    assert records(here, tmp_path) == {}
    (tmp_path / "majority.json").write_text(json.dumps(record("majority", ["00000"] * 3, 1, here.fingerprint)))
    assert list(records(here, tmp_path)) == ["majority"]


def test_the_setting_is_whole() -> None:
    here = load("l4")
    assert here.bank["samples"] == 64 and len(here.steps) == 3 and here.steps[0] == 0
    assert max(here.budgets) <= 64
