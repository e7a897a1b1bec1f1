"""Watching one program while it runs: processor time, memory and waiting of all its processes, from /proc."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

import messages

TICK = 0.02
"""Seconds between looks; a program that ends earlier is never looked at."""
IDLE = 0.2
"""Seconds between looks at a program that is asked nothing."""
FOREVER = float("inf")
PAGE = os.sysconf("SC_PAGE_SIZE")
CLOCK = os.sysconf("SC_CLK_TCK")
NUMBERS = 1 << 22
"""Process numbers there are at most."""
CHURN = 20
"""Processes a second from which on a program that never ends is to blame for it, and not the machine's load."""


def everyone() -> list[int]:
    """Every process here but this one, which is the first."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and name != "1"]


def started() -> int:
    """The number given last to a process here or below."""
    with open("/proc/loadavg", "rb", buffering=0) as file:
        return int(file.read().split()[4])


def usage(pids: list[int], own: dict[int, int] | None = None) -> tuple[float, int, bool]:
    """Return processor seconds and resident bytes of ``pids``, and whether one of them is ready to compute.

    A process's seconds are given to its parent when that waits for it, and lost where the parent has said that it does
    not care. ``own`` keeps each process's own as it was last seen, so that most of those count too.
    """
    resident, ready, ticks = 0, False, 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
                # The name, in brackets, may contain anything.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        ready = ready or fields[0] == b"R"
        mine = int(fields[11]) + int(fields[12])
        ticks += mine + int(fields[13]) + int(fields[14])
        if own is not None:
            # A number is used again only after all the others, by a process that has computed less or more.
            own[pid] = max(mine, own.get(pid, 0))
        resident += int(fields[21]) * PAGE
    return max(ticks, sum(own.values()) if own else 0) / CLOCK, resident, ready


def watch(
    pid: int,
    handle: int,
    limits: tuple[float, float, int, float],
    members: Callable[[], list[int]],
    shared: int,
    control: int,
    meanwhile: Callable[[], None],
) -> tuple[str, int]:
    """Wait until the process ``pid`` has ended; return ``""``, or why it must be, and the most memory that was seen.

    ``limits`` are processor seconds, wall seconds, bytes of memory and patience. The wall time runs while none of its
    processes computes or is ready to: what it computes is limited in processor time, so a loaded machine costs it
    nothing. Nor does time in which this process was kept from looking. Patience bounds the real time. ``shared`` bytes
    of each process do not count, being this one's. ``handle`` is the process's descriptor. What can be done
    ``meanwhile`` is done at the first look or after the end. A :data:`messages.BUDGET` from ``control`` begins the
    count anew with other limits, infinite ones while nothing is asked of the program. Raises EOFError when the other
    end of ``control`` is gone.
    """
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(control, select.POLLIN | select.POLLRDHUP)
    cpu, wall, memory, patience = limits
    own, before, start = 0.0, 0.0, time.monotonic()
    last = start
    seen: dict[int, int] = {}
    peak, paid, renewed = 0, 0.0, False
    while True:
        tick = min(TICK, max(0.001, wall - own)) if wall < FOREVER else IDLE
        events = poll.poll(tick * 1000)
        now = time.monotonic()
        passed, last = min(now - last, 2 * TICK), now
        meanwhile()
        for descriptor, event in events:
            if descriptor == control and event == select.POLLIN:
                cpu, wall, patience = messages.BUDGET.unpack(os.read(control, messages.BUDGET.size))
                own, start, renewed = 0.0, now, True
            elif descriptor == control:
                raise EOFError
            else:
                return "", peak
        pids = members()
        seconds, resident, ready = usage(pids, seen)
        resident -= shared * len(pids)
        peak = max(peak, resident)
        if renewed:
            paid, renewed = seconds, False
        # The state is the first thread's; processor time is every thread's.
        if not ready and seconds <= before:
            own += passed
        before = seconds
        if seconds - paid > cpu:
            return "cpu", peak
        if resident > memory:
            return "memory", peak
        if own >= wall:
            return "wall", peak
        if now - start > patience:
            # Children that live shorter than a look and are waited for by nobody: nobody counts their time.
            return ("cpu" if (started() - pid) % NUMBERS > CHURN * patience else "load"), peak
