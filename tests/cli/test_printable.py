"""What others wrote reaches the terminal as text, and gives it no orders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from assay.cli import main
from assay.cli.common import say
from assay.console import Reporter
from assay.printable import printable

CLEAR = "\x1b[2J\x1b]0;renamed\x07"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, é, 日本, 👩‍🔬 and\ttabs\n", "plain, é, 日本, 👩‍🔬 and\ttabs\n"),
        (CLEAR, "\\x1b[2J\\x1b]0;renamed\\x07"),
        ("a\rb\x7f\x9b2J", "a\\rb\\x7f\\x9b2J"),
        ("right\u202egnorw", "right\\u202egnorw"),
        ("\ud800", "\\ud800"),
    ],
)
def test_orders_become_text(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_lines_of_a_run_give_no_orders(capfd: Any) -> None:
    Reporter().line(f"task {CLEAR}")
    assert "\x1b" not in capfd.readouterr().err


def test_verdicts_and_errors_give_no_orders(tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "own.py").write_text(
        "from assay.types import Verdict\ndef judge(task, response):\n    return Verdict.wrong(response)\n"
    )
    for name in ("judge", f"none{CLEAR}"):
        with pytest.raises(SystemExit):
            main(["verify", f"{tmp_path}/own.py:{name}", "--reference", "1", "--response", f"x{CLEAR}"])
        written = capfd.readouterr()
        assert "renamed" in written.out + written.err and "\x1b" not in written.out + written.err


def test_samples_of_tasks_give_no_orders(tmp_path: Path, capfd: Any) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps({"prompt": f"say {CLEAR}", "answer": "1"}) + "\n")
    with pytest.raises(SystemExit) as ended:
        main(["tasks", "sample", "file", f"path={file}"])
    out = capfd.readouterr().out
    assert not ended.value.code and "renamed" in out and "\x1b" not in out


def test_progress_gives_no_orders_and_reads_no_markup(capfd: Any) -> None:
    for terminal in (False, True):
        reporter = Reporter(interval=0.0)
        reporter.console = Console(stderr=True, force_terminal=terminal, soft_wrap=True, color_system=None)
        with reporter.progress(f"[bold]{CLEAR}", 2) as tick:
            tick(1, f"words {CLEAR} [/x]")
            tick(2)
        said = capfd.readouterr().err
        assert "renamed" in said and "[bold]" in said and "\x1b]0;" not in said and "\x07" not in said


def test_the_table_of_an_audit_gives_no_orders(tmp_path: Path, capfd: Any) -> None:
    rows = [
        {"response": f"1{CLEAR}", "reference": "1", "label": right, "category": f"kind{CLEAR}"}
        for right in (True, False)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    with pytest.raises(SystemExit):
        main(["audit", "exact", str(file), "--out", str(tmp_path / "out")])
    written = capfd.readouterr()
    assert "renamed" in written.out and "\x1b" not in written.out + written.err


def test_what_commands_tell_people_gives_no_orders(capfd: Any) -> None:
    say(f"task {CLEAR}", "next")
    assert capfd.readouterr().out == f"task {printable(CLEAR)}\nnext\n"
