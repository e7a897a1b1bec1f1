"""Starts the ranks of a run on this machine, passes signals on to them, and says which of them died.

torchrun and SLURM do the same for several machines; a process that one of them started is a rank already.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

from assay.errors import AssayError, RunError
from assay.scale.ranks import RENDEZVOUS, LostRank, tells_of_loss

REPORTS = "ASSAY_REPORTS"
"""Names the folder where ranks leave the line that says why they ended."""

GRACE = 2.0
"""Seconds that the other ranks have to end by themselves after one of them failed: they may say the same."""

HURRY = 10.0
"""Seconds that ranks have to stop at once after being told twice."""

SUPERVISED = "ASSAY_SUPERVISED"
"""Set for a command that is run by :mod:`assay.scale.supervise`: names the file that tells it ended by itself."""

PR_SET_PDEATHSIG = 1


def launch(command: Sequence[str], size: int, run: str, lost: int = 1) -> int:
    """Run ``command`` as ``size`` ranks of this machine; return its exit code.

    SIGINT and SIGTERM are passed on to every rank, which finish the step in flight together. A rank that fails or is
    killed takes the others down at once, since none can go on without it: nothing of the step in flight is kept, and
    the last checkpoint continues the run.

    Args:
        command: of each rank; what it is told apart by is in its environment.
        size: how many.
        run: the run's folder, for who has to continue it.
        lost: exit code if a rank was killed, or ended without a word.
    """
    with tempfile.TemporaryDirectory(prefix="assay-ranks-") as folder:
        ranks: list[subprocess.Popen[bytes]] = []
        told: list[int] = []

        def pass_on(number: int, frame: FrameType | None) -> None:
            told.append(number)
            for rank in ranks:
                if rank.poll() is None:
                    rank.send_signal(number)

        # Who resumes a supervised run at once must not meet ranks that are still ending a step.
        orphaned = signal.SIGKILL if SUPERVISED in os.environ else signal.SIGTERM
        before = {s: signal.signal(s, pass_on) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            for number in range(size):
                environment = {**os.environ, **_environment(number, size, Path(folder))}
                ranks.append(
                    # A session of its own, for Ctrl-C in a terminal would otherwise reach each rank twice.
                    subprocess.Popen(
                        command,
                        env=environment,
                        start_new_session=True,
                        preexec_fn=partial(die_with_parent, orphaned),  # noqa: PLW1509 - no other thread is here
                    )
                )
                if told:
                    ranks[-1].send_signal(told[-1])
            return _watch(ranks, told, Path(folder), run, lost)
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
                rank.wait()
            for number, handler in before.items():
                signal.signal(number, handler)


def _environment(rank: int, size: int, folder: Path) -> dict[str, str]:
    """What a rank is told by, in torchrun's words."""
    out = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        RENDEZVOUS: f"file://{folder / 'rendezvous'}",
        REPORTS: str(folder),
    }
    # Ranks go through the same sets in the same order.
    out["PYTHONHASHSEED"] = os.environ.get("PYTHONHASHSEED", "0")
    # The machine's name may stand for an address that does not reach it.
    if "GLOO_SOCKET_IFNAME" not in os.environ and any(name == "lo" for _, name in socket.if_nameindex()):
        out["GLOO_SOCKET_IFNAME"] = "lo"
    # As torchrun does; several processes that take every core each only wait for each other.
    cores = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // size))
    return {**out, "OMP_NUM_THREADS": cores}


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """In a process about to start: have the kernel send it a signal if the one that starts it is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def _watch(ranks: Sequence[subprocess.Popen[bytes]], told: Sequence[int], folder: Path, run: str, lost: int) -> int:
    """Wait until all ranks have ended, or one ended badly and the others were ended; say what happened."""
    failed: int | None = None
    deadline = float("inf")
    while (left := [r for r in ranks if r.poll() is None]) and time.monotonic() < deadline:
        if failed is None:
            failed = next((i for i, r in enumerate(ranks) if _badly(r.returncode, told)), None)
            if failed is not None:
                killed = (ranks[failed].returncode or 0) < 0
                deadline = time.monotonic() + (0 if killed else GRACE)
                continue
        if len(told) > 1:
            deadline = min(deadline, time.monotonic() + HURRY)
        try:
            left[0].wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    for rank in ranks:
        if rank.poll() is None:
            rank.kill()
            rank.wait()
    codes = [rank.returncode for rank in ranks]
    if len(told) > 1:
        return 128 + told[-1]
    if failed is None:
        failed = next((i for i, code in enumerate(codes) if _badly(code, told)), None)
    if failed is None:
        return codes[0] if codes[0] >= 0 else 128 - codes[0]
    line, code = _said(failed, codes, folder, run)
    print(f"assay: {line}", file=sys.stderr)
    return lost if code is None else code


def _badly(code: int | None, told: Sequence[int]) -> bool:
    """Whether a rank ended otherwise than it should; stopping when told to is no failure."""
    return code is not None and code != 0 and code not in {128 + number for number in told}


def _said(failed: int, codes: Sequence[int], folder: Path, run: str) -> tuple[str, int | None]:
    """The line that says why the ranks ended, and the exit code of one that said so itself."""
    # Who only lost the others is not to blame, even where that was noticed first.
    order = sorted(range(len(codes)), key=lambda i: (codes[i] == LostRank.exit_code, i != failed, i))
    for rank in order:
        report = folder / f"rank-{rank}"
        if codes[rank] > 0 and report.is_file():
            return report.read_text(encoding="utf-8"), codes[rank]
    rank = order[0]
    code = codes[rank]
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    elif code == LostRank.exit_code:
        how = "lost the others"
    elif code == RunError.exit_code and not (folder / f"ended-{rank}").exists():
        how = "was ended on the spot, as Ray does once this machine's part of its cluster (the raylet) has gone"
    else:
        how = f"ended with exit code {code}"
    return f"rank {rank} of {len(codes)} {how}; continue with: assay train --resume {run}", None


def reported(command: Callable[[], int]) -> int:
    """In a rank that :func:`launch` started: leave an error for it to print, which prints it once.

    A file besides tells that the rank came to an end of its own, be it an error. Elsewhere, just the command.
    """
    folder = os.environ.get(REPORTS)
    if folder is None:
        return command()
    try:
        return command()
    except LostRank as error:  # whoever is to blame says why, if anybody can
        return error.exit_code
    except AssayError as error:
        (Path(folder) / f"rank-{os.environ['RANK']}").write_text(str(error), encoding="utf-8")
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        if tells_of_loss(error):
            return LostRank.exit_code
        raise
    finally:
        (Path(folder) / f"ended-{os.environ['RANK']}").touch()
