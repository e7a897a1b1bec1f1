"""What a run leaves in its folder, who may have the folder, and what a person sees meanwhile."""

from __future__ import annotations

import io
import json
import shutil
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import running
import torch
from rich.console import Console
from running import recipe, run, tables
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import assay
from assay.config import load_config
from assay.console import Reporter
from assay.errors import RunError, UsageError
from assay.evaluate import Evaluation
from assay.records import files
from assay.records.checkpoints import check_run, last_checkpoint
from assay.records.run_folder import RunFolder, free_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    return run(path, run={"tensorboard": True})


# The folder


def test_the_configuration_is_resolved_and_reads_back(folder: Path) -> None:
    config = load_config(folder / "config.toml")
    assert config == load_config(recipe(folder, run={"tensorboard": True}))
    # Defaults are written out, so that another version's defaults do not change an old run.
    assert "weight_decay = 0.0" in (folder / "config.toml").read_text()


def test_the_environment_is_recorded(folder: Path) -> None:
    found = json.loads((folder / "environment.json").read_text())
    assert found["packages"]["torch"] == torch.__version__
    assert found["processors"] >= 1
    assert found["command"]


def test_metrics_have_a_line_per_step(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(r["stage"], r["step"]) for r in rows] == [
        *(("warmup", i) for i in (1, 2, 3)),
        *(("rl", i) for i in (1, 2, 3, 4)),
    ]
    for row in rows:
        assert {"loss", "grad_norm", "lr", "tokens_per_second", "time", "time/step"} <= row.keys()
    expected = {"reward/mean", "reward/std", "pass_rate", "length/mean", "entropy", "truncated", "abstained"}
    assert expected <= rows[-1].keys()
    assert [r["time"] for r in rows] == sorted(r["time"] for r in rows)


def test_tensorboard_shows_the_metrics(folder: Path, tmp_path: Path) -> None:
    def shown(path: Path) -> dict[str, list[tuple[int, float]]]:
        events = EventAccumulator(str(path / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        scalars = {t: [(e.step, e.value) for e in events.Scalars(t)] for t in events.Tags()["scalars"]}
        # Newer TensorBoards turn scalars into tensors as they read them.
        for tag in events.Tags()["tensors"]:
            scalars[tag] = [(e.step, float(e.tensor_proto.float_val[0])) for e in events.Tensors(tag)]
        return scalars

    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    found = shown(folder)
    for stage in ("warmup", "rl"):
        logged = [(r["step"], r["loss"]) for r in rows if r["stage"] == stage]
        assert [s for s, _ in found[f"{stage}/loss"]] == [s for s, _ in logged]
        assert [v for _, v in found[f"{stage}/loss"]] == pytest.approx([v for _, v in logged], rel=1e-6)
    # After a resume from step 2, steps 3 and 4 are there once.
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    shutil.rmtree(copy / "checkpoints" / "rl-000004")
    assay.train(resume=copy, quiet=True)
    assert [s for s, _ in shown(copy)["rl/loss"]] == [1, 2, 3, 4]


def test_rollouts_say_what_was_sampled_and_what_it_was_worth(folder: Path) -> None:
    stored = sorted((folder / "rollouts").iterdir())
    assert [p.name for p in stored] == [f"step-{i:06d}.parquet" for i in (1, 2, 3, 4)]
    rows = pq.ParquetFile(stored[0]).read().to_pylist()
    assert len(rows) == 12
    for row in rows:
        assert row["reward"] == row["reward/varied"] == pytest.approx(running.varied(None, row["response"]))
        assert row["step"] == 1
        assert row["passed"] in (True, False)
        assert 1 <= row["length"] <= 4
        assert row["prompt"].endswith("=")
    # GRPO's advantages of a prompt's three responses add up to nothing.
    by_task: dict[str, list[float]] = {}
    for row in rows:
        by_task.setdefault(row["task_id"], []).append(row["advantage"])
    assert all(sum(v) == pytest.approx(0, abs=1e-5) for v in by_task.values())


def test_evaluations_before_during_and_after(folder: Path) -> None:
    found = {p.stem: Evaluation.from_parquet(p) for p in (folder / "evals").iterdir()}
    assert {k: (e.step, e.k, len(e.by_task())) for k, e in found.items()} == {
        "before": (0, 2, 6),
        "step-000002": (2, 1, 6),
        "after": (4, 2, 6),
    }


def test_the_last_two_checkpoints_are_kept_and_load_elsewhere(folder: Path) -> None:
    assert sorted(p.name for p in (folder / "checkpoints").iterdir()) == ["rl-000002", "rl-000004"]
    stage, step, path = last_checkpoint(folder)
    assert (stage, step) == ("rl", 4)
    assert load_config(path / "config.toml") == load_config(folder / "config.toml")
    listed = json.loads((path / "manifest.json").read_text())
    assert {"trainer.pt", "config.toml", "policy/model.safetensors", "policy/config.json"} <= listed.keys()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(path / "policy")
    assert model.config.hidden_size == 16
    assert AutoTokenizer.from_pretrained(path / "policy")("1+2").input_ids[1:] == [5, 76, 6]


def test_verdicts_from_other_processes_change_nothing(folder: Path, tmp_path: Path) -> None:
    pooled = run(tmp_path / "pooled", tasks={"verify_workers": 1})
    assert tables(pooled, "rollouts") == tables(folder, "rollouts")
    assert tables(pooled, "evaluations") == tables(folder, "evaluations")


def test_nothing_temporary_is_left(folder: Path) -> None:
    assert running.leftovers(folder) == []


def test_the_report_is_written_at_the_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = assay.train(recipe(tmp_path / "run", run={"report": True}))
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000
    said = capfd.readouterr().err
    assert f"report: {tmp_path / 'run' / 'report.html'}" in said
    assert "before: held-out pass@1 0.000 [0.000, 0.390]" in said
    assert result.before is not None
    assert result.after is not None


# Who may have it


def test_a_run_where_one_is_already_gets_the_next_number(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    second = assay.train(recipe(folder)).folder
    assert second == folder.with_name(f"{folder.name}-2")
    assert (
        f"run folder {second}, as {folder} has a run; to go on with that: assay train --resume"
        in capfd.readouterr().err
    )
    assert free_folder(folder) == folder.with_name(f"{folder.name}-3")
    assert load_config(second / "config.toml").run.dir == str(second)
    assert running.metrics(second) == running.metrics(folder)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match=f"exists already; continue it with: assay train --resume {tmp_path}"):
        free_folder(tmp_path)
    (spaced := tmp_path / "my thesis").mkdir()
    (spaced / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match=f"assay train --resume '{spaced}', or"):  # as a shell reads it
        free_folder(spaced)


def test_a_folder_in_use_is_refused(folder: Path) -> None:
    held = RunFolder.resume(folder)
    try:
        with pytest.raises(UsageError, match=f"run folder {folder} is in use by another process"):
            assay.train(resume=folder, quiet=True)
    finally:
        held.close()
    assay.train(resume=folder, quiet=True)


def test_a_failed_start_lets_go_of_the_folder(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    kept = []  # as a notebook keeps the last error, and with it every frame
    for _ in range(2):
        with pytest.raises(UsageError, match="tasks of this run stands in its config") as caught:
            assay.train(resume=copy, tasks=[assay.Task("1", "1")], quiet=True)
        kept.append(caught)
    assay.train(resume=copy, quiet=True)


def test_where_a_run_was_killed_at_birth_another_may_begin(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (".lock", ".config.toml.partial", "environment.json"):
        (folder / name).write_text("")
    run(folder, warmup={"steps": 0}, train={"steps": 0})
    assert (folder / "config.toml").is_file()
    assert not (folder / ".config.toml.partial").exists()


def test_a_folder_that_vanishes_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    original = RunFolder.log

    def logged(self: RunFolder, stage: str, step: int, metrics: dict[str, float]) -> None:
        if (stage, step) == ("rl", 1):
            shutil.rmtree(folder)
        original(self, stage, step, metrics)

    monkeypatch.setattr(RunFolder, "log", logged)
    with pytest.raises(RunError, match=r"could not write metrics: No such file or directory: .*metrics.jsonl; mend"):
        run(folder)


# Files


def test_a_file_or_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        (path / "a" if path.is_dir() else path).write_text("half")
        raise ValueError("in the middle")

    (tmp_path / "file").write_text("old")
    with pytest.raises(ValueError, match="in the middle"):
        files.write_file(tmp_path / "file", fails)
    assert (tmp_path / "file").read_text() == "old"
    with pytest.raises(ValueError, match="in the middle"):
        files.write_folder(tmp_path / "folder", fails)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]

    def whole(path: Path) -> None:
        (path / "inner").mkdir()
        (path / "inner" / "a").write_text("content")

    files.write_folder(tmp_path / "folder", whole)
    assert files.missing_files(tmp_path / "folder") == []
    (tmp_path / "folder" / "inner" / "a").write_text("conten")
    assert files.missing_files(tmp_path / "folder") == ["inner/a"]
    (tmp_path / "folder" / "inner" / "a").unlink()
    assert files.missing_files(tmp_path / "folder") == ["inner/a"]
    for text in ("{", "[1]", "3"):
        (tmp_path / "folder" / "manifest.json").write_text(text)
        assert files.missing_files(tmp_path / "folder") == ["manifest.json"]


# What a person sees


def test_plain_lines_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with Reporter(interval=0).progress("RL", 4, done=1) as tick:
        tick(2, "reward 0.5")
        tick(4)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split()[:2] for line in lines] == [["RL", "2/4"], ["RL", "4/4"]]
    assert "/s" in lines[0]
    assert "s left  reward 0.5" in lines[0]


def test_seldom_lines_and_none_when_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    for reporter in (Reporter(interval=3600), Reporter(quiet=True, interval=0)):
        with reporter.progress("RL", 4) as tick:
            for i in range(4):
                tick(i + 1)
    assert capfd.readouterr().err == ""


def test_bars_on_a_terminal_may_be_nested() -> None:
    reporter = Reporter()
    screen = io.StringIO()
    reporter.console = Console(file=screen, force_terminal=True, width=100)
    with reporter.progress("RL", 4) as outer:
        outer(1, "reward 0.5")
        with reporter.progress("evaluate", 2) as inner:
            inner(2)
            reporter.line("a line")
        outer(4, "reward 0.75")
    text = screen.getvalue()
    assert "a line" in text
    assert "evaluate" in text
    last = text.rsplit("RL", 1)[1]
    assert "4/4" in last
    assert "reward 0.75" in last
    assert "evaluate" not in last


def test_what_a_run_says_is_kept_also_where_it_is_quiet(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = run(tmp_path / "run", train={"lr": "auto"})
    assert capfd.readouterr().err == ""
    lines = (path / "log.txt").read_text().splitlines()
    moment, said = zip(*(line.split("  ", 1) for line in lines), strict=True)
    assert list(moment) == sorted(moment) and all(datetime.fromisoformat(m).tzinfo for m in moment)
    assert any(text.startswith("before: held-out pass@1") for text in said)
    assert any(text.startswith("learning rate") for text in said), "said before there was a folder"
    before = len(lines)
    assay.train(resume=path, quiet=True)
    assert "resumed" in (path / "log.txt").read_text().splitlines()[before]


def test_an_error_is_the_last_line_of_the_log(tmp_path: Path) -> None:
    def broken(task: assay.Task, response: str) -> float:
        raise ValueError("of mine")

    with pytest.raises(RunError, match="of mine"):
        assay.train(recipe(tmp_path / "run"), reward=broken, quiet=True)
    last = (tmp_path / "run" / "log.txt").read_text().splitlines()[-1]
    assert "  ended: reward function broken raised ValueError: of mine" in last


def test_a_log_that_cannot_be_written_is_told_of_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter()
    reporter.keep(tmp_path / "log.txt")
    (tmp_path / "log.txt").unlink()
    (tmp_path / "log.txt").mkdir()
    for text in ("one", "two"):
        reporter.line(text)
    assert [line.rpartition("/")[2] for line in capfd.readouterr().err.splitlines()] == [
        "one",
        "log.txt cannot be written: Is a directory; nothing more is kept in it",
        "two",
    ]


def test_a_folder_that_is_no_run_is_told_of_by_the_runs_beside_it(folder: Path, tmp_path: Path) -> None:
    check_run(folder)
    with pytest.raises(UsageError, match=r"rum is no run folder: it is not there; did you mean '.*/run'\?"):
        check_run(folder.parent / "rum")
    with pytest.raises(UsageError, match=r"is no run folder: it holds no config\.toml$"):
        check_run(tmp_path)
