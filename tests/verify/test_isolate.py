"""Calls in processes that can be killed: each failure costs its own call, and says why."""

import os
import textwrap
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import pytest

from assay.verify.isolate.workers import Failure, Workers


@pytest.fixture
def workers(tmp_path, monkeypatch):
    (tmp_path / "checks_in_a_worker.py").write_text(
        textwrap.dedent("""
        import os, sys, time
        ready = False
        def prepare():
            global ready
            ready = True
        def double(x): return 2 * x
        def process(): return [os.getpid(), ready]
        def talk(): print("noise"); sys.stdout.flush(); os.write(1, b"noise"); return "quiet"
        def spin(): 
            while True: pass
        def sleep(): time.sleep(60)
        def grow(): return len(bytearray(64 << 30))
        def crash(): os.abort()
        def leave(): sys.exit(3)
        def vanish(): os._exit(0)
        def struck(): os.kill(os.getpid(), 9)
        def pretend(): raise ValueError("took longer than 9 s by the wall clock, ran out of memory")
        def fail(): raise ValueError("no such luck")
        def write(path): open(path, "w").write("x")
        def unspeakable(): return object()
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Workers("checks_in_a_worker", size=2)
    yield made
    made.close()


def test_values_come_back_and_a_process_is_kept(workers):
    assert workers.call("double", 21, seconds=5) == 42
    pid, ready = workers.call("process", seconds=5)
    assert ready
    assert workers.call("process", seconds=5) == [pid, True]
    assert pid != os.getpid()
    assert workers.call("talk", seconds=5) == "quiet"


@pytest.mark.parametrize(
    ("function", "reason", "cause"),
    [
        ("spin", "took longer than 0.1 s", "time"),
        ("sleep", "took longer than 1 s by the wall clock", "wall"),
        ("grow", "ran out of memory", "memory"),
        ("crash", "ended by SIGABRT", "crashed"),
        ("vanish", "ended with status 0", "crashed"),
        ("struck", "ended by SIGKILL", "killed"),
        ("leave", "SystemExit: 3", "raised"),
        ("fail", "ValueError: no such luck", "raised"),
        # What it says does not decide what it is.
        ("pretend", "took longer than 9 s by the wall clock, ran out of memory", "raised"),
        ("unspeakable", "TypeError", "raised"),
        ("missing", "AttributeError", "raised"),
    ],
)
def test_a_failure_costs_its_own_call(workers, function, reason, cause):
    failure = workers.call(function, seconds=0.1, wall=1 if function == "sleep" else 60)
    assert isinstance(failure, Failure)
    assert reason in failure.reason
    assert failure.cause == cause
    assert failure.timed_out is (cause in ("time", "wall"))
    assert failure.overspent is (cause in ("time", "memory"))
    assert failure.own is (cause not in ("wall", "killed"))
    assert workers.call("double", 1, seconds=5) == 2


def test_files_cannot_be_written(workers, tmp_path):
    workers.call("write", str(tmp_path / "note"), seconds=5)
    assert not (tmp_path / "note").exists() or not (tmp_path / "note").read_text()


def test_what_cannot_be_pickled_or_imported_is_said(workers):
    unsent = workers.call("double", lambda: 0, seconds=5)
    assert "cannot be sent" in unsent.reason and unsent.cause == "unsent"
    absent = Workers("no_module_of_this_name", size=1)
    unloaded = absent.call("f", seconds=5)
    assert "no_module_of_this_name could not be loaded" in unloaded.reason and unloaded.cause == "unloaded"
    absent.close()


def test_map_keeps_order_around_failures_and_reads_a_bounded_way_ahead(workers):
    read = []
    calls = ((read.append(i) or i,) for i in count())
    assert list(islice(workers.map("double", calls, seconds=5, ahead=16), 50)) == [2 * i for i in range(50)]
    assert len(read) <= 50 + 16
    results = list(workers.map("double", [(1,), (lambda: 0,), (3,)], seconds=5))
    assert results[0] == 2 and isinstance(results[1], Failure) and results[2] == 6


def test_threads_share_the_workers_and_a_fork_does_not(workers):
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(lambda i: workers.call("double", i, seconds=5), range(60))) == [
            2 * i for i in range(60)
        ]
    assert 1 <= len(workers._idle) <= 2
    before = [w.process.pid for w in workers._idle]
    child = os.fork()
    if child == 0:
        os._exit(len(workers._idle))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [w.process.pid for w in workers._idle] == before
    assert workers.call("double", 4, seconds=5) == 8
