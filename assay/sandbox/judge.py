"""From what the kernel says of a process to what is said of a program."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

from assay.sandbox.inside import codec, messages
from assay.sandbox.types import Limits, Outcome, Status

OUT_OF_MEMORY = (
    b"MemoryError",
    b"OutOfMemoryError",
    b"std::bad_alloc",
    b"heap out of memory",
    b"Cannot allocate memory",
    b"out of memory",
    b"memory allocation of",
)


class Answer(NamedTuple):
    """What a zygote says of a program that has ended; see :data:`assay.sandbox.inside.messages.ANSWER`."""

    cause: str
    status: int
    cpu: float
    wall: float
    memory: int
    first: bool
    failed: str


def read_answer(message: bytes) -> Answer:
    cause, status, cpu, wall, memory, first = messages.ANSWER.unpack_from(message)
    failed = message[messages.ANSWER.size :].decode("utf-8", "replace")
    return Answer(messages.CAUSES[cause], status, cpu, wall, memory, first, failed)


def judge(answer: Answer, texts: list[tuple[bytes, bool]], limits: Limits, started: bool) -> Outcome:
    """Return the outcome for a zygote's ``answer``.

    Args:
        answer: a zygote's.
        texts: standard output, standard error and results, each with whether it was longer than allowed.
        started: whether the results are the files that were asked for.
    """
    (stdout, long_out), (stderr, long_err), (result, long_result) = texts
    code = os.waitstatus_to_exitcode(answer.status)
    files: dict[str, bytes] = {}
    if started and not long_result:
        try:
            files = codec.loads(result) if result else {}
        except codec.CodecError:
            files = {}
    status, reason = _status(answer, code, stderr, long_out or long_err or (long_result and not started), limits)
    return Outcome(status, stdout, stderr, code, answer.cpu, answer.wall, answer.memory, reason, files)


def _status(answer: Answer, code: int, stderr: bytes, long: bool, limits: Limits) -> tuple[Status, str]:
    if long:
        return "output", f"it wrote more than {limits.output} bytes"
    if answer.cause == "load":
        return "infrastructure", "the machine was too busy to give the program its time"
    if answer.cause == "cpu" or answer.cpu > limits.cpu_seconds:
        return "timeout", f"it took more than {limits.cpu_seconds:g} s of processor time"
    if answer.cause == "wall":
        return "timeout", f"it took more than {limits.wall_seconds:g} s, most of it waiting"
    if answer.cause == "memory":
        return "memory", f"it took more than {limits.memory >> 20} MiB of memory"
    if code == 0:
        return "ok", ""
    if code == -signal.SIGKILL:
        # The first process of a namespace cannot be killed from within: the host did it.
        return (
            ("infrastructure", "something on the host killed the program")
            if answer.first
            else ("killed", "it was killed")
        )
    if code == -signal.SIGXFSZ:
        return "output", "it wrote a file longer than allowed"
    last = stderr[-2000:]
    if code == 1:
        # Java writes its frames after the error.
        last = next((line for line in reversed(last.splitlines()) if line and not line.startswith(b"\tat ")), b"")
    if any(word in last for word in OUT_OF_MEMORY):
        return "memory", f"it ran out of its {limits.memory >> 20} MiB of memory"
    if code < 0:
        return "error", f"it was ended by {signal.Signals(-code).name if -code in signal.valid_signals() else -code}"
    return "error", f"it ended with exit code {code}"
