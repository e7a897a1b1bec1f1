"""Work in a folder: every kind can be done, is not done by itself, and is judged by what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from acted import comes_back, ends, gold_passes, idle_fails, repeats
from sandbox.support import needs_sandbox

from assay.audit.environment import audit_environment
from assay.environments.base import Foldered
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import call, say
from assay.environments.workspace.environment import WorkspaceJobs
from assay.environments.workspace.jobs import JOBS
from assay.errors import UsageError
from assay.tasks.workspaces.job import MOST, flawed, worth
from assay.types import Task

pytestmark = needs_sandbox


def make(**options: Any) -> WorkspaceJobs:
    return WorkspaceJobs(**options)


@pytest.mark.parametrize("name", list(JOBS))
def test_every_job_can_be_done_and_is_not_done_by_itself(name: str) -> None:
    for index in range(4):
        job = JOBS[name](3, index, 1)
        assert flawed(job) == []
        assert worth(job, job.files) == 0 and worth(job, {}) < MOST
        assert sum(c.weight for c in job.checks) == pytest.approx(1)


def test_plans_pass_repeat_and_come_back() -> None:
    tasks = make().tasks()
    plans = gold_passes(make, tasks, 8)
    repeats(make, tasks, plans[:2])
    ends(make, tasks[1], plans[1])
    idle_fails(make, tasks, n=4)
    comes_back(make, tasks, plans[:2])
    assert isinstance(make(), Foldered)
    assert [tasks[i].meta["job"] for i in range(5)] == [*JOBS, "tidy"]
    assert len({tasks[i].id for i in range(40)}) == 40


def begun(name: str, **options: Any) -> WorkspaceJobs:
    world = make(jobs=[name], **options)
    world.reset(world.tasks()[0], 0)
    return world


def test_a_report_is_judged_by_its_values() -> None:
    world = begun("report")
    wanted = {c.id: c.what["is"] for c in world.job.checks if c.kind == "json"}
    world.space.write("report.json", json.dumps(wanted))
    assert world.verdict().passed
    world.space.write("report.json", json.dumps({**wanted, "total": 0, "best": None}))
    found = world.verdict()
    # orders .2, teams .3 and kept .1 are left of it.
    assert found.score == pytest.approx(0.6) and found.feedback == "total: content; best: content"
    world.space.write("report.json", "orders: 1")
    assert world.verdict().score == 0 and world.verdict().parts["total | format"] == 1
    world.space.entries.pop("report.json")
    assert world.verdict().parts["total | missing"] == 1


def test_what_a_trail_leads_to() -> None:
    world = begun("trail", failures=0)
    listed = world.step(call("get", path="/")).observation.messages[0]["content"]
    sub = world.job.gold[0]
    assert sub.path.partition("?")[0][1:] in listed  # type: ignore[union-attr]
    for path in ("/nothing", "/town_mayor?town=Nowhere", "/town_mayor?x=1", "/town_mayor", "/sum?a=x&b=2"):
        step = world.step(call("get", path=path))
        assert not step.valid and "404" in step.error
    wanted = "\n".join(c.what["matches"] for c in world.job.checks)
    assert "answers.txt" not in world.space.files and wanted
    for action in world.gold():
        world.step(action)
    right = world.space.files["answers.txt"].decode()
    assert world.verdict().passed
    lines = right.splitlines()
    world.space.write("answers.txt", "\n".join(["wrong", *lines[1:]]))
    assert world.verdict().score == pytest.approx(1 - 1 / len(lines))
    world.space.write("answers.txt", "\r\n".join(f"  {line} " for line in lines))
    assert world.verdict().passed


def test_a_bug_is_mended_when_calls_are_right() -> None:
    world = begun("mend")
    assert [c.weight for c in world.job.checks] == [0.75, 0.25]
    start = dict(world.space.files)
    assert world.verdict().score == 0
    world.step(world.gold()[0])
    assert world.verdict().passed
    path = next(name for name in start if start[name] != world.space.files[name])
    world.space.entries.pop(path)
    assert world.verdict().score == 0 and world.verdict().parts["broken calls | missing"] == 1


def test_tidying_leaves_the_rest_alone() -> None:
    world = begun("tidy")
    for action in world.gold()[:-1]:
        world.step(action)
    assert world.verdict().passed
    kept = world.job.checks[-1].what["kept"][0]
    world.space.write(kept, b"spoilt")
    found = world.verdict()
    assert found.parts["kept | unsafe"] == 1 and found.score <= 0.8


def test_what_tools_answer() -> None:
    world = begun("report", failures=1, commands=5, shown=40)
    assert world.step(call("get", path="/")).observation.messages[0]["content"] == "503 busy, try again"
    assert world.step(call("get", path="/", to="index")).valid
    assert world.space.files["index"].startswith(b"GET /orders?page=1")
    assert "(exit code 3)" in world.step(call("run", command="echo no; exit 3")).observation.messages[0]["content"]
    assert "characters left out" in world.step(call("run", command="seq 99")).observation.messages[0]["content"]
    assert world.step(call("get", path="/", to="/x")).error.startswith("the file name")
    assert world.step(call("run", command="true")).error == "no commands are left; call submit"
    assert world.step(say("done")).error.startswith("call a tool")
    assert world.state_json()["left"] == 0 and not world.state_json()["submitted"]
    key = world.state_key()
    assert world.step(call("submit")).terminated and world.state_key() != key
    assert not begun("report").step(call("run", command="a\0b")).valid
    assert "get" not in [t.name for t in begun("mend").available()]


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds("workspace", workers=2)
    try:
        source = worlds.here().tasks()
        findings = list(audit_environment(worlds, [source[i] for i in range(4)]))
    finally:
        worlds.close()
    assert [(f.name, f.first) for f in findings if not f.passed] == []


def test_options_out_of_range() -> None:
    for options in ({"jobs": []}, {"jobs": ["tidi"]}, {"failures": -1}, {"commands": 0}, {"shown": 0}, {"seed": -1}):
        with pytest.raises(UsageError, match="environment 'workspace'"):
            WorkspaceJobs(**options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean 'tidy'"):
        WorkspaceJobs(["tidi"])
    with pytest.raises(UsageError, match="none of its own"):
        WorkspaceJobs().reset(Task("other", "?"), 0)
