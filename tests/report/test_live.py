"""The report while a run goes on: there from the start, not too often, and never a reason to end the run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import assay
from assay.config import load_config
from assay.report.live import LiveReport
from assay.training.callbacks import Callback, Running

SMALL: dict[str, Any] = {
    "model": {"source": "nano", "nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 32}},
    "tasks": {"source": {"name": "arithmetic", "digits": 1}, "eval_size": 2},
    "warmup": {"steps": 0},
    "rollout": {"prompts": 1, "group": 2, "max_tokens": 2},
    "train": {"steps": 1},
    "evaluate": {"samples": 1},
}


def test_a_run_has_a_page_while_it_goes_on(tmp_path: Path) -> None:
    seen: list[bool] = []

    class Looks(Callback):
        def on_step(self, run: Running, metrics: Any) -> None:
            seen.append((run.folder / "report.html").is_file())

    sections = {**SMALL, "run": {"dir": str(tmp_path / "run")}}
    done = assay.train(sections, callbacks=[Looks()], quiet=True)
    assert seen == [True]
    # The last page is of the whole run.
    assert "interrupted" not in (done.folder / "report.html").read_text(encoding="utf-8")


def test_pages_are_not_written_all_the_time(tmp_path: Path, monkeypatch: Any) -> None:
    now = [100.0]
    monkeypatch.setattr("assay.report.live.time.monotonic", lambda: now[0])
    (tmp_path / "config.toml").write_text("seed = 0\n")
    page, live = tmp_path / "report.html", LiveReport()
    run: Any = SimpleNamespace(folder=tmp_path, config=load_config({}))
    live.on_start(run)
    assert page.is_file()
    for later, again in ((9.9, False), (10.0, True), (15.0, False), (20.0, True)):
        page.unlink(missing_ok=True)
        now[0] = 100.0 + later
        live.on_checkpoint(run, tmp_path)
        assert page.is_file() is again
    page.unlink()
    run.config = load_config({"run": {"report": False}})
    LiveReport().on_start(run)
    assert not page.is_file()


def test_a_page_that_cannot_be_written_ends_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    said: list[str] = []
    run: Any = SimpleNamespace(folder=tmp_path / "gone", config=load_config({}), say=said.append)
    monkeypatch.setattr("assay.report.live.EVERY", 0.0)
    live = LiveReport()
    live.on_start(run)
    live.on_checkpoint(run, tmp_path)
    assert len(said) == 1 and "cannot be written while the run goes on" in said[0] and "gone" in said[0]
