"""Programs that run at the same time neither see nor starve one another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.sandbox import Dialogue, Program, Sandbox, confine

from .support import needs_sandbox

pytestmark = needs_sandbox


def test_no_program_can_lock_or_watch_what_others_read() -> None:
    source = """
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
file = os.open(os.__file__, os.O_RDONLY)
def refused(attempt):
    try:
        attempt()
    except PermissionError:
        return True
print(refused(lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)), libc.inotify_init(), libc.inotify_init1(0))
print(refused(lambda: fcntl.fcntl(file, 1026, 1)), refused(lambda: fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)))
print(refused(lambda: fcntl.fcntl(file, 5, bytes(32))))
own = open('own', 'w')
fcntl.lockf(own, fcntl.LOCK_EX)
print('locked')
"""
    with Sandbox(1) as box:
        done = box.run(Program(source))
    assert done.stdout == b"True -1 -1\nTrue True\nTrue\nlocked\n", done


@pytest.mark.skipif(not confine.as_root() or confine.account(1) == confine.USER, reason="needs root and its accounts")
def test_programs_at_the_same_time_have_different_accounts() -> None:
    # Pages of pipes, watches and waiting signals are counted by account.
    with Sandbox(2) as box, ThreadPoolExecutor(2) as threads:
        talking = threading.Barrier(2)
        maps: list[bytes] = []

        def ask(dialogue: Dialogue) -> None:
            maps.append(dialogue.readline())
            talking.wait(60)

        program = Program("print(open('/proc/self/uid_map').read().split())\ninput()")
        list(threads.map(lambda _: box.interact(program, ask), range(2)))
    assert len(set(maps)) == 2 and all(f"['{confine.USER}'".encode() in line for line in maps)
