"""A training command that dies is gone on with, as often as allowed, and not when it ended by itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from assay.scale import supervise as module
from assay.scale.faults import faults
from assay.scale.supervise import supervise

ENDS = """
import os, signal, sys
folder, ends = sys.argv[1], sys.argv[2].split()
with open(os.path.join(folder, "starts"), "a") as file:
    file.write(sys.argv[3] + "\\n")
open(os.path.join(folder, "config.toml"), "a").close()
end = ends[len(open(os.path.join(folder, "starts")).readlines()) - 1]
if end.endswith("!"):
    open(os.environ["ASSAY_SUPERVISED"], "w").close()
end = int(end.strip("!"))
os.kill(os.getpid(), -end) if end < 0 else os._exit(end)
"""
"""A command that notes its start, begins a run, and ends in the next of the given ways.

A way is an exit code, with "!" if the command ends by itself, or minus a signal.
"""


def run(folder: Path, ends: str, retries: int) -> tuple[int, list[str]]:
    """Exit code, and which command was started each time."""
    command = [sys.executable, "-S", "-c", ENDS, str(folder), ends]
    code = supervise([*command, "begin"], [*command, "resume"], folder, retries)
    return code, (folder / "starts").read_text().split()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES", (0.0,))


def test_goes_on_after_deaths(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Killed, lost its cluster, did not find it again, ended by Ray: restarts, each told in a line and noted."""
    assert run(tmp_path, "-9 75! 2! 1 0", retries=4) == (0, ["begin", *["resume"] * 4])
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 4 and all(
        "the trainer died" in line and f"retry {i + 1} of 4" in line for i, line in enumerate(lines)
    )
    assert [row["why"] for row in faults(tmp_path)] == ["killed by SIGKILL", *["it lost what it runs on"] * 3]


def test_gives_up(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One death more than allowed ends it, with the code of the last and a line that says how to go on."""
    assert run(tmp_path, "-9 -11 0", retries=1) == (128 + signal.SIGSEGV, ["begin", "resume"])
    assert f"assay train --resume {tmp_path}" in capfd.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_an_end_of_its_own_is_final(tmp_path: Path, code: int) -> None:
    """A run that finished, that reports an error, that was asked wrongly or stopped is not started again."""
    assert run(tmp_path, f"{code}! 0", retries=5) == (code, ["begin"])


@pytest.mark.parametrize(("end", "told"), [("1", 1), ("-9", 1), ("75!", 0)])
def test_without_retries_it_only_tells(tmp_path: Path, capfd: pytest.CaptureFixture[str], end: str, told: int) -> None:
    """A death ends it with a line, unless the command had time to say so itself."""
    code, starts = run(tmp_path, end, retries=0)
    assert (code, starts) == ({"1": 1, "-9": 137, "75!": 75}[end], ["begin"])
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == told and all("the trainer died" in line for line in lines)


def test_begins_again_where_nothing_was_begun(tmp_path: Path) -> None:
    """A command that died before it made the run's folder is run as it was."""
    command = [sys.executable, "-S", "-c", ENDS.replace('open(os.path.join(folder, "config.toml"), "a").close()', "")]
    command += [str(tmp_path), "-9 0"]
    assert supervise([*command, "begin"], [*command, "resume"], tmp_path, 1) == 0
    assert (tmp_path / "starts").read_text().split() == ["begin", "begin"]
    assert faults(tmp_path) == []  # in a folder with something in it, no run could begin


def test_passes_a_signal_on(tmp_path: Path) -> None:
    """SIGTERM reaches the command, whose end, even by that signal, is then no death."""
    code = f"import pathlib, time; pathlib.Path({str(tmp_path / 'up')!r}).touch(); time.sleep(60)"

    def strike() -> None:
        while not (tmp_path / "up").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=strike).start()
    assert supervise([sys.executable, "-S", "-c", code], [], tmp_path, 3) == 128 + signal.SIGTERM
