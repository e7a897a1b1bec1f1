"""Environments in processes: what hangs or dies costs its own episode, and nothing is left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from assay.environments.base import Action, EnvironmentFailure, Guided, Observation, Oracle, Snapshots, Step
from assay.environments.hosted.host import START_BY
from assay.environments.hosted.worlds import Worlds
from assay.environments.played import Played
from assay.environments.tools import say
from assay.errors import UsageError
from assay.types import Task, Verdict

FILE = Path(__file__).with_name("hosted_world.py")
WORLD = f"{FILE}:World"
TASKS = [Task(str(i), f"world {i}") for i in range(16)]


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Worlds]:
    made = Worlds({"name": WORLD, "folder": str(tmp_path)}, workers=2, seconds=5)
    yield made
    made.close()


def play(worlds: Worlds, words: list[str], task: Task = TASKS[0], attempts: int = 2) -> Verdict:
    """Play the words; what fails for good abstains with the reason."""
    played = Played(worlds, task, 0, attempts)
    try:
        played.reset()
        for word in words:
            played.step(say(word))
        return played.verdict()
    except EnvironmentFailure as error:
        return Verdict.abstain(str(error), "infrastructure")
    finally:
        played.close()


def together(worlds: Worlds, plays: list[list[str]]) -> list[Verdict]:
    with ThreadPoolExecutor(len(plays)) as beside:
        return list(beside.map(lambda words: play(worlds, words), plays))


class Here:
    """An environment here, which ends with its first step."""

    def reset(self, task: Task, seed: int) -> Observation:
        return Observation(())

    def step(self, action: Action) -> Step:
        return Step(Observation(()), terminated=True)

    def verdict(self) -> Verdict:
        return Verdict.right()


FINE = ["four", "four", "four"]


def test_it_is_the_world_it_would_be_here(worlds: Worlds) -> None:
    here = Worlds(WORLD)
    assert play(worlds, FINE) == play(here, FINE) == Verdict(12 / 20, False)
    world = worlds()
    assert isinstance(world, Snapshots) and not isinstance(world, Oracle | Guided)
    shown = world.reset(TASKS[0], 0)
    assert shown.messages[0]["content"] == "world 0" and shown.state == "0"
    world.step(say("four"))
    kept = world.snapshot()
    assert world.step(say("four")).observation.state == "8"
    world.restore(kept)
    assert world.step(say("fives")).observation.state == "9"
    assert world.tasks()[3] == Task("3", "world 3")
    world.close()
    world.close()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        pytest.param("hang", "longer than", marks=pytest.mark.slow),
        pytest.param("freeze", "longer than", marks=pytest.mark.slow),
        pytest.param("die", "ended", marks=pytest.mark.slow),
        ("kill", "ended"),
    ],
)
def test_what_takes_its_process_with_it_costs_one_episode(
    worlds: Worlds, word: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.environments.hosted.host.PATIENCE", 1.0)
    plays = [FINE] * 12
    plays[5] = ["four", word]
    got = together(worlds, plays)
    assert got[5].passed is None and got[5].fault == "infrastructure" and reason in got[5].feedback
    assert [v for i, v in enumerate(got) if i != 5] == [Verdict(12 / 20, False)] * 11


@pytest.mark.parametrize(
    "word", [*(pytest.param(word, marks=pytest.mark.slow) for word in ("hang", "die", "exit")), "kill", "raise"]
)
def test_what_goes_wrong_once_is_played_again(worlds: Worlds, word: str) -> None:
    plays = [FINE] * 6
    plays[2] = ["four", f"{word} {word}", "four"]
    got = together(worlds, plays)
    assert got[2] == Verdict((8 + len(word)) / 20, False)
    assert [v for i, v in enumerate(got) if i != 2] == [Verdict(12 / 20, False)] * 5


@pytest.mark.parametrize(
    ("word", "reason"), [("raise", "ValueError: broken"), ("exit", "SystemExit"), ("odd", "TypeError")]
)
def test_what_it_raises_is_told(worlds: Worlds, word: str, reason: str) -> None:
    found = play(worlds, ["four", word])
    assert found.passed is None and reason in found.feedback
    assert play(worlds, FINE).passed is False


def test_what_is_no_step_is_a_failure() -> None:
    worlds = Worlds(f"{FILE}:Odd", workers=1)
    assert "step returned what it may not" in play(worlds, ["four"]).feedback
    worlds.close()


@pytest.mark.parametrize("word", ["hang", "freeze"])
def test_what_is_late_is_asked_of_another_too(worlds: Worlds, word: str) -> None:
    worlds.start()
    played = Played(worlds, TASKS[0], 0, attempts=2, patience=0.3)
    played.reset()
    begun = time.monotonic()
    steps = [played.step(say(text)) for text in ("four", f"{word} once", "four")]
    assert time.monotonic() - begun < 4, "the limit is 5 seconds"
    # Nothing is other than it would have been.
    totals = [int(step.observation.state or 0) for step in steps]
    assert totals == [4, 4 + len(word), 8 + len(word)] and played.attempts == 1
    assert played.verdict() == Verdict(totals[-1] / 20, False)
    played.close()


def test_who_answers_after_all_is_taken_and_a_second_one_that_fails_is_none(worlds: Worlds, tmp_path: Path) -> None:
    slow = Worlds({"name": WORLD, "latency": 0.6}, workers=2, seconds=5)
    worlds.start()
    try:
        slow.start()
        played = Played(slow, TASKS[0], 0, attempts=2, patience=0.2)
        played.reset()
        # The other has to come to the same place first, which takes as long: who was asked first answers first.
        assert [played.step(say(text)).observation.state for text in ("four", "four")] == ["4", "8"]
        assert played.attempts == 1 and played.seconds > 1.0
        played.close()
    finally:
        slow.close()
    # Two that hang: both take the limit, and then nobody is left.
    lost = Played(worlds, TASKS[0], 0, attempts=2, patience=0.2)
    lost.reset()
    with pytest.raises(EnvironmentFailure, match="took longer than 5 s"):
        lost.step(say("hang"))
    alone = Played(worlds, TASKS[0], 0, attempts=1, patience=0.2)
    alone.reset()
    with pytest.raises(EnvironmentFailure, match="ValueError: broken"):
        alone.step(say("raise"))


def test_where_others_are_late_too_a_further_one_is_asked() -> None:
    """Of four environments the first hangs, the second breaks, the third hangs, and the fourth answers."""
    go_on, made, closed = threading.Event(), list[str](), list[str]()

    class Odd(Here):
        def __init__(self) -> None:
            made.append(("hangs", "breaks", "hangs", "answers")[len(made)])
            self.kind, self.number = made[-1], len(made)

        def step(self, action: Action) -> Step:
            if self.kind == "hangs":
                go_on.wait(60)
            if self.kind == "breaks":
                raise OSError("broken")
            return super().step(action)

        def close(self) -> None:
            closed.append(f"{self.number} {self.kind}")

    played = Played(Odd, TASKS[0], 0, attempts=4, patience=0.1)
    played.reset()
    begun = time.monotonic()
    assert played.step(say("four")).terminated and time.monotonic() - begun < 30
    assert made == ["hangs", "breaks", "hangs", "answers"] and played.attempts == 1
    assert played.world.kind == "answers" and closed == ["2 breaks"]  # type: ignore[union-attr]
    go_on.set()
    while len(closed) < 3:
        time.sleep(0.01)
    assert sorted(closed) == ["1 hangs", "2 breaks", "3 hangs"], "who was late is closed once it has answered"


def test_a_spoilt_process_ends_when_the_others_have_left(worlds: Worlds) -> None:
    one = Played(worlds, TASKS[0], 0)
    one.reset()
    assert one.world is not None
    host = one.world.host  # type: ignore[attr-defined]
    others = [Played(worlds, task, 0) for task in TASKS[:2]]
    assert all(other.reset() for other in others)
    with pytest.raises(EnvironmentFailure, match="longer than"):
        Played(worlds, TASKS[0], 0, 1)._tried(lambda _: host.ask(one.world.episode, "step", (say("hang"),), 0.5))  # type: ignore[union-attr]
    one.close()
    assert not host.why and host.spoilt
    # It hosts nobody new, and those in it go on.
    assert [o.step(say("four")).observation.state for o in others] == ["4", "4"]
    assert play(worlds, FINE).passed is False
    for other in others:
        other.close()
    assert host.why and host.process.returncode is not None


def test_a_process_killed_from_outside_costs_nothing(worlds: Worlds) -> None:
    played = [Played(worlds, task, 0) for task in TASKS[:8]]
    for episode in played:
        episode.reset()
        episode.step(say("four"))
    for host in worlds._hosts:
        os.kill(host.process.pid, 9)
        host.process.wait()
    assert [p.step(say("fives")).observation.state for p in played] == ["9"] * 8
    assert [p.verdict() for p in played] == [Verdict(9 / 20, False)] * 8
    assert all(p.seconds > 0 for p in played)


def test_what_cannot_be_made_is_said_at_once() -> None:
    with pytest.raises(UsageError, match="no option 'folders'"):
        Worlds({"name": WORLD, "folders": "x"}, workers=2)
    with pytest.raises(RuntimeError, match="not today"):
        Worlds({"name": WORLD, "refuses": "not today"}, workers=2)
    with pytest.raises(UsageError, match="workers -1"):
        Worlds(WORLD, workers=-1)
    worlds = Worlds(WORLD, workers=1)
    assert worlds._what is not None
    worlds._what[2]["refuses"] = "not there"
    with pytest.raises(UsageError, match="could not be started: RuntimeError: not there; mend that, or set workers"):
        worlds.start()


def test_nothing_is_left_behind() -> None:
    before = set(os.listdir("/proc/self/fd"))
    worlds = Worlds(WORLD, workers=2, seconds=30)
    for _ in range(3):
        assert together(worlds, [FINE] * 8) == [Verdict(12 / 20, False)] * 8
    hosts = list(worlds._hosts)
    assert len(hosts) == 2 and all(not host.episodes for host in hosts)
    worlds.close()
    assert all(host.process.returncode is not None for host in hosts)
    until(lambda: set(os.listdir("/proc/self/fd")) <= before)
    # And once it is forgotten, without being closed.
    worlds = Worlds(WORLD, workers=1)
    worlds.start()
    [host] = worlds._hosts
    del worlds
    until(lambda: host.process.poll() is not None)


def test_it_ends_with_who_asked() -> None:
    script = (
        "import os\nfrom assay.environments.hosted.worlds import Worlds\n"
        f"worlds = Worlds({WORLD!r}, workers=1)\nworlds.start()\n"
        "print(worlds._hosts[0].process.pid, flush=True)\nos._exit(0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    until(lambda: not alive(int(ran.stdout)))


def test_it_ends_without_a_word_where_its_answers_are_not_read() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-P", "-c", START_BY.format(sys.path), str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True)
    connection = Connection(ours.detach())
    connection.send((([], None), "guess", {"most": 9}))
    assert b"methods" in connection.recv_bytes()
    connection.send((0, 0, "ping", ()))
    assert connection.poll(60)
    connection.close()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds: Any, seconds: float = 60) -> None:
    """Wait for what takes a moment."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
