"""Control groups: all processes of a program together are held to its memory, and no group is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import ClassVar, NoReturn

import pytest

from assay.sandbox import Limits, Program, Sandbox, cgroup
from assay.sandbox.cgroup import Group, Place
from assay.sandbox.worker import Lost

from .support import needs_sandbox

PLACE = cgroup.place()
needs_groups = pytest.mark.skipif(PLACE is None, reason="this machine lets no control groups be made")
LIMITS = Limits(cpu_seconds=5, wall_seconds=20, memory=64 << 20, disk=1 << 20, output=1 << 16, processes=16)
# Each of its processes stays below the limit; together they are far above it.
TOGETHER = """
import os, time
r, w = os.pipe()
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        os.read(r, 1)
        x = bytearray(b'x') * (50 << 20)
        time.sleep(%s)
        os._exit(0)
    children.append(pid)
os.write(w, bytes(8))
for pid in children:
    os.waitpid(pid, 0)
print('done')
"""


EARLIER: set[Path] = set()


@pytest.fixture(autouse=True)
def _groups_of_earlier_tests() -> None:
    """The sandbox that tests share keeps its zygotes, each in a group, until the process ends."""
    EARLIER.clear()
    if PLACE is not None:
        EARLIER.update(left(PLACE))


def left(place: Place, pid: int | None = None) -> list[Path]:
    found = {one for folder in place.folders for one in folder.glob(f"assay-{pid or os.getpid()}-*")}
    return sorted(found - EARLIER)


@needs_groups
def test_the_kernel_holds_the_sum_to_its_bound() -> None:
    assert PLACE is not None
    group = Group(PLACE)
    try:
        group.settle()
        group.limit(LIMITS)
        assert not group.ran_out()
        # No monitor and no limits of each process: the group alone.
        command = group.entering([sys.executable, "-S", "-c", TOGETHER % 2])
        start = time.monotonic()
        subprocess.run(command, capture_output=True, timeout=60, check=False)
        assert group.ran_out()
        peak = group.folders[0] / ("memory.peak" if PLACE.version == 2 else "memory.max_usage_in_bytes")
        if peak.exists():
            assert int(peak.read_text()) < LIMITS.memory + (32 << 20) < 8 * (50 << 20)
        assert time.monotonic() - start < 60
        group.limit(LIMITS)
        assert not group.ran_out()
    finally:
        group.remove()
    assert not left(PLACE)


@needs_groups
def test_no_process_escapes_on_its_way_in() -> None:
    assert PLACE is not None
    group = Group(PLACE)
    try:
        done = subprocess.run(group.entering(["/bin/cat", "/proc/self/cgroup"]), capture_output=True, check=True)
        assert done.stdout.count(group.folders[0].name.encode()) == len(group.folders)
    finally:
        group.remove()


@needs_groups
def test_what_stays_in_a_group_is_ended_with_it() -> None:
    assert PLACE is not None
    group = Group(PLACE)
    process = subprocess.Popen(group.entering(["/bin/sleep", "1000"]), stdin=subprocess.DEVNULL)
    group.remove()
    # Ended by the group, or, if it had not entered yet, because there was nothing to enter.
    assert process.wait(60) != 0
    assert not left(PLACE)


@needs_groups
def test_the_number_of_processes_is_bounded() -> None:
    assert PLACE is not None
    count = """
        import os, signal
        made = 0
        try:
            while made < 1000:
                if os.fork() == 0: signal.pause()
                made += 1
        except BlockingIOError: pass
        print(made, flush=True)
        os._exit(0)
    """
    group = Group(PLACE)
    try:
        group.limit(LIMITS)
        command = group.entering([sys.executable, "-S", "-c", textwrap.dedent(count)])
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        # Nothing else is in the group: what may start a program leaves one more for it, and the counter is one.
        assert int(process.stdout.readline()) == LIMITS.processes
        process.stdout.close()
        process.wait()
    finally:
        group.remove()
    assert not left(PLACE)


@needs_sandbox
@needs_groups
def test_a_program_whose_processes_exceed_it_together_is_stopped_as_memory() -> None:
    assert PLACE is not None
    with Sandbox(1) as box:
        assert box.cgroups
        for _ in range(3):
            assert box.run(Program(TOGETHER % 0.001), limits=LIMITS).status == "memory"
            # One that stays below is untouched, on the same worker.
            outcome = box.run(Program("x = bytearray(b'x') * (40 << 20); print(len(x))"), limits=LIMITS)
            assert (outcome.status, outcome.stdout) == ("ok", b"41943040\n")
        assert len(left(PLACE)) == len(PLACE.folders)
    assert not left(PLACE)


@needs_sandbox
@needs_groups
def test_a_worker_that_the_kernel_ends_costs_the_program_its_verdict_and_nobody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert PLACE is not None
    with Sandbox(1) as box:
        box.check()
        box.run(Program("print(1)"))
        [worker] = next(iter(box._idle.values()))
        receive = worker.receive

        def dying(seconds: float) -> NoReturn:
            receive(seconds)
            # As if the kernel had chosen the zygote and not the program.
            worker.process.kill()
            raise Lost("the worker ended without an answer")

        monkeypatch.setattr(worker, "receive", dying)
        assert box.run(Program(TOGETHER % 0.5), limits=LIMITS).status == "memory"
        assert box.run(Program("print(2)"), limits=LIMITS).stdout == b"2\n"
    assert not left(PLACE)


@needs_sandbox
@needs_groups
def test_groups_of_hosts_that_were_killed_are_removed_by_the_next() -> None:
    assert PLACE is not None
    script = "from assay.sandbox import *\nb = Sandbox(1)\nb.run(Program(''))\nprint('up', flush=True)\ninput()"
    host = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert host.stdout is not None and host.stdin is not None
    assert host.stdout.readline() == b"up\n"
    # Its own place is a group of this process's, or the same.
    assert len(left(PLACE, host.pid)) == len(PLACE.folders)
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdin.close()
    host.stdout.close()
    deadline = time.monotonic() + 30
    while left(PLACE, host.pid) and time.monotonic() < deadline:
        # Its zygote dies with it, but not at once.
        cgroup.sweep(PLACE)
        time.sleep(0.01)
    assert not left(PLACE, host.pid)


def test_a_group_of_a_living_host_is_left_alone(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, 2)
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    for name in (f"assay-{os.getppid()}-0", f"assay-{ended.pid}-0", f"assay-{os.getpid()}-0", "other", "assay-x-1"):
        (tmp_path / name).mkdir()
    cgroup.sweep(place)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([f"assay-{os.getppid()}-0", "assay-x-1", "other"])


@needs_sandbox
def test_without_groups_programs_run_as_before(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Part of the kernel's own files: nothing can be made there, whoever asks.
    nowhere = Path("/proc/self/net")
    assert not cgroup.usable(Place(nowhere, nowhere, 1)) and not cgroup.usable(Place(nowhere, nowhere, 2))
    monkeypatch.setattr(cgroup, "candidates", lambda: [Place(nowhere, nowhere, 2), Place(nowhere, nowhere, 1)])
    cgroup._place.cache_clear()
    try:
        with Sandbox(1) as box:
            assert not box.cgroups
            assert box.run(Program("print(1)"), limits=LIMITS).stdout == b"1\n"
            assert box.run(Program(TOGETHER % 5), limits=LIMITS).status == "memory"
            [worker] = next(iter(box._idle.values()))
            assert worker.group is None
    finally:
        cgroup._place.cache_clear()
    assert capfd.readouterr() == ("", "")


def tables(folder: Path, mounts: str, own: str) -> list[Place]:
    (folder / "mounts").write_text(mounts)
    (folder / "own").write_text(own)
    return cgroup.candidates(str(folder / "mounts"), str(folder / "own"))


def version2(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"controllers": "cpu memory pids", "procs": "", "subtree_control": "", **files}.items():
        (folder / (name if "." in name else f"cgroup.{name}")).write_text(text)
    return folder


def test_places_in_version_2(tmp_path: Path) -> None:
    top = tmp_path / "cgroup"
    version2(top)
    slice_ = version2(top / "user.slice")
    own = version2(slice_ / "session.scope")
    mounts = f"30 20 0:26 / {top} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    mine = "0::/user.slice/session.scope\n"
    assert tables(tmp_path, mounts, mine) == [Place(own, own, 2), Place(slice_, slice_, 2)]
    # Beside a group that is itself bounded, its programs would not be.
    for name, text in {"memory.max": "1000000\n", "pids.max": "50\n", "cpu.max": "10000 100000\n"}.items():
        (own / name).write_text(text)
        assert tables(tmp_path, mounts, mine) == [Place(own, own, 2)]
        (own / name).unlink()
    (own / "cpuset.cpus").write_text("0-1\n")
    assert tables(tmp_path, mounts, mine) == [Place(own, own, 2)]
    (own / "cpuset.cpus").write_text("\n")
    (own / "memory.max").write_text("max\n")
    (own / "cpu.max").write_text("max 100000\n")
    assert tables(tmp_path, mounts, mine) == [Place(own, own, 2), Place(slice_, slice_, 2)]
    # No controllers, as beside version 1; a group above what is mounted here; not mounted.
    version2(own, controllers="cpu")
    assert tables(tmp_path, mounts, mine) == []
    assert tables(tmp_path, mounts, "0::/../elsewhere\n") == []
    assert tables(tmp_path, "", mine) == []
    # A container sees a part of the hierarchy.
    inside = f"30 20 0:26 /user.slice {top} rw - cgroup2 cgroup2 rw\n"
    assert tables(tmp_path, inside, "0::/user.slice\n")[0] == Place(top, top, 2)


def test_places_in_version_1(tmp_path: Path) -> None:
    memory, pids = tmp_path / "memory", tmp_path / "pids"
    (memory / "job").mkdir(parents=True)
    pids.mkdir()
    mounts = (
        f"31 20 0:27 / {memory} rw - cgroup cgroup rw,memory\n32 20 0:28 / {pids} rw shared:7 - cgroup cgroup rw,pids\n"
        f"33 20 0:29 / {tmp_path}/unified rw - cgroup2 cgroup2 rw\n"
    )
    mine = "8:pids:/\n4:memory:/job\n0::/\n1:name=systemd:/\n"
    assert tables(tmp_path, mounts, mine) == [Place(memory / "job", pids, 1)]
    assert tables(tmp_path, mounts, "4:memory:/job\n") == []
    assert tables(tmp_path, mounts, "8:pids:/\n4:memory:/gone\n") == []
    assert tables(tmp_path, "nonsense", mine) == []
    assert tables(tmp_path, mounts, "nonsense") == []


class Kernel:
    """A folder that behaves as a version 2 hierarchy does where no process is put into it.

    A group that is made has its files at once, and is gone with them; ``cgroup.kill`` empties it.
    """

    # The bounds are empty and not "max": a file, unlike the kernel's, keeps what a shorter text does not cover.
    FILES: ClassVar[dict[str, str]] = {
        "cgroup.procs": "",
        "cgroup.kill": "",
        "memory.max": "",
        "memory.current": "3000000\n",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n",
        "memory.swap.max": "max\n",
        "pids.max": "",
        "pids.current": "2\n",
    }

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch, *missing: str):
        self.top, self.missing = version2(top), missing
        make, remove = os.mkdir, os.rmdir

        def mkdir(path: Path, mode: int = 0o777) -> None:
            make(path, mode)
            if Path(path).parent == top:
                for name, text in self.FILES.items():
                    if name not in self.missing:
                        (Path(path) / name).write_text(text)

        def rmdir(path: Path) -> None:
            if Path(path).parent == top:
                inhabited = (Path(path) / "cgroup.procs").read_text().strip() not in ("", "0")
                if inhabited and (Path(path) / "cgroup.kill").read_text() != "1":
                    raise OSError(16, "Device or resource busy")
                for one in Path(path).iterdir():
                    one.unlink()
            remove(path)

        monkeypatch.setattr(os, "mkdir", mkdir)
        monkeypatch.setattr(os, "rmdir", rmdir)

    @property
    def place(self) -> Place:
        return Place(self.top, self.top, 2)


def test_version_2_bounds_what_a_program_adds_to_its_zygote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(tmp_path / "cgroup", monkeypatch)
    group = Group(kernel.place)
    [folder] = group.folders
    assert folder.parent == kernel.top and (folder / "memory.swap.max").read_text() == "0"
    group.settle()
    group.limit(LIMITS)
    own, processes = 3_000_000, 2
    allowed = LIMITS.memory + LIMITS.disk + 3 * LIMITS.output
    bound = int((folder / "memory.max").read_text())
    # Page tables and stacks of the kernel's are on top, and are little.
    assert own + allowed < bound < own + allowed * 1.3 + (24 << 20)
    assert int((folder / "pids.max").read_text()) == processes + LIMITS.processes + 1
    # What stands there already is not written again.
    (folder / "pids.max").write_text("7")
    group.limit(LIMITS)
    assert (folder / "pids.max").read_text() == "7"
    group.limit(Limits(memory=256 << 20, processes=4))
    assert int((folder / "pids.max").read_text()) == processes + 5
    assert int((folder / "memory.max").read_text()) > bound
    group.remove()
    assert not folder.exists() and not group._files


def test_version_2_tells_a_groups_own_want_of_memory_from_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(Kernel(tmp_path / "cgroup", monkeypatch).place)
    events = group.folders[0] / "memory.events"

    def happened(oom: int, killed: int) -> bool:
        events.write_text(f"low 0\nhigh 0\nmax {oom + 3}\noom {oom}\noom_kill {killed}\noom_group_kill 0\n")
        group.limit(LIMITS)
        return group.ran_out()

    group.settle()
    assert not happened(0, 0)
    assert happened(1, 1), "at its bound, and a process ended"
    assert not happened(1, 1), "that was the program before"
    assert not happened(1, 2), "the whole machine ran out, not this group"
    assert not happened(2, 2), "at its bound, and nothing was ended"
    assert happened(4, 3)
    group.remove()


def test_version_2_ends_what_is_left_in_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(Kernel(tmp_path / "cgroup", monkeypatch).place)
    [folder] = group.folders
    (folder / "cgroup.procs").write_text("4194303\n")
    group.remove()
    assert not folder.exists()


def test_version_2_is_entered_before_the_command_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(Kernel(tmp_path / "cgroup", monkeypatch).place)
    [folder] = group.folders
    script = f"cat {folder}/cgroup.procs; echo $@"
    done = subprocess.run(group.entering(["/bin/sh", "-c", script, "x", "a b", "$c"]), capture_output=True, check=True)
    assert done.stdout == b"0\na b $c\n"
    # Where the group cannot be entered nothing is started.
    (folder / "cgroup.procs").unlink()
    (folder / "cgroup.procs").symlink_to("/nowhere/procs")
    done = subprocess.run(group.entering(["/bin/echo", "ran"]), capture_output=True, check=False)
    assert done.returncode != 0 and b"ran" not in done.stdout


def test_version_2_is_used_once_its_controllers_are_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(tmp_path / "cgroup", monkeypatch)
    control = kernel.top / "cgroup.subtree_control"
    control.write_text("cpu\n")
    assert cgroup.usable(kernel.place)
    assert control.read_text() == "+memory +pids"
    control.write_text("memory pids cpu\n")
    assert cgroup.usable(kernel.place) and control.read_text() == "memory pids cpu\n"
    control.write_text("pids\n")
    assert cgroup.usable(kernel.place) and control.read_text() == "+memory"
    assert [one.name for one in kernel.top.iterdir() if one.name.startswith("assay-")] == []


@pytest.mark.parametrize("missing", ["memory.max", "memory.events", "memory.current", "pids.max", "pids.current"])
def test_version_2_without_a_file_that_is_needed_is_not_used(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(tmp_path / "cgroup", monkeypatch, missing)
    assert not cgroup.usable(kernel.place)
    assert [one.name for one in kernel.top.iterdir() if one.name.startswith("assay-")] == []


def test_version_2_without_swap_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cgroup.usable(Kernel(tmp_path / "cgroup", monkeypatch, "memory.swap.max").place)
