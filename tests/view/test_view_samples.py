"""What a table of samples answers, held against the rows that were written, and what happens while a run goes on."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from viewed import HOSTILE, SAMPLES, STEPS, TASKS, found, get, verdict, viewing, write_evaluation, write_run, write_step

from assay.errors import UsageError
from assay.view.places import Places
from assay.view.server import ViewServer
from assay.view.table import Table

pytest.importorskip("duckdb", reason="needs assay[view]")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> ViewServer:
    folder = tmp_path_factory.mktemp("view")
    write_run(folder / "runs" / "grpo")
    with viewing(folder / "runs") as server:
        server.app.tables.of(server.app.places.get("runs/grpo")).wait()
        yield server


SOURCE = "runs/grpo"


def test_counts_are_those_of_what_was_written(server: ViewServer) -> None:
    every = found(server, "samples", source=SOURCE)
    assert every["total"] == STEPS * TASKS * SAMPLES == 96 and len(every["rows"]) == 50
    # tasks 0 and 1 are right in samples 0 and 2, task 3 is abstained on
    assert every["facets"] == {
        "passed": {"right": 24, "wrong": 48, "abstains": 24},
        "stop": {"eos": 72, "length": 24},
    }
    assert [r["step"] for r in every["rows"][:16]] == [STEPS] * 16 and every["rows"][0]["row"] == 0


def test_filters_leave_what_passes_them_all(server: ViewServer) -> None:
    asked = {"source": SOURCE, "is.passed": "right", "min.step": 2, "max.step": 4, "is.task_id": "task-1"}
    some = found(server, "samples", **asked)
    assert some["total"] == 3 * 2 and all(r["passed"] and r["task_id"] == "task-1" for r in some["rows"])
    # the count of a facet leaves its own filter out
    assert some["facets"]["passed"] == {"right": 6, "wrong": 6} and some["facets"]["stop"] == {"eos": 6}
    two = found(server, "samples", ("is.passed", "right"), ("is.passed", "abstains"), source=SOURCE)
    assert two["total"] == 48
    assert found(server, "samples", source=SOURCE, **{"max.reward/brevity": -0.25})["total"] == 18
    assert found(server, "samples", source=SOURCE, **{"min.length": 63})["total"] == 4


def test_search_finds_texts_in_any_case_and_takes_no_patterns(server: ViewServer) -> None:
    hits = found(server, "samples", source=SOURCE, q="THE ANSWER IS 7")
    assert hits["total"] == sum(
        f"the answer is {t + s + k % 2}".startswith("the answer is 7")
        for s in range(1, STEPS + 1) for t in range(3) for k in range(SAMPLES)
    )  # fmt: skip
    assert found(server, "samples", source=SOURCE, q="%")["total"] == 0
    assert found(server, "samples", source=SOURCE, q="' OR 1=1 --")["total"] == 0
    assert found(server, "samples", source=SOURCE, q="ONERROR")["total"] == 24
    both = found(server, "samples", source=SOURCE, q="equals 5", sort="-length", **{"is.stop": "length"})
    assert both["total"] == 18 and both["facets"]["stop"] == {"eos": 30, "length": 18}
    lengths = [r["length"] for r in both["rows"]]
    assert lengths == sorted(lengths, reverse=True)


def test_pages_hold_every_sample_once_in_order(server: ViewServer) -> None:
    pages = [found(server, "samples", source=SOURCE, sort="-reward", offset=o, limit=40)["rows"] for o in (0, 40, 80)]
    rows = [row for page in pages for row in page]
    assert len({(r["file"], r["row"]) for r in rows}) == 96
    rewards = [r["reward"] for r in rows]
    told = [r for r in rewards if r is not None]
    assert told == sorted(told, reverse=True) and rewards[len(told) :] == [None] * 24


def test_groups_and_a_task_over_the_steps(server: ViewServer) -> None:
    rows = found(server, "groups", source=SOURCE, sort="-rate")
    assert rows["total"] == STEPS * TASKS and rows["rows"][0]["rate"] == 0.5 and rows["rows"][0]["right"] == 2
    last = found(server, "groups", source=SOURCE, **{"is.task_id": "task-0", "min.step": 6})["rows"][0]
    # rewards 1, -0.1, 0.8, -0.3: mean 0.35; squared deviations .4225 .2025 .2025 .4225 / 4 = .3125
    assert last["reward"] == pytest.approx(0.35) and last["spread"] == pytest.approx(0.3125**0.5)
    over = found(server, "steps", source=SOURCE, **{"is.task_id": "task-0"})
    assert [(r["step"], r["right"], r["samples"], r["length"]) for r in over] == [
        (s, 2, 4, 10 * s + 1.5) for s in range(1, STEPS + 1)
    ]
    whole = found(server, "group", source=SOURCE, step=6, task="task-0", group=0)
    assert [r["passed"] for r in whole["rows"]] == [verdict(0, k) for k in range(SAMPLES)]
    assert whole["rows"][0]["parts"] == {"format": 1.0, "value": 1.0}


def test_export_gives_whole_rows_of_the_selection(server: ViewServer) -> None:
    _, headers, body = get(server, f"/api/export?source={SOURCE}&is.task_id=task-3&max.step=1")
    rows = [json.loads(line) for line in body.splitlines()]
    assert [r["response"] for r in rows] == [HOSTILE] * 4 and "attachment" in headers["content-disposition"]
    _, _, body = get(server, f"/api/export?source={SOURCE}&key=step-000002.parquet:5&key=step-000001.parquet:0")
    assert [(r["step"], r["row"]) for r in map(json.loads, body.splitlines())] == [(2, 5), (1, 0)]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("samples?source=runs/none", 404, "no source"),
        ("samples?source=../../etc", 404, "no source"),
        ("samples", 400, "lacks 'source'"),
        ("samples?source=runs/grpo&sort=nothing", 400, "no column 'nothing'"),
        ("samples?source=runs/grpo&min.stop=3", 400, "is no number"),
        ("samples?source=runs/grpo&min.reward=x", 400, "is no number"),
        ("samples?source=runs/grpo&is.passed=maybe", 400, "a verdict is"),
        ("samples?source=runs/grpo&offset=x", 400, "is no number"),
        ('samples?source=runs/grpo&is.a"b=1', 400, "no column"),
        ("groups?source=runs/grpo&sort=nothing", 400, "cannot be sorted"),
        ("sample?source=runs/grpo&file=../config.toml&row=0", 404, "no row"),
        ("sample?source=runs/grpo&file=step-000001.parquet&row=99", 404, "no row"),
        ("group?source=runs/grpo&step=-1&task=task-0", 400, "no whole number"),
        ("run?id=runs/grpo/before", 404, "no run"),
        ("nothing", 404, "nothing is at"),
    ],
)
def test_wrong_links_are_told_of(server: ViewServer, path: str, status: int, said: str) -> None:
    code, _, body = get(server, "/api/" + path.replace('"', "%22"))
    assert code == status and said in json.loads(body)["error"]


def test_a_run_is_looked_at_while_it_goes_on(tmp_path: Path) -> None:
    """New steps appear, what a resumed run forgets goes, a damaged file is named and hides no other."""
    run = write_run(tmp_path / "run", steps=2)
    with viewing(run) as server:
        table = server.app.tables.of(server.app.places.get("run"))
        table.wait()
        assert found(server, "samples", source="run")["total"] == 32
        write_step(run, 3)
        (run / "rollouts" / "step-000004.parquet").write_bytes(b"PAR1 not really")
        table.refresh()
        table.wait()
        assert found(server, "samples", source="run")["total"] == 48
        assert "step-000004.parquet cannot be read" in found(server, "columns", source="run")["notes"][0]
        for step in (2, 3, 4):
            (run / "rollouts" / f"step-00000{step}.parquet").unlink()
        table.refresh()
        table.wait()
        assert found(server, "samples", source="run")["total"] == 16
        assert found(server, "columns", source="run")["notes"] == []


def test_the_first_page_does_not_wait_for_the_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four files are shown while the others are still to be read, here until the page is there."""
    run, shown = write_run(tmp_path / "run", steps=7), threading.Event()
    insert = Table._insert

    def slowly(table: Table, cursor: Any, names: list[str]) -> bool:
        if "step-000003.parquet" in names:
            assert shown.wait(60)
        return insert(table, cursor, names)

    monkeypatch.setattr(Table, "_insert", slowly)
    with viewing(run) as server:
        first = found(server, "samples", source="run")
        shown.set()
        assert (first["total"], first["loading"]) == (64, 3) and first["rows"][0]["step"] == 7
        server.app.tables.of(server.app.places.get("run")).wait()
        assert found(server, "samples", source="run")["total"] == 112


def test_what_is_there_is_found(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "runs" / "one")
    write_run(tmp_path / "b" / "runs" / "one")
    write_evaluation(tmp_path / "a" / "alone.parquet", "mine", 0, 3)
    (tmp_path / "a" / "else.json").write_text('{"schema": "of another"}')
    (tmp_path / "a" / "audit.json").write_text('{"schema": "assay.audit/1"}')
    here = Places([tmp_path / "a" / "runs", tmp_path / "b" / "runs", tmp_path / "a"]).all()
    runs = [id for id, place in here.items() if place.kind == "run"]
    assert runs == sorted({"runs/one", str(tmp_path / "b" / "runs" / "one"), "a/runs/one"})
    assert here["a/alone"].kind == "evaluation" and here["a/audit"].what == "audit record" and "a/else" not in here
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="nothing to look at"):
        Places([tmp_path / "empty"])
    with pytest.raises(UsageError, match="is not there"):
        Places([tmp_path / "none"])


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ('name = "dapo"', "dapo"),
        ('name = "grpo"\nobjective = {name = "dpo", beta = 0.1}\nrollout = "recorded"', "dpo, rollout recorded"),
        ('name = "grpo"\ncredit = "rloo"', "grpo, credit rloo"),
        ('name = "S014"\nobjective = "cispo"', "S014, objective cispo"),
        ("", "grpo"),
    ],
)
def test_a_list_of_runs_says_what_each_learns_by_and_what_it_came_to(tmp_path: Path, method: str, words: str) -> None:
    run = write_run(tmp_path / "runs" / "one")
    (run / "config.toml").write_text(f"seed = 3\n[method]\n{method}\n")
    with viewing(tmp_path / "runs") as server:
        row = found(server, "home")["runs"][0]
        # the first five of eight tasks are right after, but for the first
        assert row["method"] == words and row["measured"]["label"] == "after" and row["measured"]["step"] == STEPS
        assert row["measured"]["metrics"]["pass@1"] == pytest.approx(4 / 8)
        (run / "log.txt").write_text("2026-11-28 10:30:52+00:00  said\n")
        assert found(server, "run", id="runs/one")["log"].endswith("  said\n")
        (run / "evals" / "after.parquet").unlink()
        assert found(server, "home")["runs"][0]["measured"]["label"] == "before"
        (run / "evals" / "before.parquet").unlink()
        assert found(server, "home")["runs"][0]["measured"] is None


def test_a_folder_of_another_program_hides_no_run(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "grpo")
    (tmp_path / "runs" / "site").mkdir()
    (tmp_path / "runs" / "site" / "config.toml").write_text('model = "gpt"\ntrain = true\nmethod = []\ntasks = 3\n')
    with viewing(tmp_path / "runs") as server:
        told = {run["id"]: run["model"] for run in found(server, "home")["runs"]}
    assert told == {"runs/grpo": "nano", "runs/site": None}
