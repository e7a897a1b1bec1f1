"""One program's process: put the walls up, then be the Python program, or start another one and wait for it."""

from __future__ import annotations

import errno
import marshal
import os
import resource
import signal
import stat
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import codec
import driver
import jail

MADE = 1_704_067_200
"""When the files of a folder that lasts were changed, as far as a program can tell: the beginning of 2024."""
STARTED, FAILED, ENDED = b"S", b"F", b"E"
END = struct.Struct("<cidq")
"""How a program that was started by :func:`start` ended: wait status, processor seconds, most bytes of memory."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the zygote knows for all its programs.

    Attributes:
        filter: the system-call filter.
        accounts: the account inside, and which one that is outside.
        base: address space of the zygote, in bytes.
        shared: resident bytes of the zygote.
        empty: most resident bytes of a child of its that does nothing.
        hooks: what imported modules want done after a fork.
        paths: where Python modules are.
        nested: whether each program has namespaces of its own.
        walled: whether there are namespaces at all.
        folder: where programs work.
    """

    filter: jail.Filter
    accounts: tuple[int, int]
    base: int
    shared: int
    empty: int
    hooks: list[dict[str, Any]]
    paths: list[str]
    nested: bool
    walled: bool
    folder: str


def live(around: Surroundings, descriptors: list[int], report: int) -> NoReturn:
    """Be the program whose job is in ``descriptors[0]``, with input, output, error and results in the others.

    Until the program starts, what goes wrong is written to ``report`` as a failure of the sandbox; it is closed before
    the first instruction of the program, which therefore cannot write there.
    """
    try:
        job = marshal.loads(os.pread(descriptors[0], os.lseek(descriptors[0], 0, os.SEEK_END), 0))
        limits = job["limits"]
        if around.nested:
            jail.enter(around.accounts, limits[-1])
        os.chdir(around.folder)
        _write(job["files"])
        _descriptors([*descriptors[1:], report])
        report = 4
        # Being the first of its namespace, a program counts itself; in the zygote's, the zygote counts too.
        own = 0 if around.nested else 1 if around.walled else 4096
        if job["mode"] == "start":
            start(around, job, own, report)
        jail.limit(limits, around.base, own, reserves=False)
        around.filter.put_on()
        os.write(report, STARTED)
        os.close(report)
    except BaseException as error:
        os.write(report, FAILED + f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for hook in around.hooks:
        os.register_at_fork(**hook)
    if job["mode"] == "call":
        driver.call(job, around.paths)
    else:
        driver.run(job, around.paths)
    raise AssertionError("the driver ends the process")


def start(around: Surroundings, job: Mapping[str, Any], own: int, report: int) -> NoReturn:
    """Start ``job["argv"]``, wait for it, and report how it ended and the files it was asked for."""
    os.set_inheritable(report, False)
    jail.prctl(jail.PR_SET_DUMPABLE, 0, 0, 0, 0)
    pid = os.fork()
    if pid == 0:
        try:
            os.close(3)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            jail.limit(job["limits"], 0, own + 1, job["reserves"])
            around.filter.put_on()
            os.write(report, STARTED)
            _become(job["argv"], job["environment"])
        except BaseException as error:
            os.write(report, FAILED + f"{type(error).__name__}: {error}".encode())
            os._exit(1)
    _, status, usage = _wait(pid)
    with os.fdopen(3, "wb") as result:
        if not job["tree"]:
            found: Mapping[str, Any] = _read(job["outputs"], job["limits"][-1])
        else:
            if around.walled:
                with suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            found = _tree(job["tree"], job["limits"][-1])
        result.write(codec.dumps(found).encode())
    os.write(report, END.pack(ENDED, status, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss))
    os._exit(0)


def _become(argv: list[str], environment: Mapping[str, str]) -> NoReturn:
    try:
        os.execve(argv[0], argv, environment)
    except OSError as error:
        if not argv[0].startswith("./"):
            raise
        # What a compiler made of its source cannot be run: that is its own doing.
        os.write(2, f"it cannot be run: {error.strerror}\n".encode())
        os._exit(126)


def _wait(pid: int) -> tuple[int, int, resource.struct_rusage]:
    """Wait for ``pid``, burying what else this first process of its namespace inherits."""
    while True:
        ended = os.wait4(-1, 0)
        if ended[0] == pid:
            return ended


def _write(files: Mapping[str, Any]) -> None:
    """Make files, folders and links, each of a mode as the kernel has it, or 0 for the usual one.

    Folders get theirs last, as they may be closed to what is put into them; links come after all they could lead to.
    """
    for name, (data, mode) in files.items():
        if stat.S_ISLNK(mode):
            continue
        folder = name if stat.S_ISDIR(mode) else os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        if not stat.S_ISDIR(mode):
            with open(name, "wb") as file:
                file.write(data)
            if mode:
                os.chmod(name, stat.S_IMODE(mode))
    for name, (data, mode) in reversed(list(files.items())):
        if stat.S_ISLNK(mode):
            os.symlink(data, os.fsencode(name))
        if mode:
            # The time it was made at is not told: the same folder is listed the same way every time.
            os.utime(name, (MADE, MADE), follow_symlinks=False)
            if stat.S_ISDIR(mode):
                os.chmod(name, stat.S_IMODE(mode))
                os.utime(os.path.dirname(name) or ".", (MADE, MADE))


def _read(names: list[str], most: int) -> dict[str, bytes]:
    """Return the regular files among ``names``, and below those that are folders; links are not followed, and devices
    and pipes not opened for long."""
    found: dict[str, bytes] = {}
    folders = [name for name in names if os.path.isdir(name) and not os.path.islink(name)]
    below = [f"{at}/{one}" for folder in folders for at, _, files in os.walk(folder) for one in files]
    for name in [*(name for name in names if name not in folders), *below]:
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with open(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                found[name] = file.read(most)
                most -= len(found[name])
    return found


def _tree(folder: str, most: int) -> dict[str, tuple[bytes, int]]:
    """Return the files, folders and links below ``folder``, by path, with mode: folders before what is in them.

    The folder itself is called ``""``, and is missing if there are more than ``most`` bytes. What its owner cannot
    read is made readable first; devices, pipes, sockets and names that are no text are left out.
    """
    found: dict[str, tuple[bytes, int]] = {}
    waiting = [""]
    while waiting:
        name = waiting.pop()
        at = f"{folder}/{name}" if name else folder
        try:
            name.encode()
            status = os.lstat(at)
            mode, data = status.st_mode, b""
            if stat.S_ISLNK(mode):
                data = os.readlink(os.fsencode(at))
            elif stat.S_ISDIR(mode):
                os.chmod(at, 0o700)
                waiting += [f"{name}/{one}" if name else one for one in sorted(os.listdir(at), reverse=True)]
            elif stat.S_ISREG(mode):
                most -= status.st_size
                if most < 0:
                    return {}
                os.chmod(at, 0o600)
                descriptor = os.open(at, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with open(descriptor, "rb") as file:
                    data = file.read(status.st_size)
            else:
                continue
        except (OSError, UnicodeEncodeError):
            continue
        found[name] = data, mode
    return found


def _descriptors(wanted: list[int]) -> None:
    """Make ``wanted`` the descriptors 0, 1, 2, ... and close all others."""
    # First out of the way: a target may be another one's source.
    above = [os.dup2(one, 100 + index) for index, one in enumerate(wanted)]
    for index, one in enumerate(above):
        os.dup2(one, index)
    try:
        os.closerange(len(wanted), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
