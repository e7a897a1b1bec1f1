"""The league: methods tuned by one rule on the same starts, records that runs go on from, the table."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from running import recipe

from assay.cli.league import league
from assay.compare.standing import WIDE, cost, counted
from assay.errors import UsageError
from assay.league import Setting, enter, load, strategies
from assay.league.entry import _wider
from assay.league.page import curves, place, table
from assay.league.settings import SETTINGS, entrant, known
from assay.league.standing import records, standing

SEEDS, RATES = 5, [1e-3, 1e-2]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """A league of two steps, whose verifier errs, so that untrained models have something to learn from."""
    sections = {k: v for k, v in recipe("").items() if k not in ("run", "method")}
    flawed = {"name": "flawed", "verifier": {"name": "by_kind"}, "false_positive": 0.5}
    sections["tasks"] = {**sections["tasks"], "verify": flawed}
    sections["evaluate"] = {**sections.get("evaluate", {}), "samples": 16}
    sections["warmup"] = {"steps": 2}
    sections["compare"] = {
        "seeds": SEEDS,
        "tuning": 1,
        "points": 1,
        "measure": "area",
        "sweep": {"train.lr": RATES},
    }
    path = tmp_path_factory.mktemp("setting") / "t.toml"
    path.write_text(tomli_w.dumps(sections))
    return Setting("T", path)


@pytest.fixture(scope="module")
def played(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GRPO and RLOO in it: the folder of the runs, with the records in ``records``."""
    folder = tmp_path_factory.mktemp("league")
    both = {label: known()[label] for label in ("grpo", "rloo")}
    assert enter(setting, both, folder, folder / "records", jobs=2) is not None
    return folder


@pytest.mark.parametrize("name", SETTINGS)
def test_every_method_of_the_league_fits_every_setting(name: str) -> None:
    setting = load(name.lower())
    assert setting.name == name and setting.about[0].isupper() and setting.about.endswith(".")
    for label, method in known().items():
        plan = setting.plan(label, method)
        config = plan.config(label, next(iter(plan.tasks)), 0, plan.choices[0])
        assert plan.budget.steps(config) >= plan.points and len(plan.seeds) == 10 and plan.measure == "area"
        assert config.evaluate.samples >= WIDE and config.warmup.steps and len(plan.choices) == 3
    some = replace(setting, seeds=5).plan("grpo", {"name": "grpo"})
    assert some.seeds == setting.plan("grpo", {"name": "grpo"}).seeds[:5]
    assert replace(setting, seeds=5).fingerprint == setting.fingerprint
    assert entrant("s017") == ("S017", {"name": "S017"})
    assert entrant("s147") == entrant("S147") and "{question}" in entrant("s147")[1]["options"]["template"]
    with pytest.raises(UsageError, match="grpo"):
        entrant("grpoo")


def test_strategies_have_no_seeds(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="L4 has no seeds"):
        league("L4", "sample", seeds=5, dir=tmp_path / "runs", out=tmp_path / "out")


def test_a_setting_stays_what_its_records_are_of() -> None:
    """What was added to recipes, or beside a setting, is none of another version."""
    assert load("L1").plan("grpo", {"name": "grpo"}).budget.amount == 51_200
    stored = Path(__file__).parents[2] / "league"
    for path in stored.glob("*/*.json"):
        name = path.parent.name
        setting = strategies.load(name) if name in strategies.SETTINGS else load(name)
        assert json.loads(path.read_text())["fingerprint"] == setting.fingerprint, path
    assert len({load(name).fingerprint for name in SETTINGS}) == len(SETTINGS)


def test_a_variant_is_its_setting_but_for_what_training_is_told() -> None:
    plain = load("L2").plan("grpo", {"name": "grpo"})
    for name, part in (("L2-noisy", {"false_positive": 0.1, "false_negative": 0.2}), ("L2-length", {"length": 0.2})):
        plan = load(name).plan("grpo", {"name": "grpo"})
        flawed = plan.recipe["tasks"]["train_verify"]
        assert part.items() <= flawed.items() and flawed["verifier"] == plain.recipe["tasks"]["verify"]
        tasks = {k: v for k, v in plan.recipe["tasks"].items() if k != "train_verify"}
        assert {**plan.recipe, "tasks": tasks} == plain.recipe and plan.budget == plain.budget


@pytest.mark.slow
def test_a_record_has_every_run_once(setting: Setting, played: Path) -> None:
    for label in ("grpo", "rloo"):
        record = json.loads((played / "records" / f"{label}.json").read_text())
        names = [run["name"] for run in record["runs"]]
        assert len(set(names)) == len(names) and "warm-up" not in " ".join(names)
        assert [seed for seed, _ in counted(record)] == list(range(SEEDS))
        rates = sorted(row["train.lr"] for row in record["tried"])
        assert set(RATES) <= set(rates) and record["chosen"]["train.lr"] in rates
        assert len(names) == SEEDS + len(rates)
        here = record["environments"][0]
        assert here["processors"] and "commit" in here and "command" not in here


@pytest.mark.slow
def test_runs_that_a_record_has_are_not_repeated(setting: Setting, played: Path, tmp_path: Path) -> None:
    """On another machine, where nothing but the record is: only what the record lacks is run."""
    shutil.copytree(played / "records", tmp_path / "records")
    path = tmp_path / "records" / "rloo.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "runs": whole["runs"][:-1]}))
    said: list[str] = []
    again = enter(setting, {"rloo": known()["rloo"]}, tmp_path / "runs", tmp_path / "records", 2, said.append)
    assert again is not None
    missing = whole["runs"][-1]["name"]
    start = missing.rpartition("/")[0] + "/warm-up"
    assert [line.split("] ")[1].split(":")[0] for line in said] == [start, missing]
    runs = {run["name"]: run["result"] for run in again["rloo"]["runs"]}
    clocks = ("seconds", "time")
    for run in whole["runs"]:
        assert {k: v for k, v in runs[run["name"]].items() if k not in clocks} == {
            k: v for k, v in run["result"].items() if k not in clocks
        }
    said.clear()
    assert enter(setting, {"rloo": known()["rloo"]}, tmp_path / "runs", tmp_path / "records", 2, said.append) == again
    assert not said
    with pytest.raises(UsageError, match="is of another method than today's; move it away"):
        enter(setting, {"rloo": known()["gspo"]}, tmp_path / "runs", tmp_path / "records")


@pytest.mark.slow
def test_the_baseline_is_run_from_every_start(setting: Setting, played: Path, tmp_path: Path) -> None:
    """A record of another machine, which made other starts of the same seeds: runs are paired by them."""
    shutil.copytree(played / "records", tmp_path / "records")
    path = tmp_path / "records" / "grpo.json"
    whole = json.loads(path.read_text())
    for run in whole["runs"]:
        run["result"]["start"] = "elsewhere"
    path.write_text(json.dumps(whole))
    rloo = tmp_path / "records" / "rloo.json"
    runs = json.loads(rloo.read_text())
    names = [run["name"] for run in runs["runs"] if run["name"].endswith("/rloo")]
    runs["runs"] = [run for run in runs["runs"] if run["name"] not in names[-2:]]
    rloo.write_text(json.dumps(runs))
    said: list[str] = []
    both = {label: known()[label] for label in ("grpo", "rloo")}
    again = enter(setting, both, tmp_path / "runs", tmp_path / "records", 1, said.append)
    assert again is not None
    ran = sorted(line.split("] ")[1].split(":")[0] for line in said)
    seeds = [name.rpartition("/")[0] for name in names[-2:]]
    assert ran == sorted(f"{seed}/{name}" for seed in seeds for name in ("warm-up", "rloo", "grpo"))
    mine, theirs = counted(again["rloo"]), counted(again["grpo"])
    pairs = set(mine) & set(theirs)
    assert sorted(seed for seed, _ in pairs) == [SEEDS - 2, SEEDS - 1]
    assert len(theirs) == SEEDS + 2 and len(mine) == SEEDS
    said.clear()
    assert enter(setting, both, tmp_path / "runs", tmp_path / "records", 1, said.append) == again and not said


def test_the_sweep_goes_on_where_the_best_is_at_an_end(setting: Setting) -> None:
    plan = setting.plan("grpo", {"name": "grpo"})
    first = {"train.lr": RATES}

    def wider(*means: float) -> list[float]:
        rows = [{"train.lr": rate, "mean": mean} for rate, mean in zip(RATES, means, strict=True)]
        return _wider(plan, rows, first)["train.lr"]

    assert wider(0.2, 0.4) == [1e-3, 1e-2, 1e-1] and wider(0.4, 0.2) == [1e-4, 1e-3, 1e-2]
    assert wider(0.4, 0.4) == RATES, "flat"
    assert wider(0.2, float("nan")) == [1e-4, 1e-3, 1e-2], "a run that failed is the worst"


@pytest.mark.slow
def test_a_method_that_cannot_act_does_not_stand(setting: Setting, tmp_path: Path) -> None:
    """Every response has the same reward: no run of its sweep learns anything, and no seed that counts is run."""
    said: list[str] = []
    same = {"name": "grpo", "reward": {"name": "function", "function": f"{Path(__file__)}:same"}}
    found = enter(setting, {"same": same}, tmp_path / "runs", tmp_path / "records", 2, said.append)
    assert found is not None and found["same"]["runs"] == [] and not (tmp_path / "records").exists()
    tuning = [line for line in said if "warm-up" not in line]
    assert len(tuning) == len(RATES) and all("the gradient was exactly 0 at every step" in line for line in tuning)


def same(task: Any, response: str) -> float:
    return 1.0


def result(area: float, **more: Any) -> dict[str, Any]:
    time = {"step": 10.0, "generate": 6.0, "update": 3.0}
    found = {"area": area, "final": area, "pass_at": {"1": area, "16": 0.9}, "tokens": 200, "rollouts": 20}
    return {"status": "finished", **found, "steps": 5, "time": time, "judged": 1000, **more}


def record(label: str, setting: Setting, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "label": label,
        "fingerprint": setting.fingerprint,
        "method": {"name": "grpo"},
        "tried": [],
        "chosen": {"train.lr": 1e-3},
        "unsettled": [],
        "environments": [{"commit": "abc", "processors": 2}],
        "runs": [{"name": f"t/seed-{s}/{label}", "environment": 0, "result": r} for s, r in enumerate(results)],
    }


def test_effects_by_hand(setting: Setting) -> None:
    base = [0.40, 0.50, 0.60, 0.40, 0.50]
    slow = {"step": 30.0, "generate": 6.0, "update": 3.0}
    found = {
        "grpo": record("grpo", setting, [result(x) for x in base]),
        # Differences .1, .3, .2, .2, .2: mean .2, s .0707, half width t(.975, 4) = 2.7764 times s / sqrt(5) = .0878.
        "ahead": record(
            "ahead",
            setting,
            [result(x + d, time=slow) for x, d in zip(base, (0.1, 0.3, 0.2, 0.2, 0.2), strict=True)],
        ),
        "behind": record("behind", setting, [result(x) for x in (0.30, 0.31, 0.32, 0.30, 0.0)]),
        "few": record("few", setting, [result(0.9)] * 4),
    }
    ahead, grpo, behind = standing(setting, found)
    assert [stand.label for stand in (ahead, grpo, behind)] == ["ahead", "grpo", "behind"], "too few seeds stand aside"
    assert ahead.effect is not None and grpo.effect is None
    assert (ahead.effect.value, ahead.effect.low) == pytest.approx((0.2, 0.2 - 0.0878), abs=1e-4)
    assert ahead.flip == pytest.approx(2 / 32) and ahead.cost == pytest.approx(3.0)
    busy = [{**result(x), "time": {"step": 9.0, "generate": 6.0, "update": 3.0, "processor": 4.0}} for x in base]
    idle = [{**result(x), "time": {"step": 3.0, "generate": 2.0, "update": 1.0, "processor": 6.0}} for x in base]
    assert cost(idle, busy) == pytest.approx(1.5), "of the processor, whatever else the machine did"
    mixed, plain = [idle[0], result(0.5), result(0.5, time=slow)], [busy[0], result(0.5), result(0.5)]
    assert cost(mixed, plain) == pytest.approx(1.5), "the median of 1.5, 1 and 3"
    assert cost(idle, [result(0.5)] * 5) == pytest.approx(0.3), "by the clock, where one has no more"
    assert ahead.beside == pytest.approx(0.7) and grpo.beside == pytest.approx(0.1)
    assert (grpo.measure, grpo.wide, grpo.tokens) == pytest.approx((0.48, 0.9, 10.0))
    # Of two tests Holm doubles the smaller p: t = 6.32 with four degrees, p = .0032.
    assert ahead.p == pytest.approx(0.0064, abs=2e-4)
    assert behind.fell == 1
    # A run from another start of the same seed pairs with none.
    found["ahead"]["runs"][0]["result"]["start"] = "abc"
    assert "ahead" not in [stand.label for stand in standing(setting, found)], "four pairs are too few"
    lines = table([ahead, grpo, behind]).splitlines()
    assert lines[2].startswith("| ahead | +20.00 [+11.22, +28.78] | 0.0064; 0.062 | 5 | 68.0% |")
    assert "| grpo | baseline |" in lines[3] and "5; 1 fell" in lines[4] and lines[4].endswith("| abc, 2 cores |")


def test_a_place_names_its_accelerators() -> None:
    assert place({"commit": None, "processors": 2}) == "release, 2 cores", "of a record older than they are told"
    two = {"commit": "abc", "processors": 16, "accelerators": ["NVIDIA H100 80GB HBM3"] * 2}
    assert place(two) == "abc, 16 cores, 2 × NVIDIA H100 80GB HBM3"


@pytest.mark.slow
def test_the_page_of_curves_has_both_methods(setting: Setting, played: Path) -> None:
    found = records(setting, played / "records")
    assert list(found) == ["grpo", "rloo"]
    text = curves(setting, found)
    assert text is not None and "rloo" in text and "<svg" in text
    assert curves(setting, {"grpo": found["grpo"]}) is None
    assert "rloo" in table(standing(setting, found))


def test_what_does_not_fit_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[model]\n")
    for setting, methods, words in (
        ("L9", "rloo", "the league has no setting 'L9'; its settings are L1, L2, L2-noisy, L2-length, L3, L4"),
        ("L1", "rlo", "no method is called 'rlo' in the league; did you mean 'rloo'"),
        ("L1", str(tmp_path / "own.toml"), r"has no table \[method\]"),
        ("L1", str(tmp_path / "none.toml"), "cannot be read: No such file"),
        ("L1", "", "has no record of grpo in L1 as it is today"),
    ):
        if methods:
            with pytest.raises(UsageError, match=words):
                league(setting, methods, dir=tmp_path / "runs", out=tmp_path / "out")
    (tmp_path / "L1").mkdir()
    with pytest.raises(UsageError, match="has no record of grpo in L1 as it is today"):
        records(load("L1"), tmp_path / "L1")
    assert not (tmp_path / "runs").exists() and not (tmp_path / "out").exists()
