"""One zygote, seen from outside: started, given jobs, ended."""

from __future__ import annotations

import array
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from assay.sandbox import confine
from assay.sandbox.cgroup import Group, Place
from assay.sandbox.confine import ENVIRONMENT, INSIDE, USER, Kind, SandboxUnavailable
from assay.sandbox.seccomp import filter_bytes
from assay.sandbox.types import Limits

T = TypeVar("T")

START = 60.0
"""Seconds a zygote may take to start: a loaded machine imports slowly."""
SEALS = 0x1 | 0x2 | 0x4 | 0x8
F_ADD_SEALS = 1033


class Lost(Exception):
    """The zygote ended, or did not answer."""


class Worker:
    """A zygote of ``kind``.

    Args:
        nested: whether each program gets namespaces of its own; if not, the zygote serves one program.
        walled: false for the unprotected mode, which has the limits and the filter but no namespaces.
        place: where it gets a control group of its own; ``None`` for none.
    """

    def __init__(self, kind: Kind, nested: bool, walled: bool = True, place: Place | None = None):
        self.kind, self.nested, self.used = kind, nested, False
        self.folder = "/tmp" if walled else tempfile.mkdtemp(prefix="assay-unprotected-")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        complaints = os.memfd_create("complaints")
        self.group: Group | None = None
        try:
            self.group = Group(place) if place is not None else None
            if walled:
                line = confine.command(kind, nested, theirs.fileno())
            else:
                line = confine.zygote(confine.interpreter(), str(INSIDE), theirs.fileno())
            if self.group is not None:
                line = self.group.entering(line)
            self.process = _in_lasting_thread(
                lambda: subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                    pass_fds=(theirs.fileno(),),
                    env={**ENVIRONMENT, "HOME": self.folder},
                    cwd="/" if walled else self.folder,
                    # Ctrl-C is for the host, which decides what becomes of its programs.
                    start_new_session=True,
                )
            )
        except BaseException:
            ours.close()
            os.close(complaints)
            if self.group is not None:
                self.group.remove()
            raise
        finally:
            theirs.close()
        self.socket = ours
        # Opened before anybody waits for the process: the number cannot have become another's.
        self.handle = os.pidfd_open(self.process.pid)
        # The socket alone would not tell: a bubblewrap killed while it started leaves a process that holds it open.
        self._answers = select.poll()
        self._answers.register(self.socket, select.POLLIN)
        self._answers.register(self.handle, select.POLLIN)
        shown = confine.module_paths(kind.packages)
        become = walled and nested and confine.as_root()
        setting = {
            "become": become,
            "user": USER,
            "account": confine.account(self.process.pid) if become else USER,
            "nested": nested,
            "walled": walled,
            "folder": self.folder,
            "filter": filter_bytes().hex(),
            "imports": [] if kind.tools else list(kind.packages),
            "paths": (["/sandbox/packages"] if walled else sorted({os.path.dirname(path) for path in shown.values()}))
            if shown
            else [],
        }
        try:
            self.send(json.dumps(setting).encode(), [])
            answer: dict[str, Any] = json.loads(self.receive(START))
        except Lost as error:
            self.end()
            said = os.pread(complaints, 4096, 0).decode("utf-8", "replace").strip().splitlines()
            raise SandboxUnavailable(f"the sandbox did not start: {said[-1] if said else error}") from None
        finally:
            os.close(complaints)
        if answer["failed"]:
            self.end()
            raise SandboxUnavailable(f"the sandbox did not start: {answer['failed']}")
        if self.group is not None:
            self.group.settle()

    def limit(self, limits: Limits) -> None:
        """Bound what the next program takes together with all its processes; raise Lost."""
        if self.group is not None:
            try:
                self.group.limit(limits)
            except OSError as error:
                raise Lost(f"the worker holds more than it may: {error}") from None

    def ran_out(self) -> bool:
        """Whether a process of the last program was ended because all of them together took too much memory."""
        return self.group is not None and self.group.ran_out()

    def send(self, message: bytes, descriptors: Sequence[int]) -> None:
        """Send one message with ``descriptors``; raise Lost."""
        self.used = True
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            self.socket.sendmsg([message], rights)
        except OSError as error:
            raise Lost(f"the worker is gone: {error}") from None

    def receive(self, seconds: float) -> bytes:
        """Return the answer; raise Lost."""
        if not self._answers.poll(1000 * seconds):
            raise Lost(f"the worker gave no answer in {seconds:g} s")
        try:
            answer = self.socket.recv(1 << 16, socket.MSG_DONTWAIT)
        except OSError as error:
            raise Lost(f"the worker is gone: {error}") from None
        if not answer:
            raise Lost("the worker ended without an answer")
        return answer

    @property
    def alive(self) -> bool:
        return not self._ended(0)

    def end(self) -> None:
        """End the zygote and everything in it."""
        # Without its socket it leaves by itself, and bubblewrap buries it; killed, it could be left to nobody.
        self.socket.close()
        if not self._ended(2):
            for child in _children(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            if not self._ended(2):
                self.process.kill()
        self._ended(None)
        # If bubblewrap was killed while it started, its second half waits for it for ever, in the same process group.
        # The number is ours until wait() below.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.handle)
        if self.group is not None:
            self.group.remove()
        if self.folder != "/tmp":
            shutil.rmtree(self.folder, ignore_errors=True)

    def _ended(self, seconds: float | None) -> bool:
        """Whether bubblewrap has ended, or does within ``seconds``; it stays to be waited for."""
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))

    def forget(self) -> None:
        """In a forked child: leave the zygote to the parent."""
        self.socket.close()
        os.close(self.handle)
        if self.group is not None:
            self.group.forget()


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def memory_file(content: bytes | None = None) -> int:
    """Return a descriptor of a file in memory: holding ``content`` for good, or empty and to be written."""
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    if content is not None:
        view, offset = memoryview(content), 0
        while offset < len(view):
            # Not write: the reader shares this descriptor's position.
            offset += os.pwrite(descriptor, view[offset:], offset)
        fcntl.fcntl(descriptor, F_ADD_SEALS, SEALS)
    return descriptor


def contents(descriptor: int, most: int) -> tuple[bytes, bool]:
    """Return at most ``most`` bytes of a file in memory, and whether there were more."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, most, 0) if size else b"", size > most


# bubblewrap dies with the thread that started it, so that thread must last as long as the process.
_LASTING: ThreadPoolExecutor | None = None
_LOCK = threading.Lock()


def _in_lasting_thread(function: Callable[[], T]) -> T:
    global _LASTING
    with _LOCK:
        if _LASTING is None:
            _LASTING = ThreadPoolExecutor(1, "sandbox-starter")
        future: Future[T] = _LASTING.submit(function)
    return future.result()


def _after_fork() -> None:
    global _LASTING, _LOCK
    _LASTING, _LOCK = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
