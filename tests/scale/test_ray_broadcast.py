"""A broadcast among processes that come and go, without Ray: groups of gloo between threads of this process."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
import torch.distributed as dist

pytest.importorskip("ray", reason="the extra ray is not installed")

from assay.config import load_config
from assay.errors import RunError
from assay.policies.causal_lm import CausalLM
from assay.scale.faults import Faults
from assay.scale.ray import broadcast
from assay.scale.ray.broadcast import Arriving, Group, Meeting, Sender
from assay.scale.ray.engine import EngineActor, plain
from assay.scale.ray.weights import Sent, blocks, packed

BIG = torch.arange(64 << 20, dtype=torch.int32).view(torch.uint8)
"""More than sockets hold of what nobody reads."""


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Three members of a group that are patient for two seconds."""
    monkeypatch.setattr(broadcast, "_address", lambda: "127.0.0.1")
    monkeypatch.setattr(broadcast, "PATIENCE", timedelta(seconds=2))
    store: Any = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    meeting = Meeting("127.0.0.1", store.port, "here", 3, "cpu")
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(lambda rank: Group(meeting, rank, None if rank else store), range(3)))
    yield made
    for group in made:
        group.close()


def beside(work: Callable[[], Any]) -> Future[Any]:
    pool = ThreadPoolExecutor(1)
    found = pool.submit(work)
    pool.shutdown(wait=False)
    return found


def test_all_get_what_was_sent(groups: Any) -> None:
    """Weights of several types and shapes arrive under their names, bit for bit."""
    weights = {
        "a": torch.randn(3, 5).to(torch.bfloat16),
        "b": torch.tensor(True),
        "c": torch.empty(0, 2),
        "d": torch.randn(7, 2, dtype=torch.float64),
    }
    sent = list(packed(weights.items(), 50))
    layout = [what for what, _ in sent]
    assert len(sent) > 1
    arriving = [beside(lambda group=group: dict(Arriving(layout, group).merged_state())) for group in groups[1:]]
    for _, data in sent:
        groups[0].broadcast(data)
    for found in arriving:
        assert list(found.result(10)) == list(weights)
        assert all(torch.equal(found.result()[k], v) and found.result()[k].dtype == v.dtype for k, v in weights.items())


def test_who_leaves_or_stands_still_holds_nobody_up(groups: Any) -> None:
    """Nobody listens: the sender gets an error within its patience. It leaves, and so does who listens then."""
    start = time.monotonic()
    with pytest.raises(RuntimeError):
        groups[0].broadcast(BIG)
    assert time.monotonic() - start < 10
    listening = beside(lambda: groups[1].broadcast(torch.empty_like(BIG)))
    groups[0].close()
    with pytest.raises(RuntimeError):
        listening.result(10)


def test_torn_weights_answer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose broadcast ends in the middle says so, answers nothing, and takes whole weights afterwards."""
    model = {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}, "device": "cpu"}
    config = load_config({"model": model}).model
    actor = EngineActor(("hf", plain(config), 1, 0), {})
    actor.start()
    sent = list(blocks(CausalLM.load(config, seed=3).merged_state(), 2000))
    left = iter([block.data for block in sent[:2]])

    class Torn:
        device = "cpu"

        def broadcast(self, data: torch.Tensor) -> None:
            block = next(left, None)
            if block is None:
                raise RuntimeError("Connection closed by peer")
            data.copy_(torch.from_numpy(block))

        def close(self) -> None: ...

    actor.group = Torn()
    assert not actor.receive(1, [block.what for block in sent]) and actor.group is None
    for version in (0, 1):
        with pytest.raises(RunError, match="was asked for answers"):
            actor.generate(version, [])
    assert not actor.receive(2, [block.what for block in sent])
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda block: block))
    assert actor.take(2, sent) == 2
    assert actor.generate(2, []) and all(
        torch.equal(found, wanted)
        for (_, found), (_, wanted) in zip(actor.policy.merged_state(), Sent(sent).merged_state(), strict=True)
    )


def test_engines_and_trainer_that_never_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are alive and cannot reach each other: a line says so, and nobody tries again."""
    monkeypatch.setattr(broadcast, "_address", lambda: "127.0.0.1")
    monkeypatch.setattr(broadcast, "PATIENCE", timedelta(seconds=0.2))
    asked: list[str] = []

    def engine(call: str) -> Any:
        return SimpleNamespace(remote=lambda *_: [asked.append(call), "cpu" if call == "receives_on" else False][1])

    far = Mock(**{call: engine(call) for call in ("receives_on", "meet", "receive")})
    lines: list[str] = []
    ray = SimpleNamespace(get=lambda answer: answer, exceptions=SimpleNamespace(RayError=OSError))
    cluster: Any = SimpleNamespace(
        own_gpus=False, ray=ray, faults=Faults(tmp_path, lines.append), wait=lambda refs, _: refs[:1]
    )
    sender = Sender(cluster, "cpu")
    for version in (1, 2):
        sender.begin([far], version, [])
        sender.send(torch.zeros(4, dtype=torch.uint8))
        assert sender.end() == []
    assert asked == ["receives_on", "meet"]
    [line] = lines
    assert "\n" not in line and line.endswith("all take them from the object store from here on")
