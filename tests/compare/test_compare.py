"""Comparisons of methods: plans, budgets, runs in processes that are killed and go on, records, pages."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import tomli_w
from running import recipe

from assay.cli import main
from assay.compare import compare, read_plan
from assay.compare.budget import Budget, BudgetedTrainer
from assay.compare.figures import figures
from assay.compare.page import render, words, write
from assay.compare.plan import settle
from assay.compare.record import judged
from assay.compare.runs import Runs
from assay.config import load_config
from assay.console import Reporter
from assay.errors import RunError, UsageError
from assay.training.build import build_trainer

STEP = 12
"""Rollouts in a step of the tests' runs."""


def varied(**parts: Any) -> dict[str, Any]:
    """A ``[method]`` table with the tests' reward, and other parts."""
    return {"name": "grpo", **recipe("")["method"], **parts}


def plan_file(folder: Path, **changes: Any) -> Path:
    """A recipe with a table ``[compare]``: three methods, two of them the same, two seeds, four steps each."""
    sections = {k: v for k, v in recipe("").items() if k not in ("run", "method")}
    sections["compare"] = {
        "methods": {"grpo": varied(), "rloo": varied(credit="rloo"), "twin": varied()},
        "seeds": 2,
        "points": 2,
        **changes,
    }
    path = folder / "plan.toml"
    path.write_text(tomli_w.dumps(sections))
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A small comparison from end to end: where it is, and its record."""
    folder = tmp_path_factory.mktemp("compare")
    record = compare(read_plan(plan_file(folder)), folder / "out", jobs=2)
    assert record is not None
    return folder, record


def scores(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs without what the clock says."""
    return [{k: v for k, v in run.items() if k not in ("seconds", "time")} for run in record["runs"]]


def test_a_small_comparison_from_end_to_end(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, record = finished
    assert record["failed"] == {} and record["schema"] == "assay.compare/1"
    assert [(r["method"], r["seed"]) for r in record["runs"]] == [
        (m, s) for m in ("grpo", "rloo", "twin") for s in (0, 1)
    ]
    for run in record["runs"]:
        # Sampled in four steps, and measured before, half-way and after.
        assert run["rollouts"] == record["plan"]["budget"]["amount"] == 4 * STEP and run["steps"] == 4
        assert [p["rollouts"] for p in run["curve"]] == [0, 2 * STEP, 4 * STEP]
        assert run["curve"][-1]["pass@1"] == run["final"] == run["pass_at"]["1"]
        assert run["time"]["processor"] > 0
    for seed in (0, 1):
        # All methods of a seed go on from one warm start.
        first = {json.dumps([r["start"], r["curve"][0]]) for r in record["runs"] if r["seed"] == seed}
        assert len(first) == 1
    # The same method twice is the same runs, bit for bit, and nothing would ever tell them apart.
    same = [[{**run, "method": ""} for run in scores(record) if run["method"] == m] for m in ("grpo", "twin")]
    assert same[0] == same[1]
    [pair] = [p for p in record["pairs"] if (p["a"], p["b"]) == ("grpo", "twin")]
    assert pair["difference"]["value"] == 0 and pair["verdict"] == "not told apart" and pair["more_seeds"] is None
    stored = json.loads((folder / "out" / "compare.json").read_text())
    assert stored == json.loads(json.dumps(record))
    # What is said follows from the runs alone, also as they were stored.
    assert json.loads(json.dumps(judged(stored))) == stored
    assert record["winner"] is None and record["verdict"][0].startswith("No winner")


def test_seeds_that_share_a_start_go_on_from_it_each_in_its_own_way(tmp_path: Path) -> None:
    file = plan_file(tmp_path, starts=1, methods={"grpo": varied(), "rloo": varied(credit="rloo")})
    plan = read_plan(file, ["tasks.eval_seed=0"])
    assert [plan.start(seed) for seed in (0, 1, 1000, 1001)] == [0, 0, 0, 0]
    three = read_plan(file, ["tasks.eval_seed=0"], starts=2, seeds=[4, 7, 9], tuning=[2, 3])
    assert [three.start(seed) for seed in (4, 7, 9, 2, 3)] == [4, 7, 4, 4, 7]
    record = compare(plan, tmp_path / "out", jobs=2)
    assert record is not None and record["failed"] == {} and record["plan"]["starts"] == 1
    assert len(list((tmp_path / "out").rglob("warm-up"))) == 1 and len({run["start"] for run in record["runs"]}) == 1
    first = {run["seed"]: run["curve"] for run in record["runs"] if run["method"] == "grpo"}
    assert first[0][0] == first[1][0] and first[0] != first[1]


def test_finished_runs_are_not_repeated_and_another_plan_is_refused(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, record = finished
    results = sorted((folder / "out" / "runs").rglob("result.json"))
    before = [path.stat().st_mtime_ns for path in results]
    told: list[str] = []
    again = compare(read_plan(folder / "plan.toml"), folder / "out", say=told.append)
    assert again == record and told == [] and len(results) == 8
    assert [path.stat().st_mtime_ns for path in results] == before
    for changes, key in (({"seeds": 3}, "seeds"), ({"budget": "rollouts=60"}, "budget.amount")):
        with pytest.raises(UsageError, match=rf"{key} = .* another --out") as refused:
            compare(read_plan(folder / "plan.toml", **changes), folder / "out")
        assert "\n" not in str(refused.value)
    with pytest.raises(UsageError, match=r"recipe\.train\.lr = 0\.001, not 0\.002"):
        compare(read_plan(folder / "plan.toml", ["train.lr=2e-3"]), folder / "out")


def test_a_comparison_does_not_go_on_with_other_code(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Its reward is a function in a file; the plan is told it was another one."""
    folder, _ = finished
    shutil.copytree(folder / "out", tmp_path / "out")
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert [Path(path).name for path in plan["code"]] == ["running.py"]
    plan["code"] = dict.fromkeys(plan["code"], "0" * 16)
    (tmp_path / "out" / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(UsageError, match=r'code\..*running\.py = "0{16}", not ".*keep it, or take another --out'):
        compare(read_plan(folder / "plan.toml"), tmp_path / "out")


def test_the_command_prints_the_verdict_and_writes_the_page(
    finished: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, record = finished
    command = ["compare", str(folder / "plan.toml"), "--out", str(folder / "out")]
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main([*command, *more])
        assert not ended.value.code
        printed = capsys.readouterr().out
        if more:
            assert json.loads(printed) == json.loads(json.dumps(record))
        else:
            assert "No winner" in printed and str(folder / "out" / "compare.html") in printed
    assert (folder / "out" / "compare.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("how", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGINT])
@pytest.mark.slow
def test_a_comparison_that_was_ended_goes_on(finished: tuple[Path, dict[str, Any]], tmp_path: Path, how: int) -> None:
    folder, record = finished
    out = tmp_path / "out"
    command = [sys.executable, "-m", "assay", "compare", str(folder / "plan.toml"), "--out", str(out), "--jobs", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 300
    while not list(out.glob("runs/*/seed-*/rloo/run/metrics.jsonl")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does, to all that it sees
    else:
        process.send_signal(how)
    assert process.wait(120) == (-signal.SIGKILL if how == signal.SIGKILL else 130)
    done = {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}
    assert 0 < len(done) < 8 and not (out / "compare.json").exists()
    if how == signal.SIGINT:
        assert b"the same command goes on" in process.stderr.read()  # type: ignore[union-attr]
    while True:  # until the runs have seen that their parent is gone
        try:
            resumed = compare(read_plan(folder / "plan.toml"), out, jobs=2)
        except UsageError:
            time.sleep(0.1)
            continue
        break
    assert resumed is not None and resumed["failed"] == {}
    assert scores(resumed) == scores(record)
    assert {path: path.stat().st_mtime_ns for path in done} == done


@pytest.mark.slow
def test_a_run_that_fails_is_reported_and_a_setting_that_fails_is_not_taken(tmp_path: Path) -> None:
    never = {"name": "paired", "candidates": 1, "pools": ["none", "none"]}
    methods = {"grpo": varied(), "rloo": varied(credit="rloo"), "lost": varied(curriculum=never)}
    file = plan_file(tmp_path, methods=methods, sweep={"train.lr": [1e30, 1e-3]}, tuning=1)
    record = compare(read_plan(file), tmp_path / "out", jobs=2)
    assert record is not None
    assert record["chosen"] == {"grpo": {"train.lr": 1e-3}, "rloo": {"train.lr": 1e-3}, "lost": None}
    assert [t["mean"] is None for t in record["tried"]["grpo"]] == [True, False]
    assert record["left_out"] == ["lost"] and list(record["methods"]) == ["grpo", "rloo"]
    lost = [error for name, error in record["failed"].items() if "/lost" in name]
    assert len(lost) == 4 and sum("found no pair" in e for e in lost) >= 1
    assert {r["seed"] for r in record["runs"]} == {0, 1}, "tuning seeds do not count"
    assert "Failed runs" in render(record) and any("lost" in line for line in words(record))


def test_runs_of_a_setting_that_is_no_longer_chosen_are_made_again(tmp_path: Path) -> None:
    plan = read_plan(plan_file(tmp_path, sweep={"train.lr": [1e-3, 1e-2]}, tuning=1))
    found: dict[str, Any] = {}
    runs = Runs(plan, tmp_path, unprotected=False)
    jobs = runs.jobs(found)

    def tuned(method: str, lr: float, final: float) -> dict[str, Any]:
        return {f"arithmetic/seed-1000/{method}@train.lr={lr}": {"status": "finished", "final": final}}

    for method in plan.methods:
        found |= tuned(method, 1e-3, 0.5) | tuned(method, 1e-2, 0.4)
    counted = [job for job in jobs if job.after]
    for job in counted:
        job.folder.mkdir(parents=True)
        (job.folder / "job.json").write_text(json.dumps(job.make()))
        found[job.name] = {"status": "finished"}
    assert runs.outdated(jobs, found) == []
    found |= tuned("rloo", 1e-2, 0.6)
    assert runs.outdated(jobs, found) == ["arithmetic/seed-0/rloo", "arithmetic/seed-1/rloo"]
    assert not counted[1].folder.exists() and counted[0].folder.exists() and "arithmetic/seed-0/rloo" not in found


# Budgets


def budgeted(folder: Path, budget: Budget, **sections: dict[str, Any]) -> BudgetedTrainer:
    trainer = build_trainer(
        load_config(recipe(folder, **sections)), Reporter(quiet=True), kind=partial(BudgetedTrainer, budget=budget)
    )
    try:
        trainer.run()
    finally:
        trainer.folder.close()
    assert isinstance(trainer, BudgetedTrainer)
    return trainer


def test_a_run_ends_before_the_step_that_would_exceed_its_budget(tmp_path: Path, one_thread: None) -> None:
    whole = budgeted(tmp_path / "a", Budget("rollouts", 3 * STEP), train={"steps": 1})
    assert whole.step == 3 and whole.meter.count["rollouts"] == 3 * STEP
    less = budgeted(tmp_path / "b", Budget("rollouts", 3 * STEP - 1), train={"steps": 1})
    assert less.step == 2 and less.meter.count["rollouts"] == 2 * STEP
    rows = [row for row in less.folder.metrics() if row["stage"] == "rl"]
    assert [row["spent/rollouts"] for row in rows] == [STEP, 2 * STEP]
    assert less.folder.stored_evaluation("after", 2) is not None
    with pytest.raises(RunError, match="one step takes more than the budget"):
        budgeted(tmp_path / "c", Budget("rollouts", STEP - 1))


def test_tokens_are_counted_as_they_were_sampled(tmp_path: Path, one_thread: None) -> None:
    import pyarrow.parquet as pq

    trainer = budgeted(tmp_path / "a", Budget("tokens", 150))
    rows = [row for row in trainer.folder.metrics() if row["stage"] == "rl"]
    sampled = 0
    for row in rows:
        stored = pq.ParquetFile(tmp_path / "a" / "rollouts" / f"step-{row['step']:06d}.parquet").read().to_pylist()
        sampled += sum(r["length"] for r in stored)
        assert row["spent/tokens"] == sampled
    # A step is 12 responses of at most 4 tokens.
    assert 150 - STEP * 4 < trainer.meter.count["tokens"] == sampled <= 150


@pytest.mark.slow
def test_rollouts_that_are_asked_for_and_dropped_are_paid_for(tmp_path: Path, one_thread: None) -> None:
    plain = budgeted(tmp_path / "a", Budget("rollouts", 6 * STEP), method=varied())
    # An untrained model is always wrong: dynamic sampling asks on in vain.
    dynamic = budgeted(
        tmp_path / "b", Budget("rollouts", 6 * STEP), method=varied(rollout={"name": "dynamic", "rounds": 3})
    )
    assert plain.step == 6 and 2 <= dynamic.step < 6
    assert dynamic.meter.count["rollouts"] <= 6 * STEP


def test_a_falling_learning_rate_falls_over_the_budget(tmp_path: Path, one_thread: None) -> None:
    made = {"schedule": "linear", "steps": 2, "mini_batches": 1, "epochs": 1, "lr": 1e-3}
    trainer = budgeted(tmp_path / "a", Budget("rollouts", 4 * STEP), train=made)
    rates = [row["lr"] for row in trainer.folder.metrics() if row["stage"] == "rl"]
    assert rates == pytest.approx([1e-3, 0.75e-3, 0.5e-3, 0.25e-3])


def test_budgets_are_read() -> None:
    config = load_config({"rollout": {"prompts": 4, "group": 3}, "train": {"steps": 5}})
    assert Budget.of("rollouts", config) == Budget("rollouts", 60)
    assert Budget.of("rollouts=1e3", config) == Budget("rollouts", 1000)
    assert Budget.of("tokens=2e6", config) == Budget("tokens", 2_000_000)
    for text in ("tokens", "rollouts=11", "steps=3", "rollouts=x", "rollouts=-5", "tokens=inf", ""):
        with pytest.raises(UsageError):
            Budget.of(text, config)


# Plans


def test_a_plan_is_read_from_flags_over_a_table(tmp_path: Path) -> None:
    file = plan_file(tmp_path, sweep={"train.lr": [1e-3, 1e-2]}, tuning=2)
    plan = read_plan(
        file, ["rollout.group=4"], seeds=3, first_seed=7, methods="dapo,S014", tasks="arithmetic,countdown"
    )
    assert list(plan.seeds) == [7, 8, 9] and list(plan.tuning) == [1000, 1001]
    assert plan.methods == {"dapo": {"name": "dapo"}, "S014": {"name": "S014"}}
    config = plan.config("S014", "countdown", 8, {"train.lr": 1e-2})
    assert (config.method.name, config.tasks.source, config.seed, config.train.lr) == ("S014", "countdown", 8, 1e-2)
    assert config.rollout.group == 4 and config.tasks.eval_size == 6
    assert read_plan(file, sweep=["train.lr=1e-4,3e-4", "train.schedule=linear,cosine"]).choices == [
        {"train.lr": 1e-4, "train.schedule": "linear"},
        {"train.lr": 1e-4, "train.schedule": "cosine"},
        {"train.lr": 3e-4, "train.schedule": "linear"},
        {"train.lr": 3e-4, "train.schedule": "cosine"},
    ]


def test_methods_are_named_by_label_by_file_and_as_recipes_name_them(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[method]\nname = "grpo"\ncredit = "opo"\n[train]\nsteps = 3\n')
    mine = str(tmp_path / "mine.toml")
    file = plan_file(tmp_path, methods={"short": varied(credit="rloo"), "other": "dapo"})
    plan = read_plan(file, ["method.credit=rloo"], methods=f"short,other,S014,recipe,{mine}")
    assert plan.methods == {
        "short": varied(credit="rloo"),
        "other": {"name": "dapo"},
        "S014": {"name": "S014"},
        "recipe": {"credit": "rloo"},
        "mine": {"name": "grpo", "credit": "opo"},
    }
    assert sorted(read_plan(file).methods) == ["other", "short"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"methods": "grpo,grpo"}, "different names"),
        ({"methods": "grpo,no/such.toml"}, "no/such.toml cannot be read: No such file"),
        ({"methods": "plan,plan.toml"}, "cannot be read"),
        ({"methods": "grpo,S999"}, "S999"),
        ({"seeds": 1}, "two or more seeds"),
        ({"seeds": [0, 1000], "sweep": ["train.lr=1,2"]}, "seed 1000 is one that the sweep tunes on"),
        ({"sweep": ["train.lr"]}, "key=value,value"),
        ({"sweep": ["train.rate=1,2"]}, "train.rate"),
        ({"sweep": ["seed=1,2"]}, "not a thing to sweep"),
        ({"methods": {"a/b": {"name": "grpo"}, "c": {"name": "grpo"}}}, "folders are named by it"),
        ({"methods": {"warm-up": {"name": "grpo"}, "c": {"name": "grpo"}}}, "not warm-up"),
        ({"points": 0}, "points"),
        ({"starts": 1}, "set tasks.eval_seed"),
        ({"starts": 3}, "from 1 to the number of seeds, 2"),
        ({"measure": "best"}, "measure"),
    ],
)
def test_plans_that_do_not_fit_are_refused_in_a_line(tmp_path: Path, flags: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        read_plan(plan_file(tmp_path), **flags)
    assert "\n" not in str(refused.value)


def test_one_method_is_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two or more methods"):
        compare(read_plan(plan_file(tmp_path), methods="grpo"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"compare\.seed'; did you mean 'seeds'"):
        read_plan(plan_file(tmp_path, seed=3))
    settle(tmp_path / "plan.json", {"a": {"b": [1]}})
    settle(tmp_path / "plan.json", {"a": {"b": [1]}})
    with pytest.raises(UsageError, match=r"a\.b = \[1\], not \[2\]"):
        settle(tmp_path / "plan.json", {"a": {"b": [2]}})


# Records and pages


def simulated(methods: int = 3, gain: float = 0.3) -> dict[str, Any]:
    """A record of runs that were not run: the first method is better by ``gain``, and label and task need escaping."""
    names = ["<best>", *(f"method {i}" for i in range(1, methods))]
    runs = []
    for m, name in enumerate(names):
        for task in ("sums", "R&D"):
            for seed in range(5):
                final = 0.4 + 0.02 * seed + (gain if m == 0 else 0.003 * m * (-1) ** seed)
                curve = [{"step": i, "rollouts": 10 * i, "tokens": 70 * i, "pass@1": final * i / 4} for i in range(5)]
                run = {"method": name, "task": task, "seed": seed, "status": "finished", "final": final, "curve": curve}
                spent = {"rollouts": 40, "tokens": 280, "steps": 4, "seconds": 1.0, "abstained": 0.0, "judged": 400}
                runs.append({**run, **spent, "pass_at": {"1": final, "2": min(1.0, 1.3 * final)}})
    plan = {
        "recipe": {"tasks": {"source": "sums", "eval_size": 5}},
        "methods": {n: {"name": n} for n in names},
        "tasks": {"sums": "sums", "R&D": "other"},
        "seeds": [0, 1, 2, 3, 4],
        "budget": {"unit": "rollouts", "amount": 40},
        "tuning": [],
        "points": 4,
        "measure": "final",
    }
    chosen = {n: {} for n in names}
    return judged(
        {"plan": plan, "runs": runs, "failed": {}, "tried": {}, "chosen": chosen, "environment": {"packages": {}}}
    )


def test_a_record_says_who_won_and_by_how_much() -> None:
    record = simulated()
    assert record["winner"] == "<best>" and record["verdict"][0] == "<best> is better than every other method."
    # By hand: ten scores, .7 to .78 twice each; without two at each end the mean is .74.
    assert record["methods"]["<best>"]["iqm"]["value"] == pytest.approx(0.74)
    assert record["curves"]["rollouts"]["x"] == [0, 10, 20, 30, 40]
    assert record["curves"]["rollouts"]["<best>"]["value"] == pytest.approx([0, 0.185, 0.37, 0.555, 0.74])
    # Every run has the same curve against tokens, of which it took 280.
    assert record["curves"]["tokens"]["x"] == [0, 70, 140, 210, 280]
    profile = dict(zip(record["profile"]["x"], record["profile"]["<best>"]["value"], strict=True))
    assert profile[0.69] == 1 and profile[0.75] == pytest.approx(0.4) and profile[0.79] == 0
    assert record["pass_at"]["x"] == [1, 2]
    assert record["pairs"][0]["improvement"]["value"] == 1.0


def test_runs_that_failed_leave_their_seed_out_for_all() -> None:
    record = simulated()
    for run in record["runs"]:
        if run["method"] == "method 1" and run["task"] == "R&D" and run["seed"] == 3:
            run |= {"status": "failed", "error": "no"}
    assert judged(record)["seeds"] == [0, 1, 2, 4]
    for run in record["runs"]:
        run |= {"status": "failed", "error": "no"}
    with pytest.raises(RunError, match="too few runs finished to compare anything: no"):
        judged(record)


@pytest.mark.parametrize("methods", [2, 9])
def test_the_page_is_whole_and_holds_no_foreign_markup(methods: int) -> None:
    record = simulated(methods)
    page = render(record)
    assert "<best>" not in page and "&lt;best&gt;" in page and "R&D" not in page
    assert "<script" not in page and "src=" not in page and "href=" not in page
    drawn = figures(record)
    assert [f.name for f in drawn] == [
        "scores",
        "curves_rollouts",
        "curves_tokens",
        "profile",
        "pass_at_k",
        "differences",
    ]
    assert all(f.svg in page for f in drawn) and all(len(f.key) <= 6 for f in drawn)
    assert ("The 6 best of 9 methods" in page) == (methods == 9)


def test_the_page_leads_to_the_runs_and_names_papers(tmp_path: Path) -> None:
    record = json.loads(json.dumps(simulated()).replace("method 1", "S014").replace("method 2", "S999"))
    place = tmp_path / "runs" / "R&D" / "seed-3" / "S014" / "run" / "report.html"
    place.parent.mkdir(parents=True)
    place.write_text("a report")
    page = render(record, tmp_path)
    links = re.findall('href="(.*?)"', page)
    assert links == [f"runs/R%26D/seed-3/S014/run/report.html{to}" for to in ("", "#rollouts")]
    assert (tmp_path / unquote(links[0])).read_text() == "a report"
    assert page.count("S014 DISPO") > 10 and ">S999<" in page
    assert any(line.startswith("S014 DISPO") for line in words(record))


@pytest.mark.slow
def test_figures_are_drawn_as_png(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="needs the extra png")
    Image = pytest.importorskip("PIL.Image", reason="reads the pictures")

    paths = write(simulated(), tmp_path)
    assert [p.stem for p in paths][1:] == [f.name for f in figures(simulated())]
    for path in paths[1:]:
        image = Image.open(path).convert("RGB")
        colours = {c for _, c in image.getcolors(1 << 24) or []}
        # Neither blank nor left in black, as shapes are that a style does not reach.
        assert image.width >= 900 and len(colours) > 20 and (0, 0, 0) not in colours
