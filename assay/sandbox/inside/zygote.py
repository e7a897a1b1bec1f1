# ruff: noqa: E402
"""The process that programs are forked from: an interpreter with everything imported, that runs none of them itself.

It takes jobs from a socket: a few numbers, and descriptors that only the program's process reads, so that nothing of a
program stays here for the next one to find. It answers with how the program ended, as the kernel tells it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# What modules want done after a fork is kept here, and registered in each program's process for its own forks. Done at
# ours it would cost more than the fork: it renews locks nobody holds, on hundreds of pages that are shared until then.
HOOKS: list[dict[str, Any]] = []
REGISTER = os.register_at_fork
os.register_at_fork = lambda **hook: HOOKS.append(hook)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import _signal as signal  # the enumerations of the modules in Python are more to copy at every fork
import _socket
import gc
import importlib
import json
import marshal
import select
import time
from contextlib import suppress

import codec
import driver
import jail
import messages
import monitor
import program

# What programs import most. Each library of the interpreter's is more to copy at every fork, used or not.
MODULES = [
    *(
        "abc",
        "array",
        "atexit",
        "bisect",
        "collections",
        "collections.abc",
        "contextlib",
        "copy",
        "dataclasses",
        "enum",
    ),
    *("functools", "heapq", "inspect", "io", "itertools", "json", "linecache", "math", "numbers", "operator", "random"),
    *("re", "string", "struct", "threading", "time", "traceback", "types", "typing"),
]


RIGHTS = _socket.CMSG_LEN(8 * 4)
"""Bytes of eight descriptors beside a message."""
LEAVING = 500
"""Looks at a program that a limit ended until its first process must have put away what it made: 10 s."""


def main() -> None:
    os.environ.pop("LD_BIND_NOW", None)
    # The first process of a namespace gets only the signals it handles: now none, whatever a program sends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    control = _socket.socket(fileno=int(sys.argv[1]))
    setting = json.loads(control.recv(1 << 16))
    try:
        around = prepare(setting)
    except BaseException as error:
        control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        return
    control.send(json.dumps({"failed": ""}).encode())
    while True:
        message, descriptors = receive(control)
        if not message:
            return
        if len(message) == messages.BUDGET.size:
            # For a program that had ended before it came.
            continue
        answer = serve(around, messages.JOB.unpack(message), descriptors, control)
        try:
            control.send(answer)
        except OSError:
            return
        if not around.nested:
            # The program could have left something here, or behind; the next one gets another zygote.
            return


def receive(control: _socket.socket) -> tuple[bytes, list[int]]:
    message, rights, _, _ = control.recvmsg(4096, RIGHTS)
    return message, [one for _, _, data in rights for one in memoryview(data).cast("i")]


def prepare(setting: dict[str, Any]) -> program.Surroundings:
    if setting["become"]:
        jail.become(setting["account"])
    paths = [path for path in sys.path[1:] if path] + setting["paths"]
    sys.path[1:] = paths
    for name in MODULES + setting["imports"]:
        importlib.import_module(name)
    os.register_at_fork = REGISTER
    with open("/proc/self/statm", "rb") as file:
        base, shared = (int(pages) * monitor.PAGE for pages in file.read().split()[:2])
    if not setting["nested"]:
        # A program runs beside this process then; it must not look into it.
        jail.prctl(jail.PR_SET_DUMPABLE, 0, 0, 0, 0)
    jail.limit_all()
    warm(paths)
    # Objects that exist now are left alone by the collector, so that the pages they are on stay shared.
    gc.collect()
    gc.freeze()
    # Every page that is held is copied to every program's page table, used or not.
    jail.libc.malloc_trim(0)
    return program.Surroundings(
        jail.Filter(bytes.fromhex(setting["filter"])),
        (setting["user"], setting["account"]),
        base,
        shared,
        empty(),
        HOOKS,
        paths,
        setting["nested"],
        setting["walled"],
        setting["folder"],
    )


def empty() -> int:
    """Return what a program that does nothing is said to have held: fewer pages are its own than this process's."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return 1024 * os.wait4(pid, 0)[2].ru_maxrss


def warm(paths: list[str]) -> None:
    """Do here, without a program, what each program's process does first.

    The interpreter specialises code, and remembers where it found names, by writing into memory that is shared after
    the fork: what is written already is not copied for every program.
    """
    mine = dict(sys.modules)
    for mode in ("run", "call"):
        job: dict[str, Any] = {
            "mode": mode,
            "source": "print(end='')\n",
            "args": [],
            "files": {},
            "interactive": False,
            "limits": (),
        }
        for _ in range(12):
            job = marshal.loads(marshal.dumps(job))
            codec.loads(codec.dumps([[["x", 1, 1.0], {}]]))
            namespace = driver.prepare(job, paths)
            exec(compile(job["source"], driver.NAME, "exec"), namespace)
            driver.flush(sys.stdout, sys.stderr)
            monitor.usage([])
            sys.modules.update(mine)
    sys.path[:] = paths


def serve(
    around: program.Surroundings,
    job: tuple[float, float, int, float, bool, bool],
    descriptors: list[int],
    control: _socket.socket,
) -> bytes:
    """Start the program whose job is in ``descriptors`` and wait for its end; return a :data:`messages.ANSWER`."""
    cpu, wall, memory, patience, talks, keeps = job
    # Not blocking: the few bytes of a report always fit.
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    start = time.monotonic()
    try:
        pid = jail.fork_in_namespaces() if around.nested else os.fork()
    except OSError as error:
        for one in (reader, writer, *descriptors):
            os.close(one)
        return messages.ANSWER.pack(0, 0, 0.0, 0.0, 0, True) + f"a process could not be started: {error}".encode()
    if pid == 0:
        program.live(around, descriptors, writer)
    handle = os.pidfd_open(pid)
    given = [writer, *descriptors]

    def close() -> None:
        while given:
            os.close(given.pop())

    # Most programs end before the first look. Until then nothing is done that can wait: while a program's process
    # shares this one's memory, every page that is written to here is copied.
    if talks:
        close()
    try:
        members = monitor.everyone if around.walled else lambda: [pid]
        watched = (cpu, wall, memory, patience)
        cause, peak = monitor.watch(pid, handle, watched, members, around.shared, control.fileno(), close)
        if cause and keeps and around.walled:
            leave_first(pid, handle)
    except EOFError:
        # Nobody is left to tell; everything here ends with this process, the first of its namespace.
        os.kill(pid, signal.SIGKILL)
        os._exit(0)
    finally:
        os.close(handle)
    if cause:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    if around.walled and not around.nested:
        sweep()
    taken = time.monotonic() - start
    try:
        report = os.read(reader, 4096)
    except BlockingIOError:
        report = b""
    os.close(reader)
    failed, spent, first = b"", usage.ru_utime + usage.ru_stime, True
    most = 1024 * usage.ru_maxrss - around.empty
    if report[:1] != program.STARTED:
        if cause != "load":
            failed = report[1:] or b"the program's process died before it started"
    elif report[1:2] == program.FAILED:
        failed = report[2:]
    elif report[1:2] == program.ENDED:
        _, status, spent, most = program.END.unpack(report[1 : 1 + program.END.size])
        first = False
    return messages.ANSWER.pack(messages.CAUSES.index(cause), status, spent, taken, max(peak, most, 0), first) + failed


def leave_first(pid: int, handle: int) -> None:
    """End all of a program's processes but the first, which is ours, and let that put away what they made."""
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    for _ in range(LEAVING):
        for one in monitor.everyone():
            if one != pid:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        if ended.poll(1000 * monitor.TICK):
            return


def sweep() -> None:
    """End what a program left running in the zygote's own namespace."""
    try:
        while True:
            os.kill(-1, signal.SIGKILL)
            os.waitpid(-1, 0)
    except (ChildProcessError, ProcessLookupError):
        pass


if __name__ == "__main__":
    main()
