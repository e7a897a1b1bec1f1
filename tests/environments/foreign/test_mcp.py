"""Tools of a real MCP server: what they refuse is an observation, and a server that dies is no wrong answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from acted import played

from assay.environments.base import Action, EnvironmentFailure
from assay.environments.calls import find_calls
from assay.environments.foreign.mcp import MCP
from assay.environments.played import Played
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import build
from assay.types import Task

COMMAND = [sys.executable, str(Path(__file__).with_name("mcp_server.py"))]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("mcp") / "tasks.jsonl"
    rows = [
        {"prompt": f"Pay {n}.", "reference": json.dumps({"cash": 20 - n}), "kind": "json", "setup": {"cash": 20}}
        for n in (3, 12)
    ]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    return file


def made(tasks: Path, **options: Any) -> MCP:
    world = build("environment", {"name": "mcp", "command": COMMAND, "questions": str(tasks), **options})
    assert isinstance(world, MCP)
    return world


@pytest.mark.slow
def test_the_state_decides(tasks: Path) -> None:
    world = made(tasks, setup="fill", state="count")
    source = world.tasks()
    assert source.size == 2
    shown = world.reset(source[1], 0)
    assert [t.name for t in shown.tools] == ["pay", "die"] and shown.messages[0]["content"] == "Pay 12."
    assert shown.tools[0].parameters["properties"]["amount"]["type"] == "integer"
    # Twelve could not be paid of ten: the setup was called.
    first = world.step(call("pay", amount=12))
    assert first.valid and first.observation.messages[0]["content"] == "left 8"
    assert first.observation.messages[0]["tool_call_id"] == "call_0"
    refused = world.step(call("pay", amount=12))
    assert not refused.valid and "not enough cash" in refused.observation.messages[0]["content"]
    # What is hidden, unknown or malformed is not called.
    for wrong in (
        call("fill", cash=0),
        call("nothing"),
        Action("", find_calls("<tool_call>{</tool_call>", shown.tools)),
    ):
        step = world.step(wrong)
        assert not step.valid and step.observation.messages[0]["content"].startswith("error: ")
    assert world.step(say("Paid.")).terminated and world.verdict().passed
    with pytest.raises(RuntimeError, match="reset"):
        world.step(call("pay", amount=1))
    # The next episode has a till of its own.
    *_, claimed = played(world, source[0], [say("It is paid: 17 left.")])
    assert claimed.passed is False
    world.close()
    world.close()


@pytest.mark.slow
def test_the_answer_decides_where_no_state_is_told(tasks: Path) -> None:
    world = made(tasks, only=["count"])
    task = Task("1", "How much?", "10", "exact")
    *steps, verdict = played(world, task, [call("count"), say("10")])
    assert steps[1].observation.messages[0]["content"] == '{"cash": 10}' and verdict.passed
    assert [t.name for t in steps[0].tools] == ["count"]
    assert world.reset(task, 0) and world.verdict().passed is False
    world.close()


@pytest.mark.slow
def test_a_server_that_dies_abstains(tasks: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    episode = Played(lambda: made(tasks, log=str(tmp_path / "log")), Task("1", "Pay."), 0)
    episode.reset()
    episode.step(call("pay", amount=11))
    assert "not enough cash" in (tmp_path / "log").read_text() and not capfd.readouterr().err
    episode.step(call("pay", amount=1))
    with pytest.raises(EnvironmentFailure, match="MCP server"):
        episode.step(call("die"))
    episode.close()


@pytest.mark.parametrize("command", [["/nowhere/at/all"], [sys.executable, "-c", "import time; time.sleep(60)"]])
def test_a_server_that_does_not_start_abstains(command: list[str]) -> None:
    world = MCP(command, seconds=2)
    with pytest.raises(EnvironmentFailure, match="MCP server"):
        world.reset(Task("1", "Pay."), 0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"questions": "nowhere.jsonl"}, "cannot read nowhere.jsonl"),
        ({"command": []}, "command must start a server"),
        ({"seconds": 0.0}, "seconds must be above 0"),
    ],
)
def test_what_cannot_be_played_is_said_at_once(options: dict[str, Any], reason: str, tasks: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        made(tasks, **options)


def test_what_is_no_row_and_no_tool(tmp_path: Path, tasks: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a"}\n{"question": "b"}\n')
    with pytest.raises(UsageError, match=r"rows\.jsonl:2: no task"):
        made(tmp_path / "rows.jsonl")
    world = made(tasks, state="look")
    with pytest.raises(UsageError, match="has no tool 'look'; it has fill, pay"):
        world.reset(world.tasks()[0], 0)
    with pytest.raises(UsageError, match="has no tasks"):
        MCP(COMMAND).tasks()
