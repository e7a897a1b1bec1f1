"""The league in the viewer: what its records say, also before every method has run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from viewed import write_league

from assay.view.league import league
from assay.view.places import Missing, Places
from assay.view.records import record


def test_a_settings_records_are_one_thing_to_look_at(tmp_path: Path) -> None:
    folder = write_league(tmp_path / "league" / "L1")
    here = Places([tmp_path]).all()
    [place] = here.values()
    assert place.id.endswith("/league/L1") and place.what == "league"
    [alone] = Places([folder / "ahead.json"]).all().values()
    assert record(alone)["content"] == record(place)["content"] == league(folder)


def test_where_methods_stand(tmp_path: Path) -> None:
    found = league(write_league(tmp_path / "L1"))
    ahead, base = found["methods"]
    # Mean of the differences .2, s .0707, half width t(.975, 4) = 2.7764 times s / sqrt(5).
    assert ahead["effect"] == pytest.approx({"value": 0.2, "low": 0.1122, "high": 0.2878}, abs=1e-4)
    assert ahead["flip"] == pytest.approx(2 / 32) and ahead["p"] == pytest.approx(0.0032, abs=1e-4)
    assert (base["label"], base["effect"], base["seeds"]) == ("grpo", None, 5)
    assert (ahead["tuned"], ahead["where"]) == ("lr 0.001", ["abc, 2 cores"])
    assert found["waiting"] == [{"label": "few", "seeds": 1, "other": False}]
    assert [x for x, *_ in found["curves"]["grpo"]] == [0, 20, 40]
    assert found["curves"]["grpo"][-1][1] == pytest.approx(0.48) and found["curves"]["ahead"][1][1] == pytest.approx(
        0.34
    )


def test_a_league_that_has_just_begun(tmp_path: Path) -> None:
    folder = write_league(tmp_path / "L1")
    ahead = json.loads((folder / "ahead.json").read_text())
    (folder / "ahead.json").write_text(json.dumps({**ahead, "fingerprint": "older"}))
    found = league(folder)
    assert [row["label"] for row in found["methods"]] == ["grpo"]
    assert {"label": "ahead", "seeds": 5, "other": True} in found["waiting"]
    (folder / "grpo.json").unlink()
    found = league(folder)
    assert found["methods"] == [] and [row["label"] for row in found["waiting"]] == ["ahead", "few"]
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(Missing, match="L1 has no record of the league"):
        league(folder)
