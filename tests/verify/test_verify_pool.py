"""Any verifier in worker processes: the same verdicts, and what goes wrong costs one check."""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.types import Task, Verdict
from assay.verify import KindVerifier
from assay.verify.isolate.pool import CLOSED, VerifierPool
from assay.verify.text.exact import Exact

CHECKS = """
    import os, subprocess, sys, time
    from assay.types import Verdict
    from assay.verify.isolate.workers import Workers

    def judge(task, response):
        if response == "spin":
            while True: pass
        if response == "sleep": time.sleep(100)
        if response == "grow":
            held = []
            while True: held.append(bytearray(1 << 26))
        if response == "die": os.abort()
        if response == "leave": sys.exit(3)
        if response == "raise": raise ValueError("no such luck")
        if response == "odd": return "right"
        if response == "nan": return Verdict(float("nan"), True)
        if response == "print": print("noise", flush=True)
        if response == "pid": return Verdict.wrong(str(os.getpid()))
        if response == "write":
            with open(task.reference, "w") as file: file.write("written")
        if response.startswith("nap"): time.sleep(0.002)
        return Verdict(1.0 if response == task.reference else 0.25, response == task.reference, {"all": None}, response)

    INNER = Workers("checks_for_a_pool", size=1, memory=8 << 30)

    def twice(x):
        if x == "spin":
            while True: pass
        return [2 * x, os.getpid()]

    def nested(task, response):
        made = INNER.call("twice", response, seconds=0.2, wall=60)
        if not isinstance(made, list): return Verdict.abstain(made.reason)
        return Verdict.wrong(f"{made[0]} {os.getpid()} {made[1]}")

    class Counting:
        made = 0
        def __init__(self, start: int = 0): Counting.made += 1; self.calls = start
        def __call__(self, task, response):
            self.calls += 1
            return Verdict.wrong(f"{Counting.made} {self.calls}")
"""


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("checks")
    (folder / "checks_for_a_pool.py").write_text(textwrap.dedent(CHECKS))
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def task(i: int = 0, reference: object = "5", kind: str = "exact") -> Task:
    return Task(f"t{i}", "a question", reference, kind)


def test_it_says_what_the_verifier_says() -> None:
    pairs = [(task(i, str(i)), f"The answer is {i + i % 2} \ud800\0") for i in range(700)]
    pairs += [(Task("w", "p", None), "x"), (task(), "\u2028" * 10), (task(), "")]
    wanted = [Exact()(*pair) for pair in pairs]
    with VerifierPool("exact", 2) as pool:
        assert list(pool.map(pairs)) == wanted
        assert [pool(*pair) for pair in pairs[-8:]] == wanted[-8:]
        assert [f.result() for f in [pool.submit(*pair) for pair in pairs]] == wanted


@pytest.mark.parametrize(
    "spec", [{"name": "exact", "numeric": False}, Exact(numeric=False), KindVerifier({"exact": Exact(numeric=False)})]
)
def test_options_instances_and_kinds_reach_the_processes(spec: object) -> None:
    with VerifierPool(spec, 1) as pool:
        assert pool(task(reference="1/2"), "0.5").passed is False
        assert pool(task(reference="1/2"), "1/2").passed is True


def test_without_a_verifier_the_kind_decides() -> None:
    with VerifierPool(workers=1) as pool:
        assert pool(task(kind="number"), "is 5 it").passed is True
        assert pool(task(kind="exact"), "is 5 it").passed is False
        with pytest.raises(UsageError, match="did you mean 'number'"):
            pool(task(kind="nunber"), "5")


def test_what_goes_wrong_costs_one_check(checks: Path) -> None:
    bad = {
        "spin": "took longer than 2 s",
        "grow": "ran out of memory",
        "die": "ended by SIGABRT",
        "leave": "SystemExit: 3",
        "raise": "ValueError: no such luck",
        "odd": "returned a str, not a Verdict",
        "nan": "score nan",
    }
    responses = [r for k in bad for r in ["5", "4", k, "print", "5"]]
    with VerifierPool("checks_for_a_pool:judge", 2, seconds=2.0, memory=600 << 20) as pool:
        verdicts = dict(enumerate(pool.map((task(i), r) for i, r in enumerate(responses))))
        assert len(verdicts) == len(responses)
        for i, response in enumerate(responses):
            if response in bad:
                assert verdicts[i].passed is None
                assert bad[response] in verdicts[i].feedback
            else:
                assert verdicts[i] == Verdict(
                    1.0 if response == "5" else 0.25, response == "5", {"all": None}, response
                )
        # A process that ran out of memory, or died, is not used again.
        pids = {pool(task(), "pid").feedback for _ in range(3)}
        assert len(pids) == 1


def test_the_wall_clock_and_the_start_of_the_clock(checks: Path) -> None:
    with VerifierPool("checks_for_a_pool:judge", 1, wall=0.4) as pool:
        # Twelve checks that wait behind a hang, longer than a check may take, are not late.
        futures = [pool.submit(task(), r) for r in ["sleep", *["nap"] * 12]]
        assert "took longer than 0.4 s by the wall clock" in futures[0].result().feedback
        assert all(f.result().passed is False for f in futures[1:])


def test_the_verifier_is_made_once_in_a_process(checks: Path) -> None:
    with VerifierPool({"name": "checks_for_a_pool:Counting", "start": 10}, 1) as pool:
        assert [v.feedback for v in pool.map((task(), "x") for _ in range(3))] == ["1 11", "1 12", "1 13"]


def test_processes_within_processes_and_files(checks: Path, tmp_path: Path) -> None:
    with VerifierPool("checks_for_a_pool:nested", 1) as pool:
        words = pool(task(), "ab").feedback.split()
        assert words[0] == "abab"
        assert len({words[1], words[2], str(os.getpid())}) == 3
        assert "took longer than 0.2 s" in pool(task(), "spin").feedback
        words = pool(task(), "ab").feedback.split()
        grandchild = int(words[2])
        assert alive(grandchild)
    ended(grandchild)
    with VerifierPool("checks_for_a_pool:judge", 1) as pool:
        pool(task(reference=str(tmp_path / "file")), "write")
        assert (tmp_path / "file").read_text() == "written"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(*pids: int) -> None:
    until = time.monotonic() + 10
    while any(alive(p) for p in pids):
        assert time.monotonic() < until, f"{pids} go on"
        time.sleep(0.01)


def test_no_process_outlives_a_parent_that_is_killed(checks: Path) -> None:
    script = """
        from assay.types import Task
        from assay.verify.isolate.pool import VerifierPool
        if __name__ == "__main__":
            print(VerifierPool("checks_for_a_pool:nested", 1)(Task("t", "q"), "x").feedback, flush=True)
            input()
    """
    (checks / "parent.py").write_text(textwrap.dedent(script))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        [sys.executable, str(checks / "parent.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        pids = [int(p) for p in parent.stdout.readline().split()[1:]]
        assert len(pids) == 2 and all(alive(p) for p in pids)
        parent.kill()
    ended(*pids)


def test_a_verifier_of_the_main_script(tmp_path: Path) -> None:
    script = """
        from dataclasses import dataclass
        from assay.registry import part
        from assay.types import Task, Verdict
        from assay.verify.isolate.pool import VerifierPool
        @part("verify", "loud")
        @dataclass(frozen=True, slots=True)
        class Loud:
            shout: str = "!"
            def __call__(self, task, response):
                return Verdict.right() if response.endswith(self.shout) else Verdict.wrong()
        def check(task, response): return Verdict.right("by hand")
        if __name__ == "__main__":
            for spec in (check, Loud("?"), {"name": "loud", "shout": "?"}):
                with VerifierPool(spec, 1) as pool: print(pool(Task("t", "q"), "what?"))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout == "right: by hand\nright\nright\n", done.stderr


@pytest.mark.slow
def test_killing_processes_at_random_loses_nothing_and_makes_nothing_wrong(checks: Path) -> None:
    chance, killed, verdicts = random.Random(0), 0, []
    responses = [f"nap {i}" if i % 3 else "5" for i in range(2000)]
    with VerifierPool("checks_for_a_pool:judge", 2) as pool:
        for verdict in pool.map((task(i), r) for i, r in enumerate(responses)):
            verdicts.append(verdict)
            busy = sorted(p.process.pid for p in pool.workers._busy.copy())
            if busy and chance.random() < 0.005:
                os.kill(chance.choice(busy), signal.SIGKILL)
                killed += 1
    assert len(verdicts) == 2000
    abstained = [v for v in verdicts if v.passed is None]
    assert all("SIGKILL" in v.feedback or "no worker process" in v.feedback for v in abstained)
    # A kill costs one check, if it strikes one.
    assert len(abstained) <= killed
    assert killed
    assert len(abstained) < 20
    for response, verdict in zip(responses, verdicts, strict=True):
        assert verdict.passed in (None, response == "5")
        assert verdict.passed is None or verdict.feedback == response


def test_it_reads_a_bounded_way_ahead_and_may_be_left(checks: Path) -> None:
    read = []
    with VerifierPool("none", 2) as pool:
        pairs = ((read.append(i) or task(i), "x") for i in itertools.count())
        verdicts = pool.map(pairs, ahead=40)
        taken = list(itertools.islice(verdicts, 100))
        assert len(taken) == 100
        assert 100 <= len(read) <= 141
        verdicts.close()
    with VerifierPool("none", 1) as pool:
        # What comes later than that keeps nobody waiting for the verdicts before it.
        gate = threading.Event()

        def slow() -> Iterator[tuple[Task, str]]:
            for i in range(30):
                yield task(i), "x"
            assert gate.wait(30)
            yield task(), "x"

        seen = 0
        for _ in pool.map(slow(), ahead=10):
            seen += 1
            gate.set()
        assert seen == 31


def test_closing_ends_what_is_under_way_as_abstentions(checks: Path) -> None:
    pool = VerifierPool("checks_for_a_pool:judge", 1)
    assert pool(task(), "5").passed
    futures = [pool.submit(task(), r) for r in ("sleep", "5", "5")]
    while not pool.workers._busy:
        time.sleep(0.001)
    pool.close()
    assert [f.result(timeout=10) for f in futures] == [CLOSED] * 3
    assert pool(task(), "5").passed
    pool.close()


@pytest.mark.slow
def test_memory_of_the_host_does_not_grow() -> None:
    def rows(n: int) -> Iterator[tuple[Task, str]]:
        return ((task(i), "x" * 2000) for i in range(n))

    with VerifierPool("none", 2) as pool:
        assert sum(1 for _ in pool.map(rows(6000))) == 6000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert sum(1 for _ in pool.map(rows(30000))) == 30000
    # 30,000 responses are 60 MB, and twice that pickled.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 15_000


def test_mistakes_are_said_when_it_is_made(checks: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    for spec, words in [
        ("exatc", "did you mean 'exact'"),
        ({"name": "exact", "numerc": 1}, "did you mean 'numeric'"),
        (lambda t, r: Verdict.right(), "cannot be sent to a worker process"),
        (5, "not a int"),
        ("checks_for_a_pool:juge", "did you mean 'judge'"),
        ("no_such_module:judge", "No module named 'no_such_module'; write package.module:attribute"),
        (f"{tmp_path}/none.py:x", "no file"),
        (f"{tmp_path}/broken.py:x", "ZeroDivisionError"),
        ({"name": "checks_for_a_pool:judge", "strict": True}, "has no option 'strict'"),
        ({"name": "checks_for_a_pool:Counting", "start": "x"}, "start = 'x'"),
    ]:
        with pytest.raises(UsageError, match=words.replace("(", r"\(")):
            VerifierPool(spec)
    with pytest.raises(UsageError, match="0 workers"):
        VerifierPool("exact", 0)
    with pytest.raises(UsageError, match="above 0"):
        VerifierPool("exact", seconds=0)
