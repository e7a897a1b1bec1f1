"""A package with misspelt names: the checker's facts as rewards of turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from acted import gold_passes, idle_fails, repeats
from sandbox.support import needs_sandbox

from assay.audit.environment import audit_environment
from assay.environments.base import EnvironmentFailure
from assay.environments.hosted.worlds import Worlds
from assay.environments.repository import diagnosed
from assay.environments.repository.diagnosed import Diagnosed, misspelt
from assay.environments.tools import call
from assay.errors import RunError, UsageError
from assay.verify.diagnostics.bundle import replayed

pytest.importorskip("pyflakes")
pytestmark = needs_sandbox


def make(**options: Any) -> Diagnosed:
    return Diagnosed(**options)


def begun(index: int = 0, **options: Any) -> Diagnosed:
    world = make(**options)
    world.reset(world.tasks()[index], 0)
    return world


@pytest.mark.slow
def test_the_plan_passes_and_repeats() -> None:
    tasks = make().tasks()
    assert tasks[0].id.startswith("diagnosed/0/") and "misspelt" in tasks[0].question
    plans = gold_passes(make, tasks, 4)
    repeats(make, tasks, plans[:2])
    idle_fails(make, tasks, n=1)


def test_rewards_of_turns() -> None:
    world = begun(typos=4)
    start = world.errors
    assert start >= 2
    rewards, trace = [], []
    for action in world.gold():
        step = world.step(action)
        assert step.info["safe"] == 1.0 == step.info["sure"] and step.info["after"] == world.errors
        assert step.reward == 0.5 * (step.info["before"] - step.info["after"]) + 0.4
        rewards.append(step.reward)
    trace = world.trace
    assert world.errors == 0 and world.verdict().passed
    assert sum(rewards) - 0.4 * len(rewards) == pytest.approx(0.5 * start)
    assert replayed(trace, world.weights) == rewards
    plain = begun(typos=0, errors=2.0, safe=0.0)
    assert plain.errors == 0 and plain.step(call("write", path="x.py", content="print(y)\n")).reward == -2.0


def test_what_is_refused_is_not_safe() -> None:
    world = begun()
    for action in (
        call("write", path="../out.py", content=""),
        call("edit", path=world.package.path, old="return", new=""),
        call("read", path="/etc/passwd"),
    ):
        before = world.space.digests()
        step = world.step(action)
        assert step.reward == 0.0 and step.info["safe"] == 0.0 and world.space.digests() == before
        assert not step.valid


def test_silence_is_not_paid() -> None:
    world = begun(typos=3)
    start = world.errors
    path = next(d.path for d in world.findings() if d.severity == "error")
    text = world._text(path)
    world.step(call("write", path=path, content=""))
    assert world.errors >= start
    world.step(call("write", path=path, content=text.replace("\n", "  # noqa\n")))
    assert world.errors > start


def test_tools() -> None:
    world = begun(calls=20)
    shown = world.step(call("check")).observation.messages[0]["content"]
    assert "undefined name" in shown and "error" in shown
    path = world.package.path
    assert world.step(call("check", path=path)).valid and not world.step(call("check", path="none.py")).valid
    step = world.step(call("locate", selector=f"{path}@L1:C1"))
    assert step.observation.messages[0]["content"] == f"{path}@L1:C1-L1:C1 (1.00)" and step.info["sure"] == 1.0
    step = world.step(call("locate", selector="nonsense"))
    assert step.reward == pytest.approx(-0.1) and step.info["sure"] == 0.0 and not step.valid
    assert world.step(call("files")).info["sure"] == 1.0
    kept = world.snapshot()
    errors = world.errors
    world.step(call("write", path="x.py", content="print(y)\n"))
    assert world.errors == errors + 1
    world.restore(kept)
    assert world.errors == errors
    clean = begun(typos=0)
    assert " error: " not in clean.step(call("check")).observation.messages[0]["content"]
    clean.space.entries.clear()
    assert clean.step(call("check", path="")).observation.messages[0]["content"].count(" is gone") > 0


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds({"name": "diagnosed", "calls": 6}, 1)
    try:
        findings = list(audit_environment(worlds, [make(calls=6).tasks()[0]]))
    finally:
        worlds.close()
    assert [f for f in findings if not f.passed] == []


def test_names_are_misspelt() -> None:
    source = 'def f(é, b):\n    return "é" + é + b\n'
    found = {misspelt(source, np.random.default_rng(k)) for k in range(20)}
    assert found == {source.replace("+ é", "+ é_"), source.replace("+ b", "+ b_")}
    assert misspelt("def f():\n    return x\n", np.random.default_rng(0)) == "def f():\n    return x\n"


def test_what_fails_and_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({"typos": -1}, {"typos": 21}, {"errors": -1}, {"safe": -1}, {"unsure": -1}, {"modules": 0}):
        with pytest.raises(UsageError):
            make(**wrong)

    def fails(*_: Any) -> None:
        raise RunError("pyflakes failed")

    monkeypatch.setattr(diagnosed, "check", fails)
    with pytest.raises(EnvironmentFailure, match="pyflakes failed"):
        begun()
