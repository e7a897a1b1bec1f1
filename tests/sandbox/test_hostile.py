"""Programs that cheat, escape, exhaust or stay: none is rewarded, none leaves a trace, each is bounded in time."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox import Limits, Program, Sandbox

from .programs import HOSTILE, Hostile
from .support import descendants, needs_sandbox, processes_below

pytestmark = needs_sandbox

MARK = "the-right-" + "answer-is"
LIMITS = Limits(
    cpu_seconds=0.3,
    wall_seconds=1.5,
    memory=256 << 20,
    output=1 << 20,
    file_size=4 << 20,
    disk=16 << 20,
    processes=16,
    stack=8 << 20,
)
INPUTS = [3, 4, 10]
STDIN = "".join(f"{n}\n" for n in INPUTS)


def right(n: int) -> str:
    return f"{MARK}-{n * n + 7}"


HONEST = 'def solve(n): return f"the-right-answer-is-{n * n + 7}"\n'
HONEST_INPUT = HONEST + "import sys\nfor line in sys.stdin: print(solve(int(line)))"


@pytest.fixture(scope="module")
def others() -> set[int]:
    """Processes that tests of other modules keep running in this process."""
    return set(descendants(os.getpid()))


@pytest.fixture(scope="module")
def box(others: set[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    # The answers are about on the host: in its environment, in a file everybody may read, in its memory.
    everybodys = Path("/tmp") / f"assay-answers-{os.getpid()}"
    everybodys.write_text("\n".join(map(right, INPUTS)))
    os.environ["ASSAY_TEST_ANSWERS"] = right(3)
    with Sandbox() as made:
        made.check()
        # Every kind of zygote the programs need is there before descriptors are counted.
        made.run(Program("true", "bash"))
        yield made
        assert passes(made, Hostile("call", HONEST)) == (True, "ok", "")
    del os.environ["ASSAY_TEST_ANSWERS"]
    everybodys.unlink()


def passes(box: Sandbox, one: Hostile) -> tuple[bool, str, str]:
    """Judge as a verifier does; return whether it passes, the status, and what it wrote."""
    program = Program(one.source, one.language)
    if one.mode == "call":
        answered = box.call(program, "solve", [((n,), {}) for n in INPUTS], LIMITS)
        outcome = answered.outcome
        values = [call.value if call.returned else None for call in answered.calls]
        good = outcome.status == "ok" and values == [right(n) for n in INPUTS]
    else:
        outcome = box.run(program, STDIN, LIMITS)
        good = outcome.status == "ok" and outcome.stdout.decode("utf-8", "replace").split() == [
            right(n) for n in INPUTS
        ]
    return good, outcome.status, (outcome.stdout[:2000] + outcome.stderr[:2000]).decode("utf-8", "replace")


def test_honest_programs_pass(box: Sandbox) -> None:
    # Without this the tests below could hold because nothing ever passes.
    assert passes(box, Hostile("call", HONEST)) == (True, "ok", "")
    assert passes(box, Hostile("input", HONEST_INPUT))[:2] == (True, "ok")


def open_between_programs(box: Sandbox) -> int:
    """Return how many descriptors are open here when there is a zygote of each kind, whatever became of the last."""
    assert box.run(Program("")).status == "ok"
    box.run(Program("true", "bash"))
    return len(os.listdir("/proc/self/fd"))


SLOW = ("children too short to be seen, that nobody waits for",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in HOSTILE]
)
def test_hostile_program(box: Sandbox, name: str) -> None:
    one = HOSTILE[name]
    tool = {"bash": "bash", "c": "gcc", "javascript": "node"}.get(one.language)
    if tool and not shutil.which(tool, path="/usr/bin:/bin"):
        pytest.skip(f"needs {tool}")
    descriptors = open_between_programs(box)
    start = time.monotonic()
    good, status, wrote = passes(box, one)
    took = time.monotonic() - start
    assert not good
    assert status != "infrastructure", wrote
    assert not one.statuses or status in one.statuses, (status, wrote)
    assert "ESCAPED" not in wrote
    # Its own limit is 1.5 s, and at most 28 s where its processor time escapes being counted or the machine is loaded.
    assert took < 40
    # Fewer there may be, where something of an earlier test is closed meanwhile.
    assert open_between_programs(box) <= descriptors
    for left in ("/tmp/assay-hostile", "/tmp/left", "/dev/shm/left", "/dev/left", "/left"):
        assert not os.path.lexists(left)


def test_nothing_of_them_is_left(box: Sandbox, others: set[int]) -> None:
    # A zygote between programs has bubblewrap above it and nothing below.
    alive = processes_below(os.getpid(), others)
    assert not [line for line in alive if "zygote.py" not in line and "bwrap" not in line]
    assert len(alive) <= 2 * 4 * box.size + 4


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 60
