"""What goes into the sandbox and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.errors import UsageError

Status = Literal["ok", "error", "timeout", "memory", "output", "killed", "infrastructure", "compile_error"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use; exceeding any of it is the program's own fault and a verdict.

    Attributes:
        cpu_seconds: processor time of the program and all its processes together, in (0, 3600]. The limit that
            decides: it does not depend on what else the machine is doing.
        wall_seconds: time during which none of its processes computes or is ready to: for programs that sleep or
            block. In (0, 3600].
        memory: bytes the program may add to the interpreter it starts in (address space of each process, except for
            languages that reserve more than they use; resident bytes of all its processes together).
        output: bytes of standard output, of standard error, and of returned values, each.
        file_size: bytes of the largest file it may write.
        disk: bytes of its private ``/tmp`` (which is also ``/dev/shm``).
        processes: processes and threads at a time.
        stack: bytes of the main thread's stack.
    """

    cpu_seconds: float = 5.0
    wall_seconds: float = 15.0
    memory: int = 512 * MIB
    output: int = 4 * MIB
    file_size: int = 16 * MIB
    disk: int = 64 * MIB
    processes: int = 32
    stack: int = 64 * MIB

    def __post_init__(self) -> None:
        for name in ("cpu_seconds", "wall_seconds"):
            if not 0 < getattr(self, name) <= 3600:
                raise UsageError(f"Limits.{name} = {getattr(self, name)!r}: must be in (0, 3600]")
        least = {"memory": 8 * MIB, "output": 1, "file_size": 1, "disk": 65536, "processes": 1, "stack": 65536}
        for name, smallest in least.items():
            if not isinstance(getattr(self, name), int) or getattr(self, name) < smallest:
                raise UsageError(f"Limits.{name} = {getattr(self, name)!r}: must be an integer of at least {smallest}")


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run.

    Attributes:
        source: its text.
        language: one of :data:`assay.sandbox.languages.LANGUAGES`: python, c, cpp, javascript, bash.
        files: further files by relative path, put beside it in its working folder.
        args: command-line arguments.
        packages: importable Python packages it may use beside the standard library, already imported before it starts,
            e.g. ``("numpy",)``.
        options: for the compiler, after the language's own, e.g. ``("-O3",)``.
        inputs: files of one run, put beside the others, which a compiler does not see: however they differ, the program
            is compiled once.
    """

    source: str
    language: str = "python"
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    inputs: Mapping[str, str | bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    Attributes:
        status: ``ok`` (exit code 0), ``error`` (another exit code or a crash), ``timeout``, ``memory``, ``output``
            (wrote too much), ``killed`` (it killed itself), ``compile_error``; or ``infrastructure``: the sandbox
            failed and nothing is known of the program, so a verifier abstains.
        stdout, stderr: what it wrote, at most ``Limits.output`` bytes each.
        exit_code: its exit code; minus the signal's number if a signal ended it; ``None`` if unknown.
        cpu_seconds: processor time of all its processes.
        wall_seconds: from start to end.
        memory: bytes it held at the most, of memory that the interpreter it was started in did not hold already: of
            the largest of its processes, and of all together as far as they were looked at. For a program that is
            not Python's never less than that interpreter's own, some 10 MiB.
        reason: one line for people; empty when ``ok``.
        files: the files that were asked for and exist.
        tree: of a folder that was asked for whole, what is in it: content (a link's target) and mode by path, the
            folder itself as ``""``; ``None`` where it could not be brought back.
    """

    status: Status
    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int | None = None
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    memory: int = 0
    reason: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    tree: Mapping[str, tuple[bytes, int]] | None = None

    @property
    def failed_here(self) -> bool:
        """Whether the sandbox, and not the program, is to blame: a verifier abstains."""
        return self.status == "infrastructure"


@dataclass(frozen=True, slots=True)
class Call:
    """One function call's result: ``value`` if ``returned``, else ``exception`` (``"ValueError: ..."``).

    Everything here is what the program says of itself: plain data without behaviour, of any content. ``cpu_seconds`` is
    the program's own measurement too.
    """

    returned: bool
    value: Any = None
    exception: str = ""
    cpu_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The results of the calls that were completed, in order, and how the process ended.

    ``len(calls)`` is smaller than the number asked for when the program ended, or was ended, before them; ``outcome``
    says why. ``outcome.status`` is ``ok`` only if all calls were completed.
    """

    calls: tuple[Call, ...]
    outcome: Outcome
