"""Packages with a bug: what is broken, what tests tell, what is hidden, and what editing may do."""

from __future__ import annotations

import ast
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from acted import comes_back, ends, gold_passes, idle_fails, played, repeats, share
from sandbox.support import needs_sandbox

from assay.audit.environment import audit_environment
from assay.environments.base import Action, EnvironmentFailure
from assay.environments.hosted.worlds import Worlds
from assay.environments.repository import environment, packages
from assay.environments.repository.bugs import bugs
from assay.environments.repository.cases import CASES, draw_case
from assay.environments.repository.environment import Repository
from assay.environments.repository.packages import make_package, same, source_of
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.sandbox import CallOutcome, Outcome, Sandbox, SandboxUnavailable
from assay.tasks.seeded import generator

pytestmark = needs_sandbox


def make(**options: Any) -> Repository:
    return Repository(**options)


def shown(world: Repository, name: str, **arguments: Any) -> str:
    return world.step(call(name, **arguments)).observation.messages[0]["content"]


def test_the_plan_passes_and_repeats() -> None:
    tasks = make().tasks()
    plans = gold_passes(make, tasks, 12)
    repeats(make, tasks, plans[:2])
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=3)
    comes_back(make, tasks, plans[:2])


def test_bugs_by_hand() -> None:
    source = 'S = "é"; T = "é"\n\n\ndef f(a, b):\n    # é\n    if a < b and not a:\n        b += max(a, 2)\n'
    source += "    return (a + b) * 1\n"
    found = {(bug.kind, source[bug.start : bug.end], bug.text) for bug in bugs(source)}
    assert found == {
        ("a branch is missing", "if a < b and not a:\n        b += max(a, 2)", "pass"),
        ("a condition is wrong", "a < b and not a", "a < b or not a"),
        ("a comparison is wrong", "a < b", "a <= b"),
        ("a condition is wrong", "not a", "a"),
        ("a step is missing", "b += max(a, 2)", "pass"),
        ("arguments are swapped", "max(a, 2)", "max(2, a)"),
        ("off by one", "2", "3"),
        ("off by one", "2", "1"),
        ("an operator is wrong", "(a + b) * 1", "a + b + 1"),
        ("an operator is wrong", "a + b", "a - b"),
        ("off by one", "1", "2"),
        ("off by one", "1", "0"),
    }
    assert {bug.function for bug in bugs(source)} == {"f"}
    assert {bug.function for bug in bugs("class A:\n    def g(self):\n        return 1\nx = 2\n")} == {"A.g"}


@pytest.mark.parametrize("module", list(CASES))
def test_every_bug_is_a_program(module: str) -> None:
    source = source_of(module)
    every = bugs(source)
    assert len(every) > 5
    for bug in every:
        broken = bug.put(source)
        assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(source))
        assert len(broken) - len(source) == len(bug.text) - (bug.end - bug.start)


@pytest.mark.parametrize("module", list(CASES))
def test_the_modules_do_what_their_cases_ask(module: str) -> None:
    """Every function is asked for, and no case goes wrong in another way than its module says."""
    space: dict[str, Any] = {}
    exec(compile(source_of(module), module, "exec"), space)
    rng = np.random.default_rng(0)
    functions = {n.name for n in ast.parse(source_of(module)).body if isinstance(n, ast.FunctionDef)}
    assert functions == set(CASES[module])
    for function in functions:
        seen = set()
        for _ in range(60):
            try:
                seen.add(repr(eval(draw_case(module, function, rng), {module: SimpleNamespace(**space)})))
            except ValueError:
                seen.add("raised")
        assert len(seen) > 1


def test_what_a_package_is() -> None:
    kinds: Counter[str] = Counter()
    for index in range(12):
        package = make_package(5, index, 3, 6, 2)
        kinds[package.bug.kind] += 1
        assert package.files[package.path] == package.bug.put(package.whole) != package.whole
        assert 2 <= package.fails <= len(package.tests) // 2
        text = "".join(package.files.values())
        assert not any(expression in text for expression, _ in package.tests[: package.fails])
        assert not same(package.wrong, package.tests[0][1])
    assert len(kinds) >= 4


def test_the_given_tests_pass_and_hidden_ones_fail() -> None:
    world = make()
    for index in range(3):
        world.reset(world.tasks()[index], 0)
        told = shown(world, "run_tests")
        assert told.endswith("OK") and "Ran " in told and " in " not in told
        assert world.results().count(False) == world.package.fails
        assert not any(world.results()[: world.package.fails])
        [edit, _] = world.gold()
        world.step(edit)
        assert all(world.results()) and shown(world, "run_tests").endswith("OK")


def test_what_was_right_has_to_stay_right() -> None:
    world = make(partial=True)
    world.reset(world.tasks()[0], 0)
    [edit, _] = world.gold()
    world.step(edit)
    path = next(
        p for p in world.package.files if p.startswith(world.package.name) and p != world.package.path and "__" not in p
    )
    world.step(call("write", path=path, content=""))
    verdict = world.verdict()
    assert verdict.passed is False and verdict.parts["fail_to_pass"] == 1.0 > verdict.parts["pass_to_pass"] > 0
    assert verdict.score == pytest.approx(world.results().count(True) / len(world.package.tests))


def test_cheats_do_not_pay() -> None:
    world = make()
    for index in range(2):
        task = world.tasks()[index]
        world.reset(task, 0)
        for attack in world.attacks():
            assert not played(world, task, attack)[-1].passed


def test_tools() -> None:
    world = make(calls=40, seconds=0.5)
    world.reset(world.tasks()[0], 0)
    name, path = world.package.name, world.package.path
    assert path in shown(world, "files") and "tests/test_" in shown(world, "files")
    text = world.package.files[path]
    assert shown(world, "read", path=path, start=3).startswith("   3  ") and f"   1  {text.splitlines()[0]}" in shown(
        world, "read", path=path
    )
    world.step(call("write", path="long.txt", content="x\n" * 300))
    assert "(60 more lines)" in shown(world, "read", path="long.txt", start=121)
    assert shown(world, "read", path="long.txt", start=999) == "(nothing there)"
    assert f"{path}:1: {text.splitlines()[0]}" in shown(world, "search", text=text.splitlines()[0])
    assert shown(world, "search", text="x").endswith(" more)")
    assert shown(world, "search", text="no such text anywhere") == "nothing found"
    assert (
        shown(world, "edit", path="long.txt", old="x\n" * 300, new="y") == "edited"
        and world.space.files["long.txt"] == b"y"
    )
    for wrong, why in (
        (call("edit", path=path, old="return", new=""), "times, not once"),
        (call("edit", path=path, old="", new="x"), "some text"),
        (call("edit", path="none.py", old="x", new="y"), "no file"),
        (call("read", path="../x"), "no file"),
        (call("write", path="../x", content=""), "relative path"),
        (call("write", path="a\ud800", content=""), "no text"),
        (call("write", path="big", content="x" * 3_000_000), "too large"),
        (call("search", text=""), "some text"),
        (call("run_tests", path="none.py"), "no file"),
        (say("done"), "call a tool"),
    ):
        step = world.step(wrong)
        assert not step.valid and why in step.error and not step.terminated
    world.step(
        call(
            "write",
            path=f"tests/test_{name}.py",
            content="import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\n",
        )
    )
    assert "AssertionError: 1 != 2" in shown(world, "run_tests", path=f"tests/test_{name}.py")
    world.step(call("write", path=f"tests/test_{name}.py", content="while True: pass\n"))
    assert "processor time)" in shown(world, "run_tests", path=f"tests/test_{name}.py")
    world.left = 0
    assert "no calls are left" in world.step(call("files")).error and world.step(call("submit")).terminated


def test_a_sandbox_that_fails_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    world.reset(world.tasks()[0], 0)
    gone = Outcome("infrastructure", reason="gone")
    monkeypatch.setattr(Sandbox, "command", lambda *_, **__: gone)
    monkeypatch.setattr(Sandbox, "call", lambda *_: CallOutcome((), gone))
    with pytest.raises(EnvironmentFailure, match="gone"):
        world.step(call("run_tests"))
    with pytest.raises(EnvironmentFailure, match="gone"):
        world.verdict()


def test_options_and_missing_sandboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (
        {"modules": 0},
        {"modules": 9},
        {"hidden": 2},
        {"shown": -1},
        {"calls": 0},
        {"seconds": 0},
        {"seed": -1},
    ):
        with pytest.raises(UsageError, match="repository"):
            make(**wrong)

    class Missing:
        def check(self) -> None:
            raise SandboxUnavailable("running programs needs bubblewrap")

    monkeypatch.setattr(environment, "sandbox", Missing)
    with pytest.raises(UsageError, match="bubblewrap"):
        make()


@pytest.mark.slow
def test_a_bug_of_no_use_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that no test notices, that nearly all notice, or that hangs."""
    rng = generator(0, 0)
    files = {"kit/stats.py": source_of("stats"), "kit/__init__.py": ""}
    for broken in ("def mean(values):\n    while True: pass\n", "raise ImportError\n", source_of("stats") + "\n"):
        bug = type("Bug", (), {"put": lambda _, __, text=broken: text})()
        monkeypatch.setattr(packages, "bugs", lambda _, bug=bug: [bug])
        assert packages._broken("kit", files, ["stats"], 3, rng) is None


def test_same_values_have_the_same_types() -> None:
    assert same((True, [1, (2, "a")]), (True, [1, (2, "a")]))
    assert (
        not same((True, 1), (True, True)) and not same((True, (1,)), (True, [1])) and not same((True, 1), (True, 1.0))
    )
    assert not same((False, "ValueError"), (True, "ValueError")) and not same(None, None)


@pytest.mark.slow
def test_at_random_nothing_is_mended() -> None:
    def policy(world: Repository, seen: Any, rng: np.random.Generator) -> Action:
        if world.left < 16:
            return call("submit")
        return call("edit", path=world.package.path, old=str(rng.choice(["<", "+ 1", "not "])), new="")

    assert share(make, make().tasks(), policy, 4) <= 0.25


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds("repository", 1)
    try:
        findings = list(audit_environment(worlds, [make().tasks()[i] for i in range(2)]))
    finally:
        worlds.close()
    assert "attacks fail" in {f.name for f in findings}
    assert [f for f in findings if not f.passed] == []
