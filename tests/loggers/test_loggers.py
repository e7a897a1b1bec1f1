"""Loggers, each read back with its library's own means; what fails in one ends no run."""

from __future__ import annotations

import importlib
import json
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from running import recipe

import assay
from assay.errors import UsageError
from assay.loggers.background import IN_A_ROW, Background
from assay.loggers.base import About
from assay.registry import build, names

pytestmark = pytest.mark.usefixtures("one_thread")

ABOUT = {"id": "0123456789abcdef", "config": {"train": {"lr": 0.5, "betas": [0.9, 0.99]}, "seed": 7}}
ROWS = [{"step": 1, "prompt": "3+4=", "response": "a | <b>\n7", "reward": 0.25, "passed": None}]


def told(logger: Any, folder: Path) -> Any:
    """Hand a logger two stages, a table and, after a break, one more step."""
    folder.mkdir(exist_ok=True)
    about = About(folder=folder, **ABOUT)
    logger.start(about)
    logger.metrics("warmup", 1, {"loss": 2.5})
    logger.metrics("rl", 1, {"reward/mean": 0.25, "loss": float("nan")})
    logger.metrics("eval", 0, {"pass@1": 0.125})
    logger.table("rollouts", 1, ROWS)
    logger.close()
    return about


@pytest.mark.slow
def test_mlflow_in_a_database(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install 'assay[mlflow]'")
    about = told(build("logger", "mlflow"), tmp_path / "run")
    again = build("logger", "mlflow")
    again.start(about)
    again.metrics("rl", 2, {"reward/mean": 0.75})
    again.close()
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    [run] = client.search_runs([client.get_experiment_by_name("assay").experiment_id])
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params == {"train.lr": "0.5", "train.betas": "[0.9, 0.99]", "seed": "7"}
    history = client.get_metric_history(run.info.run_id, "rl/reward/mean")
    assert [(m.step, m.value) for m in history] == [(1, 0.25), (2, 0.75)]
    assert "rl/loss" not in run.data.metrics and run.data.metrics["eval/pass_at_1"] == 0.125
    stored = json.loads(
        (tmp_path / "mlartifacts" / run.info.run_id / "artifacts/rollouts/step-000001.json").read_text()
    )
    assert stored == {"columns": list(ROWS[0]), "data": [list(ROWS[0].values())]}


def logged(data: bytes) -> Iterator[bytes]:
    """Yield the records of a file in LevelDB's log format, in blocks of 32 KiB; W&B puts 7 bytes of its own before."""
    place, parts = 7, b""
    while place + 7 <= len(data):
        room = 2**15 - place % 2**15
        if room < 7:
            place += room
            continue
        length, kind = struct.unpack("<HB", data[place + 4 : place + 7])
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part of one
            yield parts
            parts = b""


@pytest.mark.slow
def test_wandb_offline(tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb", reason="W&B is not installed: pip install 'assay[wandb]'")
    told(build("logger", {"name": "wandb", "mode": "offline"}), tmp_path / "run")
    wandb.teardown()  # its own process closes the file
    [file] = (tmp_path / "run" / "wandb").rglob("run-*.wandb")
    records = importlib.import_module("wandb.proto.wandb_internal_pb2")
    steps: dict[str, list[Any]] = {}
    config, about = {}, None
    for data in logged(file.read_bytes()):
        record = records.Record()
        record.ParseFromString(data)
        for item in record.history.item:
            steps.setdefault("/".join(item.nested_key) or item.key, []).append(json.loads(item.value_json))
        if record.HasField("run"):
            about = record.run
            config |= {item.key: json.loads(item.value_json) for item in about.config.update}
    assert about is not None and (about.run_id, about.display_name, about.project) == (ABOUT["id"], "run", "assay")
    assert config["seed"] == 7 and config["train"]["lr"] == 0.5
    assert steps["rl/reward/mean"] == [0.25] and steps["warmup/loss"] == [2.5] and steps["eval/pass@1"] == [0.125]
    assert (steps["rl/rollouts/nrows"], steps["rl/rollouts/ncols"]) == ([1], [5])
    [table] = (tmp_path / "run" / "wandb").rglob("offline-run-*/**/*.table.json")
    assert json.loads(table.read_text())["data"] == [list(ROWS[0].values())]


def test_trackio_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio", reason="Trackio is not installed: make trackio")
    about = told(build("logger", "trackio"), tmp_path / "run")
    storage = importlib.import_module("trackio.sqlite_storage").SQLiteStorage
    logs = storage.get_logs("assay", f"run-{ABOUT['id'][:8]}")
    assert [(row["step"], row["warmup/loss"]) for row in logs if "warmup/loss" in row] == [(1, 2.5)]
    assert [row["rl/reward/mean"] for row in logs if "rl/reward/mean" in row] == [0.25]
    [table] = [row["rl/rollouts"] for row in logs if "rl/rollouts" in row]
    assert table["_value"][0]["response"] == ROWS[0]["response"] and about.flat()["train.lr"] == 0.5
    assert capfd.readouterr().out == ""


def test_tensorboard_with_text(tmp_path: Path) -> None:
    accumulator = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    told(build("logger", "tensorboard"), tmp_path / "run")
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard" / f"run-{ABOUT['id'][:8]}")).Reload()
    [text] = events.Tensors("rl/rollouts")
    cells = text.tensor_proto.string_val[0].decode().splitlines()[-1]
    assert cells == "| 1 | 3+4= | a &#124; &lt;b&gt;<br>7 | 0.25 | None |"
    assert {"warmup/loss", "rl/reward/mean", "eval/pass@1"} <= {*events.Tags()["scalars"], *events.Tags()["tensors"]}


class Kept:
    """Keeps what it is told; fails or hangs where it is asked to."""

    def __init__(self, rows: int = 2, fail: Sequence[str] = (), hold: threading.Event | None = None):
        self.rows, self.fail, self.hold, self.calls = rows, fail, hold, []

    def _note(self, *call: Any) -> None:
        if self.hold is not None:
            self.hold.wait()
        if call[0] in self.fail:
            raise ConnectionError("no route\nto the server")
        self.calls.append(call)

    def start(self, about: About) -> None:
        self._note("start", about)

    def metrics(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        self._note("metrics", stage, step, values)

    def table(self, name: str, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        self._note("table", name, step, rows)

    def close(self) -> None:
        self._note("close")


def test_a_run_with_loggers_good_and_bad_and_its_continuation(tmp_path: Path, capfd: Any) -> None:
    good, bad = Kept(), Kept(fail=("metrics", "close"))
    data = recipe(tmp_path / "run", train={"steps": 2}, evaluate={"every": 0, "samples": 1}, warmup={"steps": 1})
    assay.train(data, loggers=[good, bad])
    about = good.calls[0][1]
    assert about.config["train"]["steps"] == 2 and about.name == "run" and len(about.id) == 32
    steps = [(stage, step) for name, stage, step, *_ in good.calls[1:-1] if name == "metrics"]
    assert steps == [("warmup", 1), ("eval", 0), ("rl", 1), ("rl", 2), ("eval", 2)] and good.calls[-1] == ("close",)
    stored = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert {**good.calls[1][3], "stage": "warmup", "step": 1} == stored[0]
    table = next(rows for name, _, step, *rows in good.calls[1:] if name == "table" and step == 1)[0]
    assert len({row["group"] for row in table}) == len(table) == 2, "of as many prompts as can be"
    lines = [line for line in capfd.readouterr().err.splitlines() if "logger" in line]
    assert lines == [
        "logger Kept 2 failed and the run goes on: ConnectionError: no route to the server; the run's folder has "
        "everything",
        "logger Kept 2: 6 of 9 calls failed; the run's folder has everything",
    ]
    later = Kept(rows=0)
    assay.train(resume=tmp_path / "run", overrides=["train.steps=3"], loggers=[later], quiet=True)
    assert later.calls[0][1].id == about.id
    assert [call[2] for call in later.calls if call[0] == "metrics" and call[1] == "rl"] == [3]
    assert not any(call[0] == "table" for call in later.calls)


def test_a_logger_that_hangs_or_always_fails() -> None:
    hold, lines = threading.Event(), []
    slow = Background("slow", Kept(hold=hold), lines.append, patience=0.05, waiting=3)
    for step in range(9):
        slow.metrics("rl", step, {})
    slow.close()
    assert lines[0].startswith("logger slow failed and the run goes on: it is slower than the run")
    assert lines[1].startswith("logger slow did not end within 0.05 s") and slow.failed >= 5
    hold.set()
    kept, said = Kept(fail=("metrics",)), []
    dead = Background("dead", kept, said.append)
    for step in range(IN_A_ROW + 5):
        dead.metrics("rl", step, {})
    dead.close()
    assert kept.calls == [], "one that has failed so often is not asked to end either"
    assert said[1].startswith(f"logger dead: {IN_A_ROW + 6} of {IN_A_ROW + 6} calls failed")


def test_what_cannot_log_is_said_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names("logger") == ["mlflow", "tensorboard", "trackio", "wandb"]
    with pytest.raises(UsageError, match="no logger part is called 'wand'; did you mean 'wandb'"):
        assay.train(recipe(tmp_path / "run", run={"loggers": ["wand"]}), quiet=True)
    with pytest.raises(UsageError, match="logger PosixPath has no start, metrics, table"):
        assay.train(recipe(tmp_path / "run"), loggers=[Path()], quiet=True)
    with pytest.raises(UsageError, match="rows = -1"):
        assay.train(recipe(tmp_path / "run"), loggers=[Kept(rows=-1)], quiet=True)
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    with pytest.raises(UsageError, match=r"logger 'wandb' needs wandb: pip install 'assay\[wandb\]'"):
        assay.train(recipe(tmp_path / "run", run={"loggers": ["wandb"]}), quiet=True)
    assert not (tmp_path / "run").exists()
