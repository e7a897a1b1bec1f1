"""A training command that dies is gone on with, as often as allowed, and not when it ended by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from assay.scale import supervise as module
from assay.scale.faults import faults
from assay.scale.launch import SUPERVISED
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


RANK = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: open(sys.argv[1] + "/told-" + os.environ["RANK"], "w").close())
open(sys.argv[1] + "/pid-" + os.environ["RANK"], "w").write(str(os.getpid()) + "\\n")
end = time.monotonic() + 60
while time.monotonic() < end:
    time.sleep(0.02)
"""
"""A rank that is in the middle of a step and ends it, whoever tells it to stop."""


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells ranks of the launcher's death")
@pytest.mark.parametrize("supervised", [True, False])
def test_ranks_of_a_launcher_that_was_killed(supervised: bool, tmp_path: Path) -> None:
    """Who resumes the run at once finds none of them at work; where nobody does, they are told to end their step."""
    command = (
        f"from assay.scale.launch import launch; launch({[sys.executable, '-S', '-c', RANK, str(tmp_path)]}, 2, 'r')"
    )
    given = {k: v for k, v in os.environ.items() if k != SUPERVISED} | ({SUPERVISED: "x"} if supervised else {})
    launcher = subprocess.Popen([sys.executable, "-c", command], env=given)
    pids = []
    try:
        pids = [int(waited(tmp_path / f"pid-{rank}").read_text()) for rank in range(2)]
        launcher.kill()
        launcher.wait()
        if supervised:
            end = time.monotonic() + 10
            while any(map(alive, pids)) and time.monotonic() < end:
                time.sleep(0.02)
            assert not any(map(alive, pids)) and not list(tmp_path.glob("told-*"))
        else:
            assert all(waited(tmp_path / f"told-{rank}").exists() for rank in range(2)) and all(map(alive, pids))
    finally:
        launcher.kill()
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)


def waited(path: Path) -> Path:
    """The file, once it is there with its line ended, or was made empty on purpose."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if path.exists() and (path.name.startswith("told") or path.read_text().endswith("\n")):
            return path
        time.sleep(0.02)
    raise AssertionError(f"{path.name} never came")


def test_a_local_cluster_that_does_not_come_up_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray gives up early on a busy machine: the error has the exit code after which a supervised run goes on."""
    from assay.scale.ray.cluster import LostCluster, connect

    class Slow:
        @staticmethod
        def init(**_: object) -> None:
            raise RuntimeError("Timed out waiting for file gcs_server_port\nmore")

    with pytest.raises(LostCluster, match=r"did not start: Timed out .* gcs_server_port$") as error:
        connect(Slow, None)
    assert error.value.exit_code == module.LOST


STUCK = """
import time
from assay.scale.ray import cluster

cluster.START_PATIENCE = 0.2


class Ray:
    @staticmethod
    def init(**options):
        time.sleep(60)


cluster.connect(Ray, None)
"""


def test_a_start_that_waits_for_a_dead_server_ends_in_one_line() -> None:
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 75
    assert ended.stderr == (
        "assay: a local Ray cluster did not start within 0.2 s; nothing has been computed meanwhile\n"
    )
