"""The walls of one program: namespaces, mounts, limits, capabilities and the system-call filter, applied to oneself."""

from __future__ import annotations

import _signal as signal
import ctypes
import os
import resource

CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
# User, process ids, mounts, IPC and host name. The network namespace is the zygote's, which is empty; sockets that
# could be seen by name in it are refused by the filter.
NAMESPACES = 0x10000000 | 0x20000000 | 0x00020000 | 0x08000000 | 0x04000000
FLAGS = int(NAMESPACES | signal.SIGCHLD)
READ_ONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 38
CAPABILITY_VERSION = 0x20080522

# PyDLL keeps the interpreter's lock, so that a clone here is as os.fork is.
libc = ctypes.PyDLL(None, use_errno=True)
# Looked up here and once: in a program's process it would be done for every program.
syscall, prctl, capset, c_mount = libc.syscall, libc.prctl, libc.capset, libc.mount
before_fork, after_fork_child, after_fork_parent = (
    getattr(ctypes.pythonapi, f"PyOS_{name}") for name in ("BeforeFork", "AfterFork_Child", "AfterFork_Parent")
)
syscall.restype = ctypes.c_long


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(source: bytes, target: bytes, kind: bytes, flags: int, options: bytes = b"") -> None:
    check(c_mount(source, target, kind, flags, options), f"mount {target.decode()}")


def fork_in_namespaces() -> int:
    """Fork as os.fork does, the child being the first process of new namespaces."""
    before_fork()
    pid: int = syscall(CLONE_NUMBER, FLAGS, 0, 0, 0, 0)
    if pid == 0:
        after_fork_child()
    else:
        after_fork_parent()
    return check(pid, "clone into new namespaces")


def become(user: int) -> None:
    """As the real root: mount a process table without root's covers, then be ``user``, an account of nobody's."""
    mount(b"proc", b"/proc", b"proc", NOSUID | NODEV | NOEXEC)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # Changing the user made this process's own /proc files root's; its children must write their id maps there.
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def enter(accounts: tuple[int, int], disk: int) -> None:
    """As the first process of new namespaces: be somebody in them, with a private ``/tmp`` and process table."""
    map_user = b"%d %d 1" % accounts
    # When memory ends, a program goes before the zygote, and before whoever trains on it.
    first = ("oom_score_adj", b"1000")
    for path, text in (("setgroups", b"deny"), ("uid_map", map_user), ("gid_map", map_user), first):
        descriptor = os.open(f"/proc/self/{path}", os.O_WRONLY)
        os.write(descriptor, text)
        os.close(descriptor)
    private(disk)
    # What can be written there is not the program's to choose: its scheduling group, whom the kernel ends first.
    mount(b"proc", b"/proc", b"proc", READ_ONLY | NOSUID | NODEV | NOEXEC)


def private(disk: int) -> None:
    mount(b"tmpfs", b"/tmp", b"tmpfs", NOSUID | NODEV, b"mode=1777,size=%d,nr_inodes=%d" % (disk, 64 + disk // 8192))


KINDS = (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_STACK, resource.RLIMIT_NPROC)
# Nobody changes them before a program's process does, so they are asked for once.
HARDEST = {which: resource.getrlimit(which)[1] for which in (*KINDS, resource.RLIMIT_DATA, resource.RLIMIT_AS)}


def limit_all() -> None:
    """Set the limits that are the same for every program, on the process that all are forked from."""
    none = (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE)
    for which, value in (*((one, 0) for one in none), (resource.RLIMIT_NOFILE, 256)):
        hard = resource.getrlimit(which)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (most, most))


def limit(limits: tuple[int, ...], base: int, own: int, reserves: bool) -> None:
    """Set the kernel's other limits on this process and its children.

    ``limits`` are those of :func:`assay.sandbox.jobs.kernel_limits`; ``base`` is the address space it starts with, and
    ``own`` the processes that are not the program's. A language that ``reserves`` address space it does not use is
    limited in the data it has instead.
    """
    cpu, largest, memory, stack, processes, _ = limits
    # The exact limit of processor time is the zygote's; this one holds if the zygote is delayed.
    wanted = (cpu + 2, largest, stack, processes + own)
    for which, value in (
        *zip(KINDS, wanted, strict=True),
        (resource.RLIMIT_DATA if reserves else resource.RLIMIT_AS, base + memory),
    ):
        hard = HARDEST[which]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (most, most))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class Filter:
    """The system-call filter, ready to be put on."""

    def __init__(self, instructions: bytes):
        self._program = _Program(len(instructions) // 8, instructions)
        self._header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
        self._nothing = (ctypes.c_uint32 * 6)()

    def put_on(self) -> None:
        """Give up every capability and the ways to gain one, and filter what this process asks of the kernel."""
        check(capset(self._header, self._nothing), "capset")
        check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        check(prctl(PR_SET_SECCOMP, 2, ctypes.byref(self._program), 0, 0), "seccomp")
