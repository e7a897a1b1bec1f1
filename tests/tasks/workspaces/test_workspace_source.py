"""Work of one's own in folders: what can be set, what is flawed, and that it is done like any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sandbox.support import needs_sandbox

from assay.environments.tools import call
from assay.environments.workspace.environment import WorkspaceJobs
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.workspaces.source import workspaces

pytestmark = needs_sandbox

GOOD: dict[str, Any] = {
    "prompt": "Add the numbers of the service at /n to those in base.txt, and write the sum into sum.txt.",
    "checks": [
        {"id": "sum", "weight": 0.8, "file": "sum.txt", "is": "15"},
        {"id": "kept", "weight": 0.2, "kept": ["base.txt"], "beside": True, "guard": True},
    ],
    "gold": [
        {"get": "/n", "to": "n.txt"},
        "cat base.txt n.txt | awk '{ s += $1 } END { print s }' > sum.txt; rm n.txt",
    ],
    "service": {"routes": {"/n": "5\n7\n"}, "failures": 2},
}


def written(place: Path, **other: Any) -> Path:
    (place / "one" / "fixtures").mkdir(parents=True)
    (place / "one" / "fixtures" / "base.txt").write_text("3\n")
    (place / "one" / "task.json").write_text(json.dumps({**GOOD, **other}))
    return place


def test_it_is_set_and_done(tmp_path: Path) -> None:
    source = build("tasks", {"name": "workspaces", "path": str(written(tmp_path))})
    assert source.size == 1
    task = source[0]
    assert task.id == "workspaces/one" and task.prompt == GOOD["prompt"] and task.kind == "none"
    world = WorkspaceJobs()
    world.reset(task, 0)
    assert [t.name for t in world.available()] == ["get", "run", "submit"]
    plan = world.gold()
    # Busy twice, then there.
    assert [a.calls[0].name for a in plan] == ["get", "get", "get", "run", "submit"]
    for action in plan:
        assert world.step(action).valid
    found = world.verdict()
    assert found.passed and found.score == 1 and found.parts == {"sum": 1.0, "kept": 1.0}
    world.reset(task, 0)
    world.step(call("run", command="echo 15 > sum.txt; echo 4 > base.txt"))
    found = world.verdict()
    assert not found.passed and found.score == 0.8
    assert found.parts == {"sum": 1.0, "kept": 0.0, "kept | unsafe": 1.0} and found.feedback == "kept: content"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"gold": "echo 14 > sum.txt"}, "its way scores 0, not 1"),
        ({"gold": [{"get": "/m", "to": "n.txt"}]}, "asks for /m, which answers 404"),
        ({"gold": [{"to": "n.txt"}]}, "no object with prompt, checks and gold"),
        ({"service": {"routes": {}, "failures": -1}}, "is no number of failures"),
        ({"service": 3}, "no object with prompt, checks and gold"),
        ({"checks": [{"id": "a", "weight": 1, "kept": ["base.txt"]}]}, "nothing done scores 1, not less than 0.3"),
        ({"checks": [{"id": "a", "weight": 1, "gone": ["x"]}]}, "an empty folder scores 1, not less than 0.3"),
        ({"checks": [{"id": "a", "weight": 2, "gone": ["x"]}]}, "a weight above 0"),
    ],
)
def test_what_is_flawed(other: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        workspaces(written(tmp_path, **other))


def test_without_service_and_files(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    about = {"prompt": "p", "checks": [{"id": "a", "weight": 1, "file": "a", "is": "1"}], "gold": "echo 1 > a"}
    (tmp_path / "two" / "task.json").write_text(json.dumps(about))
    [task] = [workspaces(tmp_path)[0]]
    world = WorkspaceJobs()
    shown = world.reset(task, 0)
    assert "It is empty." in shown.messages[0]["content"] and [t.name for t in shown.tools] == ["run", "submit"]
    with pytest.raises(UsageError, match="no work in it"):
        workspaces(tmp_path / "two")
    (tmp_path / "two" / "task.json").write_text("[]")
    with pytest.raises(UsageError, match="no object with prompt"):
        workspaces(tmp_path)
