"""A session keeps what its runs define, holds each to its limits, and tells its own end from one from outside."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.errors import UsageError
from assay.sandbox import Limits, Program, Sandbox, Session

from .support import descendants, needs_sandbox, processes_below

pytestmark = needs_sandbox
LIMITS = Limits(cpu_seconds=0.5, wall_seconds=1.0, memory=256 << 20, output=1 << 16)


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(2) as made:
        yield made


@pytest.fixture
def session(box: Sandbox) -> Iterator[Session]:
    with Session(LIMITS, box=box) as made:
        yield made


def test_state_is_kept(session: Session) -> None:
    assert session.run("x = 2\ndef f(n): return n * x").status == "ok"
    answered = session.run("import math\nprint('hello')\nf(21)")
    assert (answered.status, answered.value, answered.stdout) == ("ok", "42", b"hello\n")
    assert session.run("math.floor(2.5); x = 3").value is None
    assert session.run("f(1)").value == "3"
    assert session.run("class A:\n    def __repr__(self): return 'an A'\na = A()").status == "ok"
    assert session.run("import pickle\npickle.loads(pickle.dumps(a))").value == "an A"
    assert session.run("open('kept.txt', 'w').write('here')").value == "4"
    assert session.run("open('kept.txt').read()").value == "'here'"


def test_what_a_run_raises_leaves_the_state(session: Session) -> None:
    session.run("x = 1")
    failed = session.run("x = 2\n\ndef g():\n    raise ValueError('no')\ng()")
    assert (failed.status, failed.error, failed.lost) == ("error", "ValueError: no", False)
    assert b"line 4, in g\n    raise ValueError('no')" in failed.stderr and b"cells" not in failed.stderr
    assert session.run("x").value == "2"
    for source, error in {
        "x = (": "SyntaxError",
        "raise SystemExit(3)": "SystemExit: 3",
        "input()": "EOFError",
    }.items():
        assert session.run(source).error.startswith(error)
    assert session.run("x").value == "2"


def test_output_is_that_of_the_run(session: Session) -> None:
    session.run("import threading, time\nprint('first', end='')")
    assert session.run("import os, sys\nos.write(1, b'a')\nprint('b', file=sys.stderr)").stdout == b"a"
    assert session.run("os.system('echo c')").stdout == b""  # there are no tools for Python's programs
    assert session.run("print('x' * 100)").stdout == b"x" * 100 + b"\n"


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("while True: pass", "timeout"),
        ("import time; time.sleep(60)", "timeout"),
        ("import os; os._exit(0)", "error"),
        ("import ctypes; ctypes.string_at(0)", "error"),
        ("print('x' * (1 << 20))", "output"),
        ("import os\nfor n in range(3, 9):\n    try: os.close(n)\n    except OSError: pass", "error"),
        ("import os\nfor n in range(3, 9):\n    try: os.write(n, b'{}\\n')\n    except OSError: pass", "error"),
        ("import os\nfor n in range(3, 9):\n    try: os.write(n, b'\\xff' * 99999)\n    except OSError: pass", "error"),
    ],
)
def test_what_ends_the_interpreter_is_the_runs_own_doing(session: Session, source: str, status: str) -> None:
    session.run("x = 1")
    ended = session.run(source)
    assert (ended.status, ended.lost, ended.failed_here) == (status, True, False), ended
    assert ended.reason
    assert session.run("'x' in globals()").value == "False"


def test_memory_is_held_by_all_runs_together(session: Session) -> None:
    sources = [f"x{n} = bytearray(100 << 20)" for n in range(4)]
    statuses = [session.run(source).status for source in sources]
    assert statuses[0] == "ok" and set(statuses[1:]) & {"error", "memory"}


def test_each_run_has_the_limits_of_one(session: Session) -> None:
    busy = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    assert [session.run(busy).status for _ in range(5)] == ["ok"] * 5
    longer = Limits(cpu_seconds=2, wall_seconds=2, output=1 << 16)
    assert session.run(busy.replace("0.2", "0.8"), longer).status == "ok"
    assert session.run(busy.replace("0.2", "0.8")).status == "timeout"


def test_nothing_counts_while_nothing_is_asked(box: Sandbox) -> None:
    with Session(Limits(cpu_seconds=0.5, wall_seconds=0.1), box=box) as session:
        session.run("x = 1")
        waited = threading.Event()
        assert not waited.wait(0.5)
        assert session.run("x").value == "1"


def test_what_is_ended_from_outside_is_no_result_of_the_run(box: Sandbox) -> None:
    before = set(descendants(os.getpid()))
    with Session(Limits(cpu_seconds=20, wall_seconds=20), box=box) as session:
        session.run("x = 1")
        mine = set(descendants(os.getpid())) - before

        def kill() -> None:
            # The interpreter itself is the one that nothing is below.
            [last] = [pid for pid in mine if not descendants(pid)]
            os.kill(last, signal.SIGKILL)

        threading.Timer(0.3, kill).start()
        ended = session.run("import time; time.sleep(20)")
        assert (ended.status, ended.lost) == ("infrastructure", True) and ended.failed_here
        assert session.run("x").error.startswith("NameError")
        mine = set(descendants(os.getpid())) - before
        for pid in mine:
            os.kill(pid, signal.SIGKILL)
        gone = session.run("1")
        assert gone.status == "infrastructure" and gone.lost
        assert session.run("1 + 1").value == "2"


def test_sessions_are_apart_and_take_places_only_while_they_run() -> None:
    with Sandbox(1) as box, Session(LIMITS, box=box) as one, Session(LIMITS, box=box) as two:
        one.run("x = 'one'\nopen('mine', 'w').write('one')")
        two.run("x = 'two'")
        assert (one.run("x").value, two.run("x").value) == ("'one'", "'two'")
        assert two.run(
            "import os\nos.path.exists('mine'), len([p for p in os.listdir('/proc') if p.isdigit()])"
        ).value == ("(False, 1)")
        # The only place is free for others.
        assert box.run(Program("print(1)")).stdout == b"1\n"


def test_runs_of_many_sessions_at_a_time(box: Sandbox) -> None:
    def work(number: int) -> list[str | None]:
        with Session(LIMITS, box=box) as session:
            session.run(f"x = {number}")
            return [session.run("x += 1\nx").value for _ in range(5)]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(work, range(8)))
    assert found == [[str(n + k) for k in range(1, 6)] for n in range(8)]


def test_runs_of_one_session_from_many_threads(session: Session) -> None:
    session.run("xs = []")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: session.run(f"xs.append({n})"), range(20)))
    assert session.run("sorted(xs) == list(range(20))").value == "True"


def test_files_and_packages(box: Sandbox) -> None:
    pytest.importorskip("numpy")
    with Session(LIMITS, ("numpy",), {"data/a.txt": "7"}, box) as session:
        assert session.run("import numpy as np\nint(np.int64(open('data/a.txt').read()) + 1)").value == "8"


def test_a_closed_session_leaves_nothing_and_runs_nothing(box: Sandbox) -> None:
    others = set(descendants(os.getpid()))
    descriptors = len(os.listdir("/proc/self/fd"))
    session = Session(LIMITS, box=box)
    session.run("x = 1")
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run("x")
    assert [line for line in processes_below(os.getpid(), others) if line] == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_session_is_confined_like_a_program(session: Session) -> None:
    for source in (
        "open('/etc/passwd').read()",
        "import socket; socket.socket()",
        "open('/usr/lib/x', 'w')",
        f"open('/proc/{os.getpid()}/environ').read()",
    ):
        assert session.run(source).error
    bomb = session.run("import os\nfor _ in range(10000):\n    if not os.fork():\n        while True: pass")
    assert bomb.status in ("error", "timeout", "memory")
    assert session.run("1").value == "1" or bomb.lost


def test_a_thread_that_computes_on_between_runs_is_ended(session: Session) -> None:
    burn = "import threading\ndef burn():\n    while True: pass\n"
    session.run(burn + "threading.Thread(target=burn, daemon=True).start()")
    assert session._live is not None
    poll = select.poll()
    poll.register(session._live.worker.socket, select.POLLIN)
    assert poll.poll(20_000)
    ended = session.run("1")
    assert ended.lost and ended.status == "timeout"
