"""Runs a training command, and goes on from its last checkpoint when it dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from assay.errors import RunError, UsageError
from assay.scale.faults import Faults
from assay.scale.launch import SUPERVISED, die_with_parent
from assay.scale.ranks import LostRank

LOST = LostRank.exit_code
"""What a command ends with that lost a rank or its cluster: an end that may not come again."""
PAUSES = (0.0, 1.0, 5.0, 15.0, 60.0)
"""Seconds before another start, by how many starts before it got nowhere."""


@contextmanager
def by_itself() -> Iterator[None]:
    """In the command that is run: note that it came to an end of its own, be it an error.

    Ray ends a process that has lost its part of the cluster on the spot, with the exit code that errors have too.
    """
    try:
        yield
    finally:
        if SUPERVISED in os.environ:
            Path(os.environ[SUPERVISED]).touch()


def supervise(command: Sequence[str], resume: Sequence[str], folder: Path, retries: int) -> int:
    """Run ``command``; each time it dies, run ``resume`` instead, ``retries`` times at most. Return the exit code.

    Deaths are being killed, losing a rank or the cluster, and ending without a word. An error that the run itself
    reports would come again and ends it, and so does being told to stop. Every death is told in a line and noted in the
    run's ``faults.jsonl``.

    Args:
        command: begins the run.
        resume: goes on with it from its last checkpoint.
        folder: the run's.
        retries: 0 or more.
    """
    told: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: FrameType | None) -> None:
        told.append(number)
        if child is not None and child.poll() is None:
            child.send_signal(number)

    def say(line: str) -> None:
        print(f"assay: {line}", file=sys.stderr, flush=True)

    faults = Faults(folder, say)
    before = {s: signal.signal(s, pass_on) for s in (signal.SIGINT, signal.SIGTERM)}
    deaths = idle = 0
    reached: str | None = None
    mark = Path(tempfile.mkdtemp(prefix="assay-supervised-")) / "ended"
    try:
        while True:
            mark.unlink(missing_ok=True)
            child = subprocess.Popen(
                resume if (folder / "config.toml").is_file() else command,
                env={**os.environ, SUPERVISED: str(mark)},
                # A session of its own, for Ctrl-C in a terminal would otherwise reach it twice.
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has no other thread
            )
            if told:
                child.send_signal(told[-1])
            code = child.wait()
            # Right after a death, the cluster may not be back yet, which is the user's mistake at other times.
            gone = code == LOST or (code == RunError.exit_code and not mark.exists())
            died = code < 0 or gone or (idle > 0 and code == UsageError.exit_code)
            if not died or told:
                return code if code >= 0 else 128 - code
            why = f"killed by {signal.Signals(-code).name}" if code < 0 else "it lost what it runs on"
            if deaths == retries:
                if retries or not mark.exists():  # else it has said so itself
                    times = f", after {retries} retries" if retries else ""
                    say(f"the trainer died ({why}){times}; continue with: assay train --resume {folder}")
                return code if code >= 0 else 128 - code
            deaths += 1
            now = _reached(folder)
            idle, reached = idle + 1 if now == reached else 1, now
            faults.died("the trainer", why, f"resuming after {now or 'nothing'}, retry {deaths} of {retries}")
            time.sleep(PAUSES[min(idle - 1, len(PAUSES) - 1)])
            if told:
                return 128 + told[-1]
    finally:
        if child is not None and child.poll() is None:
            child.kill()
            child.wait()
        shutil.rmtree(mark.parent)
        for number, handler in before.items():
            signal.signal(number, handler)


def _reached(folder: Path) -> str | None:
    """Name of a run's last whole checkpoint."""
    from assay.records.checkpoints import last_checkpoint

    try:
        stage, step, _ = last_checkpoint(folder)
    except UsageError:
        return None
    return f"{stage} step {step}"
