"""An environment behind a server: every client has its own episode, and what one sends harms nobody else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from serving import served
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from assay.cli import main
from assay.serve import limits
from assay.serve.worlds import WorldServer

HOSTED = f"{Path(__file__).parents[1] / 'environments/hosted_world.py'}:World"


class Client:
    """Speaks the protocol as it is on the wire."""

    def __init__(self, server: WorldServer, **options: Any):
        self.socket = connect(server.url.replace("http", "ws") + "/ws", **options)

    def ask(self, kind: Any, **data: Any) -> tuple[str, Any]:
        return self.say(json.dumps({"type": kind, "data": data}))

    def say(self, message: str | bytes) -> tuple[str, Any]:
        self.socket.send(message)
        answer = json.loads(self.socket.recv(60))
        return answer["type"], answer["data"]


def get(server: WorldServer, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(server.url + path, data, headers), timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_an_episode_on_the_wire() -> None:
    with served({"name": "guess", "most": 9}, turns=3) as server:
        client, other = Client(server), Client(server)
        assert client.ask("state") == ("state", {"episode_id": None, "step_count": 0})
        kind, told = client.ask("reset", seed=4, episode_id="mine")
        assert (kind, told["reward"], told["done"]) == ("observation", None, False)
        assert told["observation"]["text"] == "1-9?" and told["metadata"]["index"] == 4
        assert told["observation"]["metadata"] == told["metadata"]
        # Another's episode is another's.
        assert other.ask("step", text="5")[1]["code"] == "EXECUTION_ERROR"
        assert other.ask("reset", index=4)[1]["observation"]["state"] == "1-9"
        kind, told = client.ask("step", text="0")
        assert not told["observation"]["valid"] and not told["done"]
        assert client.ask("state") == ("state", {"episode_id": "mine", "step_count": 1})
        low, high = 1, 9
        for _ in range(2):
            _, told = client.ask("step", text=str(low))
        assert told["done"] and told["metadata"]["truncated"] is not told["metadata"]["verdict"]["passed"]
        assert told["reward"] == told["metadata"]["verdict"]["score"]
        assert client.ask("step", text="5")[1]["message"] == "no episode is under way; reset first"
        # The next of the tasks that nobody has asked for by its place.
        assert client.ask("reset")[1]["metadata"]["index"] != client.ask("reset")[1]["metadata"]["index"]
        client.socket.send(json.dumps({"type": "close"}))
        with pytest.raises(ConnectionClosed):
            client.socket.recv(60)
        assert low < high and other.ask("step", text="5")[0] == "observation"


def test_tools_are_called_as_mcp_has_them() -> None:
    with served("search") as server:
        client = Client(server)
        # Before an episode too.
        _, told = client.ask("step", type="list_tools")
        assert [t["name"] for t in told["observation"]["tools"]] == ["open", "search"]
        assert told["observation"]["tools"][0]["input_schema"]["required"] == ["document"]
        client.ask("reset", index=0)
        _kind, told = client.ask("step", type="call_tool", tool_name="search", arguments={"query": "town"})
        assert told["observation"]["result"] == told["observation"]["text"] == "nothing found\n(7 left)"
        assert told["observation"]["error"] is None and told["observation"]["tool_name"] == "search"
        _, told = client.ask("step", type="call_tool", tool_name="search", arguments={})
        assert "query is missing" in told["observation"]["error"]["message"] and not told["observation"]["valid"]
        _, told = client.ask("step", type="call_tool", tool_name="nothing", arguments={})
        assert "there is no tool" in told["observation"]["error"]["message"]


def test_what_is_no_message_is_refused_and_costs_nothing() -> None:
    with served("guess") as server:
        client = Client(server)
        for message, code in [
            ("{", "INVALID_JSON"),
            ("[" * 100_000, "INVALID_JSON"),
            (b"\x00\x01", "INVALID_JSON"),
            ("[1]", "UNKNOWN_TYPE"),
            ('{"type": "mcp"}', "UNKNOWN_TYPE"),
            ('{"type": "reset", "data": [1]}', "VALIDATION_ERROR"),
            ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR"),
            ('{"type": "reset", "data": {"index": 1.5}}', "VALIDATION_ERROR"),
            ('{"type": "reset", "data": {"seed": 1e999}}', "VALIDATION_ERROR"),
            ('{"type": "step", "data": {"text": "5"}}', "EXECUTION_ERROR"),
        ]:
            kind, told = client.say(message)
            assert (kind, told["code"]) == ("error", code), message
        client.ask("reset", seed=0)
        for data in ({}, {"text": 5}, {"type": "call_tool"}, {"type": "call_tool", "tool_name": "a", "arguments": []}):
            assert client.ask("step", **data)[1]["code"] == "VALIDATION_ERROR"
        assert client.ask("step", text="5")[0] == "observation"
        with pytest.raises(ConnectionClosed):
            client.say("x" * (limits.MESSAGE + 1))
        assert Client(server).ask("reset", seed=0)[0] == "observation"


def test_a_world_that_fails_costs_its_own_episode() -> None:
    with served(HOSTED, turns=50) as server:
        client, other = Client(server), Client(server)
        client.ask("reset", index=0)
        other.ask("reset", index=0)
        assert client.ask("step", text="four")[0] == "observation"
        kind, told = client.ask("step", text="raise")
        assert kind == "error" and told["code"] == "EXECUTION_ERROR" and "ValueError: broken" in told["message"]
        assert client.ask("step", text="four")[1]["code"] == "EXECUTION_ERROR"
        assert client.ask("reset", index=0)[0] == "observation"
        # One that kills its process: the others are played again to where they were.
        assert "ended" in client.ask("step", text="kill")[1]["message"]
        assert other.ask("step", text="four")[1]["observation"]["state"] == "4"


def test_who_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SESSIONS", 1)
    with served("guess", key="secret") as server:
        assert get(server, "/health") == (200, {"status": "healthy"})
        assert get(server, "/metadata")[0] == 401
        assert get(server, "/metadata", Authorization="Bearer secret")[1]["name"] == "world"
        with pytest.raises(InvalidStatus):
            Client(server)
        own = {"Authorization": "Bearer secret"}
        # A page of another site, which a browser on this machine shows, brings no key but might where none is asked.
        with pytest.raises(InvalidStatus):
            Client(server, additional_headers=own, origin="https://elsewhere.example")
        first = Client(server, additional_headers=own)
        assert first.ask("reset", seed=1)[0] == "observation"
        second = Client(server, additional_headers=own)
        assert json.loads(second.socket.recv(60))["data"]["code"] == "CAPACITY_REACHED"
        first.socket.close()


def test_who_is_silent_leaves_and_who_is_slow_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD", 0.2)
    with served("guess") as server:
        client = Client(server)
        # A deadline for requests is none for a session.
        assert client.socket.ping().wait(60)
        with socket.create_connection(server.address) as half:
            half.sendall(b"GET /ws HTTP/1.1\r\n")
            half.settimeout(60)
            assert half.recv(100) == b""
        assert client.ask("reset", seed=0)[0] == "observation"
        monkeypatch.setattr(limits, "SILENCE", 0.05)
        client.ask("state")
        assert json.loads(client.socket.recv(60))["data"]["code"] == "SESSION_ERROR"
        with pytest.raises(ConnectionClosed):
            client.socket.recv(60)


def test_what_it_tells_of_itself(tmp_path: Path) -> None:
    with served("guess") as server:
        assert set(get(server, "/schema")[1]) == {"action", "observation", "state"}
        assert get(server, "/list_environments") == (200, ["world"])
        assert get(server, "/world/num_tasks", {"split": "train"})[0] == 501
        assert get(server, "/world/task", {"split": "train", "index": 2})[1]["task"]["prompt"] == "1-16?"
        assert get(server, "/world/task", {"index": -1})[0] == 400
        assert get(server, "/step", {"action": {}})[0] == 405 and get(server, "/nowhere")[0] == 404


def test_the_command(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "assay", "serve-env", "guess", "most=9", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split(" at ")[1].split(";")[0]
        with connect(url.replace("http", "ws") + "/ws") as wire:
            wire.send('{"type": "reset"}')
            assert json.loads(wire.recv(60))["data"]["observation"]["text"] == "1-9?"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0 and process.stdout.read() == "stopped\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nothing"], "no environment part is called 'nothing'"),
        (["guess", "most"], "'most' is no option=value"),
        (["guess", "--turns", "0"], "--turns 0"),
        (["guess", "--api-key-env", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL"),
    ],
)
def test_the_command_asked_for_what_cannot_be(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["serve-env", *words])
    assert stopped.value.code == 2 and reason in capsys.readouterr().err
