"""Processes of the pool die at random while programs are judged: no check is lost, and none is wrong."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from assay.sandbox import Limits, Program, Sandbox

from .support import descendants, needs_sandbox

pytestmark = needs_sandbox
CHECKS = 2000


@pytest.mark.slow
def test_killing_processes_at_random_loses_no_check_and_falsifies_none() -> None:
    limits = Limits(cpu_seconds=5, wall_seconds=30)
    done = threading.Event()
    killed = 0
    others = set(descendants(os.getpid()))  # of the sandbox that tests share

    def check(n: int) -> str:
        """Right programs and wrong ones, by standard input and by calls, as a verifier would judge them."""
        good = n % 2 == 0
        add = "+" if good else "-"
        if n % 4 < 2:
            outcome = box.run(Program(f"a, b = map(int, input().split())\nprint(a {add} b)"), f"{n} 5\n", limits)
            passed = outcome.status == "ok" and outcome.stdout == f"{n + 5}\n".encode()
        else:
            called = box.call(Program(f"def f(a, b): return a {add} b"), "f", [((n, 5), {})], limits)
            outcome = called.outcome
            passed = outcome.status == "ok" and [call.value for call in called.calls] == [n + 5]
        if outcome.failed_here:
            assert outcome.reason
            return "abstained"
        return "judged" if passed == good else f"wrong: {outcome}"

    def kill() -> None:
        nonlocal killed
        chance = random.Random(0)
        while not done.wait(chance.uniform(0.02, 0.2)):
            pids = [pid for pid in descendants(os.getpid()) if pid not in others]
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    killed += 1

    with Sandbox(4) as box:
        box.check()
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            with ThreadPoolExecutor(4) as threads:
                verdicts = Counter(threads.map(check, range(CHECKS)))
        finally:
            done.set()
            killer.join()
        assert sum(verdicts.values()) == CHECKS
        assert set(verdicts) <= {"judged", "abstained"}, verdicts
        assert killed > 20 and verdicts["judged"] > CHECKS // 2, (killed, verdicts)
        # The pool has recovered.
        assert box.run(Program("print(1)")).stdout == b"1\n"
    deadline = time.monotonic() + 20
    while set(descendants(os.getpid())) - others and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not set(descendants(os.getpid())) - others
