"""As many threads as there are processors to run them."""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch


def cores() -> int:
    """Return the processors that this process may use: those it is bound to, within the quota of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, _quota(Path("/sys/fs/cgroup")))))


def _quota(root: Path) -> float:
    """Return the processors that a control group leaves its processes, of either version; infinity without a bound."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join((root / name).read_text() for name in names).split()
        except OSError:
            continue
        if len(words) == 2 and all(w.isdecimal() for w in words) and int(words[1]) > 0:
            return int(words[0]) / int(words[1])
    return math.inf


def use_cores() -> None:
    """Let torch use no more threads than there are processors to run them.

    torch counts those of the machine; in a container with a quota its threads then wait for each other. Who has said
    how many, by ``OMP_NUM_THREADS`` or by asking torch for fewer, keeps them.
    """
    if "OMP_NUM_THREADS" not in os.environ and torch.get_num_threads() > cores():
        torch.set_num_threads(cores())
