"""The filter on system calls, as the bytes the kernel takes (classic BPF, seccomp(2)).

What a program needs is allowed; what reaches another process, the kernel's own machinery, or a name that two programs
could share is refused with an error code, so that the program goes on and fails by itself. System calls younger
than this list are refused as unknown.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import Literal

from assay.errors import UsageError

# Name, number on x86_64, number on aarch64; None where the architecture has no such call. From 424 on they agree.
# fmt: off
REFUSED: tuple[tuple[str, int | None, int | None], ...] = (
    # other processes
    ("ptrace", 101, 117), ("process_vm_readv", 310, 270), ("process_vm_writev", 311, 271), ("kcmp", 312, 272),
    ("pidfd_getfd", 438, 438), ("process_madvise", 440, 440), ("process_mrelease", 448, 448),
    # mounts and namespaces
    ("mount", 165, 40), ("umount2", 166, 39), ("pivot_root", 155, 41), ("chroot", 161, 51), ("unshare", 272, 97),
    ("setns", 308, 268), ("open_tree", 428, 428), ("move_mount", 429, 429), ("fsopen", 430, 430),
    ("fsconfig", 431, 431), ("fsmount", 432, 432), ("fspick", 433, 433), ("mount_setattr", 442, 442),
    ("statmount", 457, 457), ("listmount", 458, 458), ("name_to_handle_at", 303, 264),
    ("open_by_handle_at", 304, 265), ("quotactl", 179, 60), ("quotactl_fd", 443, 443), ("swapon", 167, 224),
    ("swapoff", 168, 225), ("sysfs", 139, None), ("ustat", 136, None),
    # the kernel's machinery
    ("bpf", 321, 280), ("userfaultfd", 323, 282), ("io_uring_setup", 425, 425), ("io_uring_enter", 426, 426),
    ("io_uring_register", 427, 427), ("perf_event_open", 298, 241), ("init_module", 175, 105),
    ("finit_module", 313, 273), ("delete_module", 176, 106), ("kexec_load", 246, 104),
    ("kexec_file_load", 320, 294), ("reboot", 169, 142), ("syslog", 103, 116), ("acct", 163, 89),
    ("add_key", 248, 217), ("request_key", 249, 218), ("keyctl", 250, 219), ("fanotify_init", 300, 262),
    ("fanotify_mark", 301, 263), ("seccomp", 317, 277), ("personality", 135, 92), ("vhangup", 153, 58),
    ("modify_ldt", 154, None), ("iopl", 172, None), ("ioperm", 173, None), ("uselib", 134, None),
    ("mbind", 237, 235), ("set_mempolicy", 238, 237), ("migrate_pages", 256, 238), ("move_pages", 279, 239),
    ("vmsplice", 278, 75), ("sethostname", 170, 161), ("setdomainname", 171, 162), ("settimeofday", 164, 170),
    ("clock_settime", 227, 112), ("clock_adjtime", 305, 266), ("adjtimex", 159, 171),
    # names and memory outside the private folder and the limits
    ("memfd_create", 319, 279), ("memfd_secret", 447, 447), ("shmget", 29, 194), ("shmat", 30, 196),
    ("shmctl", 31, 195), ("shmdt", 67, 197), ("semget", 64, 190), ("semop", 65, 193), ("semctl", 66, 191),
    ("semtimedop", 220, 192), ("msgget", 68, 186), ("msgsnd", 69, 189), ("msgrcv", 70, 188), ("msgctl", 71, 187),
    ("mq_open", 240, 180), ("mq_unlink", 241, 181), ("mq_timedsend", 242, 182), ("mq_timedreceive", 243, 183),
    ("mq_notify", 244, 184), ("mq_getsetattr", 245, 185),
    # a program that slows itself down would look like one the machine has no time for; flushing every disk
    ("setpriority", 141, 140), ("sched_setparam", 142, 118), ("sched_setscheduler", 144, 119),
    ("sched_setattr", 314, 274), ("ioprio_set", 251, 30), ("sync", 162, 81), ("syncfs", 306, 267),
    # files that all programs see: who reads them, and who has locked one; each could tell another, or shut it out
    ("inotify_init", 253, None), ("inotify_init1", 294, 26), ("inotify_add_watch", 254, 27),
    ("inotify_rm_watch", 255, 28), ("flock", 73, 32), ("lookup_dcookie", 212, 18),
    # the network; connected pairs are allowed below
    ("socket", 41, 198), ("connect", 42, 203), ("accept", 43, 202), ("accept4", 288, 242), ("bind", 49, 200),
    ("listen", 50, 201),
)
# fmt: on
LAST = 462
"""The youngest system call known here (mseal, Linux 6.10)."""
CLONE, CLONE3, SOCKETPAIR, IOCTL = (56, 220), 435, (53, 199), (16, 29)
FCNTL, SETRLIMIT, PRLIMIT = (72, 25), (160, 164), (302, 261)
SHARED = (5, 36, 1026, 1031)
"""Commands of fcntl: F_GETLK and F_OFD_GETLK would show another's lock on a file both may read; F_NOTIFY is inotify's
elder; F_SETPIPE_SZ takes pages that the kernel counts by user. Locks that are set stay possible: a file that all see
can only be locked for reading, which shuts nobody out."""
NAMESPACES = 0x7E020080
"""Every CLONE_NEW* flag."""
TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into a terminal."""

LOAD, EQUAL, AT_LEAST, SET, AND, JUMP, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x05, 0x06
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
Leaf = Literal["allowed", "refused", "unknown", "clone", "socketpair", "ioctl", "fcntl", "setrlimit", "prlimit"]
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def machine() -> tuple[int, int]:
    """Return this machine's column in :data:`REFUSED` and its AUDIT_ARCH; raise UsageError where there is none."""
    try:
        return MACHINES[platform.machine()]
    except KeyError:
        raise UsageError(
            f"the sandbox has no system-call filter for {platform.machine()!r} machines, only for {', '.join(MACHINES)}"
        ) from None


def filter_bytes() -> bytes:
    """Return the filter as an array of ``struct sock_filter``; arguments are read little-endian."""
    column, audit = machine()

    def instruction(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, k)

    def refuse(number: int) -> bytes:
        return instruction(RETURN, ERROR | number)

    # What each number leads to, then the numbers from which on something else does; a search tree over those, since the
    # kernel tries the filter on every number when it is put on, and the program at every call.
    leads: dict[int, Leaf] = {number: "refused" for _, *pair in REFUSED if (number := pair[column]) is not None}
    leads |= {CLONE3: "unknown", CLONE[column]: "clone", SOCKETPAIR[column]: "socketpair", IOCTL[column]: "ioctl"}
    leads |= {FCNTL[column]: "fcntl", SETRLIMIT[column]: "setrlimit", PRLIMIT[column]: "prlimit"}
    leads |= {LAST + 1: "unknown"}
    edges: list[tuple[int, Leaf]] = [(0, leads.get(0, "allowed"))]
    for number in sorted({n for known in leads for n in (known, known + 1)} - {0, LAST + 2}):
        leaf = leads.get(number, "allowed")
        if leaf != edges[-1][1]:
            edges.append((number, leaf))

    leaves: dict[Leaf, list[bytes]] = {
        "allowed": [instruction(RETURN, ALLOW)],
        "refused": [refuse(errno.EPERM)],
        "unknown": [refuse(errno.ENOSYS)],
        "clone": [
            instruction(LOAD, 16),
            instruction(SET, NAMESPACES, 0, 1),
            refuse(errno.EPERM),
            instruction(RETURN, ALLOW),
        ],
        # A datagram socket could be given, and send to, a name that other programs see; a stream pair cannot.
        "socketpair": [
            instruction(LOAD, 16),
            instruction(EQUAL, 1, 0, 5),
            instruction(LOAD, 24),
            instruction(AND, 0xF),
            instruction(EQUAL, 1, 1, 0),
            instruction(EQUAL, 5, 0, 1),
            instruction(RETURN, ALLOW),
            refuse(errno.EPERM),
        ],
        "ioctl": [
            instruction(LOAD, 24),
            instruction(EQUAL, TERMINAL[0], 1, 0),
            instruction(EQUAL, TERMINAL[1], 0, 1),
            refuse(errno.EPERM),
            instruction(RETURN, ALLOW),
        ],
    }

    leaves["fcntl"] = [
        instruction(LOAD, 24),
        *(instruction(EQUAL, command, len(SHARED) - i, 0) for i, command in enumerate(SHARED)),
        instruction(RETURN, ALLOW),
        refuse(errno.EPERM),
    ]
    # At the hard limit of processor time the kernel kills even the first process of a namespace, which nothing within
    # can do otherwise: that would look like something on the host. A null pointer only asks for the limit.
    leaves["setrlimit"] = [
        instruction(LOAD, 16),
        instruction(EQUAL, 0, 0, 1),
        refuse(errno.EPERM),
        instruction(RETURN, ALLOW),
    ]
    leaves["prlimit"] = [
        instruction(LOAD, 24),
        instruction(EQUAL, 0, 0, 4),
        instruction(LOAD, 32),
        instruction(EQUAL, 0, 0, 3),
        instruction(LOAD, 36),
        instruction(EQUAL, 0, 0, 1),
        instruction(RETURN, ALLOW),
        refuse(errno.EPERM),
    ]

    def tree(some: list[tuple[int, Leaf]]) -> list[bytes]:
        if len(some) == 1:
            return leaves[some[0][1]]
        below, above = tree(some[: len(some) // 2]), tree(some[len(some) // 2 :])
        # A conditional jump reaches 255 instructions, an unconditional one any distance.
        jump = [instruction(JUMP, len(below))]
        return [instruction(AT_LEAST, some[len(some) // 2][0], 0, 1), *jump, *below, *above]

    start = [
        instruction(LOAD, 4),
        instruction(EQUAL, audit, 1, 0),
        instruction(RETURN, KILL),
        instruction(LOAD, 0),
    ]
    return b"".join([*start, *tree(edges)])
