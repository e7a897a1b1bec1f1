"""Control groups: a hard bound on the memory and the processes of everything a zygote runs, kept by the kernel.

A zygote lives in a group of its own, made inside the group this process is in, so that whatever bounds this process
bounds its programs too. Version 2 of the interface and version 1 are both used where the host may make groups; where
it may not, the limits of each process and the monitor are what there is.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from assay.sandbox.types import MIB, Limits

NAME = re.compile(r"assay-([0-9]+)-[0-9]+")
UNBOUNDED = {"memory.max": "max", "memory.high": "max", "pids.max": "max", "cpu.max": "max", "cpuset.cpus": r"\s*$"}
"""What the files of a version 2 group begin with, where there are such, if it bounds nothing itself."""
FILES = {
    2: ("memory.max", "memory.current", "memory.events", "memory.swap.max"),
    1: (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.oom_control",
        "memory.failcnt",
        "memory.swappiness",
    ),
}
"""The bound, what is in use, what has happened, and the switch that keeps programs from being swapped out."""
PATIENCE = 5.0
"""Seconds a group's killed processes may take to be gone; a process that writes to a slow disk cannot be hurried."""
# The shell enters and becomes the command: there is no moment at which the command or a child of it is elsewhere.
# Nothing here is quoted by us: the groups and the command are its arguments.
ENTER = 'set -e; while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs"; shift; done; shift; exec "$@"'
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Place:
    """Where groups can be made: the folder for memory and the one for processes, the same in version 2."""

    memory: Path
    pids: Path
    version: int

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.memory,) if self.version == 2 else (self.memory, self.pids)


class Group:
    """One zygote's group, made empty in ``place``; raises OSError where it cannot be.

    Attributes:
        folders: its folder in each hierarchy.
    """

    def __init__(self, place: Place):
        self.place = place
        self.folders = _make(place)
        self._files: dict[str, int] = {}
        self._written: dict[str, int] = {}
        self._own, self._seen = (0, 0), (0, 0)
        self._limit, self._usage, self._events, *more, swap = FILES[place.version]
        memory, pids = self.folders[0], self.folders[-1]
        try:
            for folder, name in [(memory, self._limit), (pids, "pids.max")]:
                self._files[name] = os.open(folder / name, os.O_WRONLY | os.O_CLOEXEC)
            for folder, name in [
                (pids, "pids.current"),
                *((memory, one) for one in (self._usage, self._events, *more)),
            ]:
                self._files[name] = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
            # There is no such file where the kernel has no swap.
            if (memory / swap).exists():
                (memory / swap).write_text("0")
        except BaseException:
            self.remove()
            raise

    def entering(self, command: list[str]) -> list[str]:
        """Return a command that enters this group and then becomes ``command``."""
        return ["/bin/sh", "-c", ENTER, "sh", *map(str, self.folders), "--", *command]

    def settle(self) -> None:
        """Take what is in use now for the zygote's own, which limits do not count."""
        self._own = (int(self._read(self._usage)), int(self._read("pids.current")))
        self._seen = self._killed()

    def limit(self, limits: Limits) -> None:
        """Bound everything in the group; raise OSError where more than that is in use already.

        Besides ``limits.memory`` a program fills its ``/tmp``, its three outputs, and page tables and stacks of the
        kernel's, which are all charged to the group.
        """
        kernel = 16 * MIB + limits.memory // 64 + limits.processes * 128 * 1024
        self._write(self._limit, self._own[0] + limits.memory + limits.disk + 3 * limits.output + kernel)
        # One more: what starts a program that is not Python's.
        self._write("pids.max", self._own[1] + limits.processes + 1)

    def ran_out(self) -> bool:
        """Whether the kernel has ended a process since this was asked last because the group had reached its bound.

        A kill alone says little: it may have been the whole machine that ran out.
        """
        before, self._seen = self._seen, self._killed()
        return self._seen[0] > before[0] and self._seen[1] > before[1]

    def _killed(self) -> tuple[int, int]:
        """How often the group was at its bound, and how many of its processes were ended for want of memory."""
        events = dict(line.split(maxsplit=1) for line in self._read(self._events).splitlines())
        reached = events["oom"] if self.place.version == 2 else self._read("memory.failcnt")
        return int(reached), int(events.get("oom_kill", 0))

    def _read(self, name: str) -> str:
        return os.pread(self._files[name], 4096, 0).decode()

    def _write(self, name: str, value: int) -> None:
        if self._written.get(name) != value:
            os.pwrite(self._files[name], b"%d" % value, 0)
            self._written[name] = value

    def forget(self) -> None:
        """Close what is open, and leave the group to whoever made it."""
        while self._files:
            os.close(self._files.popitem()[1])

    def remove(self) -> None:
        """End what is left in the group, and the group; one that cannot be removed yet is left for :func:`place`."""
        self.forget()
        end = time.monotonic() + PATIENCE
        for folder in self.folders:
            while not _removed(folder) and time.monotonic() < end:
                _kill(folder)
                time.sleep(0.002)


def _make(place: Place) -> tuple[Path, ...]:
    made: list[Path] = []
    while True:
        name = f"assay-{os.getpid()}-{next(_NUMBERS)}"
        try:
            for folder in place.folders:
                os.mkdir(folder / name)
                made.append(folder / name)
            return tuple(made)
        except OSError as error:
            while made:
                _removed(made.pop())
            if not isinstance(error, FileExistsError):
                raise


def _removed(folder: Path) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill(folder: Path) -> None:
    with suppress(OSError):
        (folder / "cgroup.kill").write_text("1")
        return
    with suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def sweep(place: Place) -> None:
    """Remove the groups of hosts that have ended, and what an earlier process of this one's number left.

    Only empty ones: a group with processes belongs to a host that this process cannot see.
    """
    for folder in place.folders:
        for one in folder.iterdir():
            named = NAME.fullmatch(one.name)
            if named and (int(named[1]) == os.getpid() or not os.path.exists(f"/proc/{named[1]}")):
                _removed(one)


def place() -> Place | None:
    """Return where this process can make groups that work, or ``None``; tried once in each process."""
    return _place(os.getpid())


@functools.lru_cache(1)
def _place(_: int) -> Place | None:
    for one in candidates():
        if usable(one):
            return one
    return None


def usable(place: Place) -> bool:
    """Try everything that a zygote's group needs, with a process in it."""
    try:
        if place.version == 2:
            wanted = {"memory", "pids"} - set((place.memory / "cgroup.subtree_control").read_text().split())
            if wanted:
                (place.memory / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(wanted)))
        sweep(place)
        group = Group(place)
    except OSError:
        return False
    try:
        # Done before any limit: the bound of an empty group may be anything.
        command = group.entering(["/bin/true"])
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        group.settle()
        group.limit(Limits())
        group.ran_out()
        return done.returncode == 0
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return False
    finally:
        group.remove()


def candidates(mounts: str = "/proc/self/mountinfo", own: str = "/proc/self/cgroup") -> list[Place]:
    """Return the places worth trying, best first, from the tables of mounts and of this process's groups."""
    try:
        hierarchies = _hierarchies(Path(mounts).read_text())
        mine = dict(line.split(":", 2)[1:] for line in Path(own).read_text().splitlines())
    except (OSError, ValueError):
        return []
    found: list[Place] = []
    here = _folder(hierarchies, mine, "")
    if here is not None and {"memory", "pids"} <= set(_text(here / "cgroup.controllers").split()):
        found.append(Place(here, here, 2))
        # A group with processes cannot have groups with limits, unless it is the first. Beside it they can be, and are
        # bound by all that bounds it, if it has no bounds of its own.
        parent = here.parent
        free = all(re.match(pattern, _text(here / name)) for name, pattern in UNBOUNDED.items())
        if free and (parent / "cgroup.procs").exists():
            found.append(Place(parent, parent, 2))
    split = {line: line.split(",") for line in mine}
    memory, pids = (
        next((_folder(hierarchies, mine, line) for line, names in split.items() if wanted in names), None)
        for wanted in ("memory", "pids")
    )
    if memory is not None and pids is not None:
        found.append(Place(memory, pids, 1))
    return found


def _hierarchies(table: str) -> dict[str, tuple[str, str]]:
    """Return, for each controller, and as ``""`` for version 2, the mount's root in its hierarchy and its folder."""
    found: dict[str, tuple[str, str]] = {}
    for line in table.splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        where = (fields.split()[3], fields.split()[4])
        if kind == "cgroup2":
            found.setdefault("", where)
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, where)
    return found


def _folder(hierarchies: Mapping[str, tuple[str, str]], mine: Mapping[str, str], line: str) -> Path | None:
    """Return the folder of the group this process is in, in the hierarchy of ``line``; ``None`` if it is not shown."""
    if line not in mine:
        return None
    root, folder = hierarchies.get(line.split(",")[0], ("", ""))
    if not folder or "/.." in mine[line]:
        return None
    path = Path(mine[line])
    if root != "/" and not path.is_relative_to(root):
        return None
    found = Path(folder) / path.relative_to(root)
    return found if found.is_dir() else None


def _text(path: Path) -> str:
    """Return a file's text; where there is no such file, what bounds nothing."""
    try:
        return path.read_text()
    except OSError:
        return ("" if path.name == "cpuset.cpus" else "max") if path.name in UNBOUNDED else ""
