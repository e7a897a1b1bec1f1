"""Callbacks: called in order, able to end a stage; one that raises is named."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from running import metrics, recipe, tables

import assay
from assay.errors import RunError, UsageError
from assay.training.callbacks import EarlyStopping

pytestmark = pytest.mark.usefixtures("one_thread")

OWN = """
import json
from dataclasses import dataclass
from assay import Callback

@dataclass
class Notes(Callback):
    at: int = 2

    def __post_init__(self):
        self.lines = []

    def on_start(self, run):
        self.lines.append(["start", run.stage, run.step])

    def on_rollouts(self, run, batch):
        self.lines.append(["rollouts", run.stage, run.step, len(batch), float(batch.advantages.abs().sum()) > 0])

    def on_step(self, run, metrics):
        self.lines.append(["step", run.stage, run.step, "loss" in metrics])
        if run.stage == "rl" and run.step == self.at:
            run.stop("it is enough")

    def on_evaluation(self, run, evaluation):
        self.lines.append(["evaluation", evaluation.label])

    def on_checkpoint(self, run, folder):
        self.lines.append(["checkpoint", folder.name])

    def on_end(self, run):
        (run.folder / "notes.json").write_text(json.dumps(self.lines))
"""


def test_a_callback_of_a_file_sees_a_run_and_ends_it(tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "own.py").write_text(OWN)
    spec = {"name": f"{tmp_path / 'own.py'}:Notes", "at": 2}
    data = recipe(tmp_path / "run", run={"callbacks": [spec]}, warmup={"steps": 1}, evaluate={"every": 0, "samples": 1})
    result = assay.train(data)
    assert result.stopped_by is None and result.after is not None and result.after.step == 2
    assert "rl ends at step 2: it is enough" in capfd.readouterr().err
    assert (
        json.loads((tmp_path / "run" / "notes.json").read_text())
        == [
            ["checkpoint", "warmup-000000"],
            ["start", "warmup", 0],
            ["step", "warmup", 1, True],
            ["checkpoint", "rl-000000"],
            ["evaluation", "before"],
            ["step", "rl", 1, True],
            ["rollouts", "rl", 1, 12, True],
            ["step", "rl", 2, True],
            ["rollouts", "rl", 2, 12, True],
            ["checkpoint", "rl-000002"],
            ["evaluation", "after"],
        ][1:]
    )


class Broken:
    def on_step(self, run: Any, metrics: Any) -> None:
        raise KeyError("reward/x")


def test_a_callback_that_raises_is_named_and_what_was_done_stays(tmp_path: Path) -> None:
    data = recipe(tmp_path / "run", warmup={"steps": 0}, evaluate={"every": 0, "samples": 1})
    with pytest.raises(RunError, match=r"callback Broken.on_step raised KeyError: 'reward/x'"):
        assay.train(data, callbacks=[Broken()], quiet=True)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 1
    assert assay.train(resume=tmp_path / "run", overrides=["train.steps=1"], quiet=True).after is not None


def test_early_stopping_by_hand(tmp_path: Path) -> None:
    stopped: list[str] = []
    run: Any = SimpleNamespace(stop=stopped.append)
    callback = EarlyStopping(patience=2, least=0.05)
    for value in (0.25, 0.5, 0.53, None, 0.55):
        assert not stopped
        found = None if value is None else SimpleNamespace(value=value)
        callback.on_evaluation(run, SimpleNamespace(label="step", pass_interval=lambda k, found=found: found))
    assert stopped == ["held-out pass@1 has not risen above 0.500 for 2 evaluations"]
    over = SimpleNamespace(label="after-first", pass_interval=lambda k: None)
    callback.on_evaluation(run, over)
    assert callback.without == 0 and len(stopped) == 1
    with pytest.raises(UsageError, match=r"set evaluate\.every"):
        assay.train(recipe(tmp_path / "run", run={"callbacks": ["early_stopping"]}, evaluate={"every": 0}), quiet=True)
    with pytest.raises(UsageError, match="patience 0"):
        EarlyStopping(patience=0)
    with pytest.raises(UsageError, match="callback int has none of on_start"):
        assay.train(recipe(tmp_path / "run"), callbacks=[3], quiet=True)
    assert not (tmp_path / "run").exists()


class Impatient:
    """Asks for the end of a stage at its second step, and by what is measured at the end of it too."""

    def on_step(self, run: Any, metrics: Any) -> None:
        if run.step == 2:
            run.stop("enough")

    def on_evaluation(self, run: Any, evaluation: Any) -> None:
        if evaluation.label == "after-first":
            run.stop("more than enough")


def test_a_stage_that_a_callback_ends_is_followed_by_the_next_one(tmp_path: Path) -> None:
    made = recipe(tmp_path / "run", warmup={"steps": 0}, evaluate={"every": 0, "samples": 1}, overlap={"staleness": 2})
    del made["train"]["steps"]
    other = {"name": "arithmetic", "operation": "subtraction", "digits": 1}
    made["stages"] = [{"name": "first", "steps": 5}, {"name": "second", "steps": 3, "tasks": other}]
    assay.train(made, callbacks=[Impatient()], quiet=True)
    assert [row["stage_number"] for row in metrics(tmp_path / "run")] == [1, 1, 2, 2, 2]
    # Nothing that the first stage asked ahead is learned from in the second.
    signs = [{row["prompt"][1] for row in rows} for rows in tables(tmp_path / "run", "rollouts").values()]
    assert signs == [{"+"}, {"+"}, {"-"}, {"-"}, {"-"}]


def test_a_method_that_nothing_calls_is_told_of(tmp_path: Path) -> None:
    class Slip:
        def on_step(self, run: Any, metrics: Any) -> None: ...

        def on_setp(self, run: Any, metrics: Any) -> None: ...

    with pytest.raises(UsageError, match="callback Slip: nothing calls on_setp; did you mean 'on_step'"):
        assay.train(recipe(tmp_path / "run"), callbacks=[Slip()], quiet=True)
    assert not (tmp_path / "run").exists()
