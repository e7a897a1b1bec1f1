"""Many turns with an engine behind a server: by tokens the engine's own episodes, by messages ones that are judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from serving import running_server, small_engine

from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.environments.guess import Guess
from assay.environments.tools import ToolEnvironment, tool
from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.registry import build
from assay.rollout.turns.by_messages import as_messages
from assay.rollout.turns.multi_turn import MultiTurn
from assay.serve.server import ModelServer
from assay.types import Ask, Group, Message, Task, Tool, Verdict, pictures

pytest.importorskip("httpx2", reason="asking a server needs httpx2: pip install assay[openai]")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def local() -> HFEngine:
    return small_engine()


@pytest.fixture(scope="module")
def url(local: HFEngine) -> Iterator[str]:
    with running_server(ModelServer(local, "nano", ("127.0.0.1", 0))) as server:
        yield server.url


def remote(url: str, **options: Any) -> Any:
    return build("engine", {"name": "openai", "model": "nano", "base_url": url, **options})


def played(by: Any, **options: Any) -> list[Group]:
    rollout = MultiTurn({"name": "guess", "most": 9}, Sampling(4), turns=4, **options)
    source = Guess(most=9).tasks()
    return rollout.collect([Ask(source[i], 2) for i in range(2)], by, np.random.default_rng(3))


def test_a_server_of_tokens_plays_the_episodes_of_its_engine(url: str, local: HFEngine) -> None:
    by = remote(url, api="completions", tokenizer="nano", context=96)
    assert not by.by_messages and by.window == 96
    for ours, theirs in zip(played(local), played(by), strict=True):
        assert ours.verdicts == theirs.verdicts
        for a, b in zip(ours.episodes, theirs.episodes, strict=True):
            assert np.array_equal(a.prompt, b.prompt) and np.array_equal(a.tokens, b.tokens)
            assert np.array_equal(a.mask, b.mask) and a.stop == b.stop and len(a.turns) == len(b.turns)
            np.testing.assert_allclose(a.logprobs[a.mask], b.logprobs[b.mask], atol=1e-5)  # type: ignore[index]


@pytest.mark.parametrize("options", [{"api": "chat"}, {"api": "completions"}, {"api": "chat", "tokenizer": "nano"}])
def test_a_server_of_messages_can_be_judged(url: str, options: dict[str, Any]) -> None:
    by = remote(url, **options)
    assert by.by_messages
    groups = played(by)
    assert all(v.passed is not None for g in groups for v in g.verdicts)
    assert all(1 <= len(e.turns) <= 4 and e.stop != "error" for g in groups for e in g.episodes)
    assert {len(e.turns) for g in groups for e in g.episodes} != {1}
    with pytest.raises(UsageError, match="asked by messages"):
        played(by, context="summary")
    assert all(e.stop != "error" for g in played(by, context="rounds", keep=0) for e in g.episodes)


class Telephone(ToolEnvironment):
    """Has one tool."""

    def begin(self, task: Task, seed: int) -> None:
        return None

    @tool
    def dial(self, number: int) -> str:
        "Call somebody."
        return f"{number} is engaged"

    def verdict(self) -> Verdict:
        return Verdict.right()


def test_tools_are_told_in_words() -> None:
    said = [
        Message(role="user", content="call 5 and 6"),
        Message(role="assistant", content="<tool_call>..."),
        Message(role="tool", content="5 is engaged", tool_call_id="call_0", name="dial"),
        Message(role="tool", content="6 is engaged", tool_call_id="call_1", name="dial"),
    ]
    shown = as_messages(said, Telephone.tools())
    assert [m["role"] for m in shown] == ["system", "user", "assistant", "user"]
    assert all(set(m) == {"role", "content"} for m in shown)
    assert "5 is engaged" in shown[3]["content"] and "6 is engaged" in shown[3]["content"]
    [line] = [x for x in shown[0]["content"].splitlines() if '"dial"' in x]
    assert Tool(**json.loads(line)) == Telephone.tools()[0]
    system = Message(role="system", content="be brief")
    seen = Picture(b"a picture")
    assert pictures(as_messages([{"role": "tool", "content": f"{MARK}!", "images": (seen,)}], ())) == [seen]
    assert as_messages([system, *said], ()) == (system, *as_messages(said, ()))
    told = as_messages([system, *said], Telephone.tools())
    assert told[0]["content"].startswith("be brief\n\n") and len(told) == 4
