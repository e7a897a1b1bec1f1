"""Attempts that are judged one by one: what is told of each, how it ends, and the papers' rewards of turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from acted import gold_passes, idle_fails, played, repeats
from running import metrics, run

from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.environments.attempts import Attempts
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import say
from assay.errors import UsageError
from assay.method import make_method
from assay.types import Ask, Episode, Group, Message, Task, Turn, Verdict

STACK = {"name": "stack", "cases": 2, "tests": 4}


def said(step: Any) -> str:
    [message] = step.observation.messages
    return str(message["content"])


def test_a_program_is_mended() -> None:
    world = Attempts(STACK, most=3)
    task = Task("t", "x+y", {"tests": [[{"x": 1, "y": 2}, 3], [{"x": 2, "y": 2}, 4], [{"x": 0, "y": 1}, 1]]}, "stack")
    assert world.reset(task, 0).messages == (Message(role="user", content="x+y"),)
    first, second = world.step(say("xy*")), world.step(say("xy+"))
    assert first.verdict == Verdict(0.0, False, first.verdict.parts, first.verdict.feedback)
    assert first.verdict.parts == {"test 0": 0, "test 1": 1, "test 2": 0}
    assert said(first) == "not right: test 0, test 2 failed (2 attempts left)" and not first.terminated
    assert second.terminated and second.verdict.passed and said(second) == "right"
    assert world.verdict() == second.verdict and world.state_json()["made"] == 2
    with pytest.raises(RuntimeError, match="reset"):
        world.step(say("xy+"))


@pytest.mark.parametrize(
    ("tell", "expected"),
    [
        ("passed", "not right (1 attempt left)"),
        ("parts", "not right: test 0 failed (1 attempt left)"),
        ("feedback", "not right: 'xy*' with x = 1, y = 2: gives 2, not 3 (1 attempt left)"),
    ],
)
def test_what_is_told(tell: Any, expected: str) -> None:
    world = Attempts(STACK, most=2, tell=tell)
    world.reset(Task("t", "x+y", {"tests": [[{"x": 1, "y": 2}, 3]]}, "stack"), 0)
    assert said(world.step(say("xy*"))) == expected
    last = world.step(say("xy-"))
    assert last.terminated and not world.verdict().passed


def test_a_verifier_that_cannot_tell_is_no_failure() -> None:
    answers = iter([Verdict.abstain("away"), Verdict.abstain("away")])
    world = Attempts(verifier=lambda task, response: next(answers), most=2)
    world.reset(world.tasks()[0], 0)
    step = world.step(say("1"))
    assert said(step) == "this attempt could not be judged" and not step.terminated
    assert world.step(say("1")).terminated and world.verdict().passed is None
    assert Attempts().verdict().passed is False, "nothing was attempted"


def test_as_every_environment() -> None:
    tasks = Attempts().tasks()
    plans = gold_passes(Attempts, tasks, 20)
    idle_fails(Attempts, tasks, n=10)
    repeats(Attempts, tasks, plans)
    spent = played(Attempts(most=2), tasks[0], [say("no")] * 5)
    assert len(spent) == 4 and not spent[-1].passed
    with pytest.raises(UsageError, match="has no solution"):
        Attempts().gold()
    with pytest.raises(UsageError, match="most 0"):
        Attempts(most=0)


@pytest.mark.slow
def test_the_audit_passes() -> None:
    worlds = Worlds("attempts", workers=1)
    try:
        source = Attempts().tasks()
        assert all(f.passed and f.of for f in audit_environment(worlds, [source[i] for i in range(3)]))
    finally:
        worlds.close()


def test_turns_of_repair_are_what_weighted_tests_read(tmp_path: Path) -> None:
    """S001 in the real loop: every attempt has its tests, and the local reward stands where its turn ends."""
    world = {"name": "attempts", "source": STACK, "most": 2}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 160}},
        tasks={"source": STACK, "eval_share": 0.2},
        warmup={"steps": 6, "batch": 8},
        method={"name": "S001", "reward": None, "rollout": {"name": "multi_turn", "environment": world}},
        rollout={"prompts": 4, "group": 8, "max_tokens": 12, "max_rows": 64},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(rows) == 2 and all(1 < m["environment/turns"] <= 2 for m in rows)


def test_attempts_are_credited_one_by_one() -> None:
    """Played by hand: the second attempt of the first episode passes one test more than its first."""
    task = Task("t", "x+y", {"tests": [[{"x": 1, "y": 2}, 3], [{"x": 2, "y": 2}, 4]]}, "stack")
    episodes, verdicts = [], []
    for programs in (("xx+", "xy+"), ("xx", "xx")):
        world, turns = Attempts(STACK, most=2), []
        world.reset(task, 0)
        for k, program in enumerate(programs):
            step = world.step(say(program))
            turns.append(Turn(k, 3 * k, 3 * k + 2, verdict=step.verdict, text=program))
        zeros, mask = np.zeros(5, dtype=np.int64), np.array([True, True, False, True, True])
        episodes.append(Episode(zeros[:0], zeros, mask, None, "", "eos", turns=tuple(turns)))
        verdicts.append(world.verdict())
    batch = Batch.from_groups([Group(Ask(task, 2), tuple(episodes), tuple(verdicts))], torch.float64)
    got = make_method("S001").value(batch).advantages
    assert got[0, 3] > got[0, 0] > got[1, 0] == got[1, 3] and not got[:, 2].any()
    assert got[0, 0] == got[0, 1] and batch.reward_terms["outcome"].tolist() == [1, 0]
