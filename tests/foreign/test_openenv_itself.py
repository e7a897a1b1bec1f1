"""OpenEnv's own server is played by ours, and OpenEnv's own client plays ours: rewards and ends are the same."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run
from serving import served

from assay.environments.base import EnvironmentFailure
from assay.environments.calls import find_calls
from assay.environments.foreign.openenv.environment import OpenEnv
from assay.environments.tools import call, say
from assay.registry import build

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-openenv/bin/python"

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(not PYTHON.exists(), reason="openenv is not installed: make foreign"),
]


class Client:
    """Their client, in the Python that has it."""

    def __init__(self, url: str):
        command = [str(PYTHON), str(HERE / "openenv_client.py"), url]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **asked: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def till() -> Iterator[str]:
    """The URL of their server."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    command = [str(PYTHON), str(HERE / "worlds/openenv_till.py"), str(listening.fileno())]
    process = subprocess.Popen(command, pass_fds=[listening.fileno()])
    listening.close()
    yield url
    process.terminate()
    process.wait(60)


def test_verdicts_are_theirs_on_a_hundred_trajectories(till: str) -> None:
    ours, theirs, passed = OpenEnv(till), Client(till), 0
    for k in range(100):
        rng, task = np.random.default_rng([6, k]), ours.tasks()[k]
        [act] = ours.reset(task, k).tools
        first = theirs.ask(reset=task.meta["reset"])
        owed = first["observation"]["owed"]
        while True:
            amount = owed if rng.random() < 0.4 else int(rng.integers(0, 5))
            text = call("act", amount=amount).text
            step = ours.step(replace(say(text), calls=find_calls(text, [act])))
            told = theirs.ask(step={"amount": amount})
            assert json.loads(step.observation.messages[0]["content"]) == {
                k: v for k, v in told["observation"].items() if k != "metadata"
            }
            assert (step.terminated, step.reward) == (told["done"], told["reward"])
            owed = told["observation"]["owed"]
            if told["done"]:
                break
        assert ours.verdict().passed == (told["reward"] == 1.0) and ours.verdict().score == told["reward"]
        passed += bool(ours.verdict().passed)
    theirs.close()
    assert 20 < passed < 95
    # What does not fit is the policy's fault, what the server raises is not.
    ours.reset(ours.tasks()[0], 0)
    refused = ours.step(replace(say(""), calls=find_calls(call("act", amount="x").text, [act])))
    assert not refused.valid and "amount" in refused.error
    with pytest.raises(EnvironmentFailure, match="jammed"):
        ours.step(replace(say(""), calls=call("act", amount=13).calls))
    ours.close()


def test_it_trains_one_step_unchanged(till: str, tmp_path: Path) -> None:
    world = {"name": "openenv", "server": till}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 2048}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": {"name": "multi_turn", "environment": world, "turns": 3}},
        rollout={"prompts": 2, "group": 4, "max_tokens": 2, "max_rows": 64},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
    )
    [row] = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert row["environment/lost"] == 0 and 1 <= row["environment/turns"] <= 3


def test_their_client_plays_ours() -> None:
    with served("guess") as server:
        client, ours = Client(server.url), build("environment", "guess")
        for index in range(10):
            seen = client.ask(reset={"index": index, "seed": index})
            shown = ours.reset(ours.tasks()[index], index)
            assert seen["observation"]["text"] == shown.messages[0]["content"] and not seen["done"]
            while True:
                guess = str((ours.low + ours.high) // 2)
                told, step = client.ask(step={"text": guess}), ours.step(say(guess))
                assert told["observation"]["text"] == step.observation.messages[0]["content"]
                assert told["done"] == step.terminated
                if told["done"]:
                    break
            assert told["reward"] == ours.verdict().score
        assert client.ask(state=True)["step_count"] > 0
        client.close()
    with served("search") as server:
        client, ours = Client(server.url), build("environment", "search")
        tools = client.ask(step={"type": "list_tools"})["observation"]["tools"]
        assert [t["name"] for t in tools] == ["open", "search"]
        for index in range(5):
            client.ask(reset={"index": index, "seed": index})
            ours.reset(ours.tasks()[index], index)
            *calls, answer = ours.gold()
            for action in calls:
                made = action.calls[0]
                told = client.ask(tool=made.name, arguments=made.arguments)
                assert told["observation"]["result"] == ours.step(action).observation.messages[0]["content"]
            told = client.ask(step={"text": answer.text})
            assert told["done"] and told["reward"] == 1.0
        client.close()
