"""A folder and a shell: chores judged by the folder, puzzles by the flag, and what commands may do to either."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from acted import comes_back, ends, gold_passes, idle_fails, played, repeats, share
from sandbox.support import needs_sandbox

from assay.audit.environment import audit_environment
from assay.environments.base import Action, EnvironmentFailure
from assay.environments.hosted.worlds import Worlds
from assay.environments.shell import environment
from assay.environments.shell.chores import CHORES, chores
from assay.environments.shell.environment import Shell, report
from assay.environments.shell.folder import make_folder
from assay.environments.shell.puzzles import PUZZLES, digest, make_puzzle
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.sandbox import Outcome, SandboxUnavailable
from assay.tasks.seeded import generator
from assay.types import Task

pytestmark = needs_sandbox


def make(**options: Any) -> Shell:
    return Shell(**{"kind": "both", "steps": 3, **options})


def test_the_plan_passes_and_repeats() -> None:
    """The goal is computed without a shell, the plan are commands: each is checked by the other."""
    tasks = make().tasks()
    plans = gold_passes(make, tasks, 12)
    repeats(make, tasks, plans[:2])
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=2)
    comes_back(make, tasks, plans[:2])


@pytest.mark.parametrize("kind", list(CHORES))
def test_each_chore_is_what_its_command_does(kind: str) -> None:
    for index in range(3):
        rng = generator(3, index)
        folder = make_folder(rng)
        done = CHORES[kind](folder, rng)
        world = begun_with(folder, done.after, done.command)
        assert world.verdict().passed, (done.text, world.verdict())
        undone = begun_with(folder, done.after, "true")
        assert not undone.verdict().passed


def begun_with(folder: Any, after: Any, command: str) -> Shell:
    world = make()
    world.reset(world.tasks()[0], 0)
    world.space = environment.Workspace(folder, world.limits)
    world.goal = environment.digests(after)
    assert world.step(call("run", command=command)).valid
    return world


def test_chores_follow_on_each_other() -> None:
    for index in range(50):
        rng = generator(4, index)
        folder = make_folder(rng)
        done = chores(folder, 6, rng)
        assert len({c.text for c in done}) == 6
        for before, after in zip([folder, *(c.after for c in done)], [c.after for c in done], strict=False):
            assert before != after


@pytest.mark.parametrize("kind", list(PUZZLES))
def test_a_flag_is_hidden_and_drawn_anew(kind: str) -> None:
    puzzles = [make_puzzle(kind, generator(1, i), generator(2, i, k)) for i in range(3) for k in range(2)]
    assert len({p.digest for p in puzzles}) == 6
    for puzzle in puzzles:
        assert not any(b"flag{" in data for data in puzzle.files.values())


def test_digests() -> None:
    assert digest("flag{demo}").startswith("712ae9571547d65c")
    assert digest(" flag{demo}\n") == digest("flag{demo}")
    assert digest("flag{Demo}").startswith("ff7c375f")


def test_a_flag_of_another_episode_is_wrong() -> None:
    world = make(kind="puzzles")
    for index in range(6):
        task = world.tasks()[index]
        world.reset(task, 0)
        [find, submit] = world.gold()
        assert played(world, task, [find, submit], 0)[-1].passed
        assert played(world, task, [submit], 0)[-1].passed
        assert not played(world, task, [find, submit], 1)[-1].passed
        assert "hint" in world.reset(Task("x", "hint", meta=task.meta), 0).messages[0]["content"]


@pytest.mark.slow
def test_cheats_do_not_pay() -> None:
    world = make()
    for index in range(2):
        task = world.tasks()[index]
        world.reset(task, 0)
        for attack in world.attacks():
            *_, commanded, _, verdict = played(world, task, attack)
            assert not verdict.passed and "flag{" not in str(commanded.observation)


def test_nothing_but_the_work() -> None:
    """A file too many, one too few, or one changed: the folder is not as it should be."""
    world = make(kind="chores")
    for extra in ("echo x > extra", "rm -r $(ls | head -1)", "echo >> $(find . -type f -name '*.*' | head -1)"):
        task = world.tasks()[1]
        world.reset(task, 0)
        *work, submit = world.gold()
        assert not played(world, task, [*work, call("run", command=extra), submit])[-1].passed
        assert played(world, task, [*work, call("run", command="mkdir -p empty"), submit])[-1].passed


def test_partial_scores() -> None:
    world = make(kind="chores", steps=1, partial=True)
    index = next(i for i in range(99) if "rename every" in world.tasks()[i].question)
    world.reset(world.tasks()[index], 0)
    files = [n for n in world.space.files if n.endswith(".txt")]
    for k, name in enumerate(files, 1):
        world.step(call("run", command=f"mv {name} {name[:-4]}.md"))
        assert world.verdict().score == pytest.approx(k / len(files))
    assert world.verdict().passed
    world.step(call("run", command="for i in $(seq 99); do touch $i; done"))
    assert world.verdict().score == 0.0


def test_what_a_command_shows() -> None:
    world = make(kind="chores", shown=40, seconds=0.5, commands=6)
    world.reset(world.tasks()[0], 0)
    text = said(world, "seq 100")
    assert text.startswith("1\n2\n") and text.endswith("99\n100\n(5 left)") and "251 characters left out" in text
    assert said(world, "echo out; echo err >&2; exit 3").startswith("out\nerr\n(exit code 3)")
    assert said(world, "true").startswith("(no output)")
    hung = world.step(call("run", command="echo part; echo x > made; sleep 100"))
    assert hung.valid and not hung.terminated
    assert hung.observation.messages[0]["content"].startswith("part\n(it took more than 1 s")
    assert world.space.files["made"] == b"x\n"
    assert "part\n(it took more than 0.5 s of processor" in said(world, "echo part; while :; do :; done")


def said(world: Shell, command: str) -> str:
    return world.step(call("run", command=command)).observation.messages[0]["content"]


def test_what_is_refused() -> None:
    world = make(commands=1)
    world.reset(world.tasks()[0], 0)
    for said in (say("done"), *(call("run", command=c) for c in ("a\0b", "\ud800", "x" * 100_001))):
        assert not world.step(said).valid
    assert digest("\ud800") != digest("")
    world.step(call("run", command="true"))
    refused = world.step(call("run", command="true"))
    assert "no commands are left" in refused.error and not refused.valid
    assert world.step(call("submit")).terminated
    for wrong in ({"steps": 0}, {"steps": 7}, {"commands": 0}, {"seconds": 0}, {"shown": 0}, {"seed": -1}):
        with pytest.raises(UsageError, match="shell"):
            Shell(**wrong)


def test_a_sandbox_that_fails_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    world.reset(world.tasks()[0], 0)
    monkeypatch.setattr(environment.Workspace, "run", lambda *_: Outcome("infrastructure", reason="gone"))
    with pytest.raises(EnvironmentFailure, match="gone"):
        world.step(call("run", command="true"))


def test_without_a_sandbox_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def check(self) -> None:
            raise SandboxUnavailable("running programs needs bubblewrap")

    monkeypatch.setattr(environment, "sandbox", Missing)
    with pytest.raises(UsageError, match="bubblewrap"):
        Shell()


def test_reports() -> None:
    assert report(Outcome("ok", b"a\n\n"), 10) == "a"
    assert report(Outcome("ok", b"abcdefgh"), 4) == "ab\n[4 characters left out]\ngh"
    assert report(Outcome("error", b"\xff", exit_code=2), 9) == "�\n(exit code 2)"
    assert report(Outcome("timeout", b"", reason="late"), 9) == "(late)"


def test_at_random_nothing_is_found() -> None:
    def policy(world: Shell, shown: Any, rng: np.random.Generator) -> Action:
        if world.left < 11:
            return call("submit", flag="flag{abc}")
        words = re.findall(r"\S+", shown.messages[0]["content"])
        return call("run", command=str(rng.choice(words)))

    assert share(make, make().tasks(), policy, 8) == 0


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds({"name": "shell", "kind": "both"}, 1)
    try:
        findings = list(audit_environment(worlds, [make().tasks()[i] for i in range(2)]))
    finally:
        worlds.close()
    assert "attacks fail" in {f.name for f in findings}
    assert [f for f in findings if not f.passed] == []


def test_tasks_are_many() -> None:
    tasks = [make().tasks()[i] for i in range(300)]
    assert len({t.id for t in tasks}) == 300 == len({(t.question, str(t.reference)) for t in tasks})
    jobs = Counter(t.meta["job"] for t in tasks)
    assert jobs["chores"] == 150 and set(jobs) == {"chores", *PUZZLES}
