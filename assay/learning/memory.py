"""Keeping the memory that tensors free, as the allocators of accelerators do."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h


def keep_freed_memory() -> bool:
    """Tell the C library not to hand memory back to the system; return whether it could be told.

    A step frees and asks again for the same large tensors. Handed back in between, each of their pages faults again on
    its first use: tens of thousands of faults a step, a twentieth of its time and much of its jitter. The process keeps
    what it needed at its peak.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # a C library other than glibc
        return False
    return all([mallopt(_MMAP_THRESHOLD, 1 << 30), mallopt(_TRIM_THRESHOLD, -1), mallopt(_TOP_PAD, 64 << 20)])
