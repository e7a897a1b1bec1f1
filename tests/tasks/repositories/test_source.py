"""Files of pull requests, and how they are played."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from sandbox.support import needs_sandbox
from tasks.repositories.pull_requests import GOOD, request

from assay.environments.repository.environment import Repository
from assay.environments.tools import call
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.repositories.source import read_request, request_of
from assay.types import Task

pytestmark = needs_sandbox


def written(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_files(tmp_path: Path) -> None:
    good, bad = asdict(GOOD), asdict(request(id="2", fix={"kit/add.py": ""}))
    path = written(tmp_path / "requests.jsonl", good, bad)
    with pytest.raises(UsageError, match="2: its tests fail with the fix"):
        build("tasks", {"name": "repositories", "path": path})
    source = build("tasks", {"name": "repositories", "path": path, "skip": True})
    assert source.size == 1 and source[0].meta["collected"] == 1
    back = request_of(source[0])
    assert (back.files, back.fix, back.tests, back.script) == (GOOD.files, GOOD.fix, GOOD.tests, GOOD.script)
    with pytest.raises(UsageError, match="no pull request"):
        build("tasks", {"name": "repositories", "path": written(tmp_path / "none.jsonl", bad), "skip": True})
    for wrong, why in (([], "a row is"), ({"id": 1}, "a row is"), ({**good, "fix": ["x"]}, "fix must lead")):
        with pytest.raises(UsageError, match=why):
            read_request(wrong, "here")
    with pytest.raises(UsageError, match="tests must lead"):
        read_request({**good, "tests": {"a": 1}}, "here")


def test_a_pull_request_is_played(tmp_path: Path) -> None:
    [task] = [build("tasks", {"name": "repositories", "path": written(tmp_path / "r.jsonl", asdict(GOOD))})[0]]
    world = Repository()
    opened = world.reset(task, 0).messages[0]["content"]
    assert "add(1, 2) gives -1" in opened and "kit/add.py (2 lines)" in opened and "test_add" not in opened
    assert world.verdict().passed is False
    plan = world.gold()
    for action in plan:
        assert world.step(action).valid
    assert world.verdict().passed is True
    world.reset(task, 0)
    for action in (
        call("edit", path="kit/add.py", old="-", new="+"),
        call("write", path="tests/test_add.py", content=""),
        call("submit"),
    ):
        world.step(action)
    assert world.verdict().passed is True
    for path, text in (("tests/test_add.py", "import unittest\n"), ("kit/add.py", "import os\nos._exit(0)\n")):
        world.reset(task, 0)
        world.step(call("write", path=path, content=text))
        assert world.verdict().passed is False
    with pytest.raises(UsageError, match="none of its own"):
        world.reset(Task("x", "?"), 0)
