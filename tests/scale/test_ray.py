"""Generation and verification on Ray actors: the same results as in one process, whoever dies meanwhile."""

from __future__ import annotations

import logging
import os
import pickle
import signal
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.config import ScaleConfig, load_config
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import RunError, UsageError
from assay.policies.causal_lm import CausalLM
from assay.scale.faults import Faults, faults
from assay.scale.ray import crew
from assay.scale.ray import weights as packing
from assay.scale.ray.broadcast import Sender
from assay.scale.ray.cluster import Cluster, LostCluster, import_ray
from assay.scale.ray.engine import EngineActor, RayEngine
from assay.scale.ray.verifier import RayVerifier
from assay.types import Task, Verdict

ray = pytest.importorskip("ray", reason="the extra ray is not installed")

MODEL = {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}, "device": "cpu"}


@pytest.fixture(scope="module")
def machine() -> Iterator[None]:
    """A cluster of this machine for the whole module; every test's own is a part of it."""
    import_ray().init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        object_store_memory=80 << 20,
        log_to_driver=False,
        logging_level=logging.CRITICAL,
    )
    yield
    ray.shutdown()


@pytest.fixture
def places(machine: None, tmp_path: Path) -> Iterator[Any]:
    """Makes clusters of so many engines and verifiers, with the lines they told, and closes them."""
    made: list[Cluster] = []

    def cluster(engines: int, verifiers: int, weights: Any = "store") -> tuple[Cluster, list[str]]:
        lines: list[str] = []
        (tmp_path / "config.toml").touch()
        scale = ScaleConfig(engines=engines, verifiers=verifiers, weights=weights)
        made.append(Cluster(scale, Faults(tmp_path, lines.append)))
        return made[-1], lines

    yield cluster
    for each in made:
        each.close()


def requests() -> list[Request]:
    sampling = Sampling(max_tokens=5)
    return [Request(f"{i}+{i + 2}=", 1 + i % 3, sampling, seed=100 + i) for i in range(8)]


def same(found: list[list[Any]], wanted: list[list[Any]]) -> None:
    assert [[e.text for e in episodes] for episodes in found] == [[e.text for e in episodes] for episodes in wanted]
    for a, b in zip(chain(*found), chain(*wanted), strict=True):
        assert a.tokens.tolist() == b.tokens.tolist() and a.stop == b.stop
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-5)
        a.tokens[:0] = 0  # arrays can be written to, as those of any engine


def pid_of(member: Any) -> int:
    """The process of an actor."""
    return int(ray.get(member.handle.__ray_call__.remote(lambda _: os.getpid())))


@pytest.mark.parametrize("weights", ["store", "broadcast"])
@pytest.mark.slow
def test_same_losses_as_one_process(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten steps on a nano model in float32, two engines and two verifiers: losses equal to 1e-4, the same responses.

    So they are however weights travel; of a broadcast, all but the first come to both engines.
    """
    reached: list[int] = []
    end = Sender.end
    monkeypatch.setattr(Sender, "end", lambda self: [reached.append(len(found := end(self))), found][1])
    one = running.run(tmp_path / "one", train={"steps": 10})
    many = running.run(
        tmp_path / weights, train={"steps": 10}, scale={"engines": 2, "verifiers": 2, "weights": weights}
    )
    # Before warm-up's end, after it, and after each step; evaluations find the engines as steps left them.
    assert reached == ([] if weights == "store" else [0] + [2] * (len(reached) - 1))
    assert weights == "store" or len(reached) > 10
    a, b = running.metrics(one), running.metrics(many)
    assert [(row["stage"], row["step"]) for row in a] == [(row["stage"], row["step"]) for row in b]
    assert len([row for row in a if row["stage"] == "rl"]) == 10
    assert len({row["loss"] for row in a}) == len(a)  # every step is different, so that equality says something
    np.testing.assert_allclose([row["loss"] for row in a], [row["loss"] for row in b], atol=1e-4)
    for x, y in zip(running.tables(one, "rollouts").values(), running.tables(many, "rollouts").values(), strict=True):
        assert [(r["task_id"], r["response"], r["passed"]) for r in x] == [
            (r["task_id"], r["response"], r["passed"]) for r in y
        ]
    assert faults(many) == []


@pytest.mark.slow
def test_a_dead_engine_changes_nothing(places: Any, tmp_path: Path) -> None:
    """Engines are killed between calls and during one; what comes back is what a single engine gives."""
    cluster, lines = places(2, 0)
    cluster.join()
    policy = CausalLM.load(load_config({"model": MODEL}).model, seed=3)
    engine = RayEngine(policy, cluster, "hf", load_config({"model": MODEL}).model, max_rows=4, seed=0)
    with pytest.raises(RunError, match="before they were given weights"):
        engine.generate(requests())
    engine.follow(policy)  # of seed 3, which the actors, of seed 0, do not have
    wanted = HFEngine(policy).generate(requests())
    same(engine.generate(requests()), wanted)

    os.kill(pid_of(engine.crew.members[0]), signal.SIGKILL)
    same(engine.generate(requests()), wanted)

    struck: list[Any] = []

    def strike(member: Any, piece: Any) -> Any:
        ref = member.generate.remote(engine.version, piece)
        if not struck:
            struck.append(piece)
            ray.kill(member)
        return ref

    pieces = [requests()[:4], requests()[4:]]
    found = [e for piece in engine.crew.run(pieces, strike) for e in pickle.loads(piece)]
    same(found, wanted)
    assert engine.crew.deaths == len(lines) == len(faults(tmp_path)) == 2
    assert all("another takes its place" in line and "\n" not in line for line in lines)

    # The weights move on, and so do the engines.
    with torch.no_grad():
        for parameter in policy.module.parameters():
            parameter.mul_(1.5)
    engine.follow(policy)
    same(engine.generate(requests()), HFEngine(policy).generate(requests()))


@pytest.mark.slow
def test_a_broadcast_outlives_an_engine(places: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine dies in the middle of a broadcast: both answer as one does, and the next broadcast reaches both."""
    monkeypatch.setattr(packing, "packed", partial(packing.packed, size=2000))
    cluster, lines = places(2, 0, "broadcast")
    cluster.join()
    config = load_config({"model": MODEL}).model
    policy = CausalLM.load(config, seed=3)
    engine = RayEngine(policy, cluster, "hf", config, max_rows=4, seed=0)
    reached: list[int] = []
    end, send = Sender.end, Sender.send
    monkeypatch.setattr(Sender, "end", lambda self: [reached.append(len(found := end(self))), found][1])

    def follow() -> None:
        with torch.no_grad():
            for parameter in policy.module.parameters():
                parameter.mul_(1.1)
        wanted = HFEngine(policy).generate(requests())
        engine.follow(policy)
        for _ in range(1000):  # until who died has been missed and replaced
            same(engine.generate(requests()), wanted)
            if len(engine.crew.ready()) == 2:
                break

    follow()
    follow()
    assert reached == [0, 2] and not lines
    sent: list[Any] = []
    victim = pid_of(engine.crew.members[1])

    def strike(sender: Sender, data: Any) -> None:
        sent.append(data)
        if len(sent) == 3:
            os.kill(victim, signal.SIGKILL)
        send(sender, data)

    with monkeypatch.context() as patched:
        patched.setattr(Sender, "send", strike)
        follow()
    assert len(sent) > 5 and reached[2] < 2 and engine.crew.deaths == 1
    follow()
    assert reached[3] == 2 and len(lines) == 2 == len(faults(tmp_path)) and not any("\n" in line for line in lines)
    assert lines[0].startswith("the broadcast of weights to engines failed (")
    assert lines[0].endswith("); those that lack them take them from the object store")


DEADLY = """
import os, signal
from assay.types import Verdict

def deadly(task, response):
    if response == "strike":
        os.kill(os.getppid(), signal.SIGKILL)
    return Verdict.right() if response == task.reference else Verdict.wrong()
"""
"""A verifier that kills the actor that it is judged in the pool of, for one response."""


@pytest.mark.slow
def test_a_dead_verifier_is_an_abstention_never_wrong(places: Any, tmp_path: Path) -> None:
    """A response whose actors always die abstains with the reason; those it was sent with are judged."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    cluster, lines = places(0, 1)
    verifier = RayVerifier(cluster, f"{tmp_path / 'deadly.py'}:deadly")
    cluster.join()
    task = Task("t", "q", reference="a")
    verdicts = list(verifier.map([(task, "a"), (task, "b"), (task, "strike"), (task, "c")]))
    assert [v.passed for v in verdicts] == [True, False, None, False]
    assert "its worker failed 3 times" in verdicts[2].feedback
    assert len(lines) == 4  # once over two responses, then over this one alone
    assert verifier(task, "a") == Verdict.right()
    verifier.close()


@pytest.mark.slow
def test_gives_up_in_one_line(places: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that die whatever they are asked end the run with a line that says what died and how often."""
    monkeypatch.setattr(crew, "LIMIT", 1)
    cluster, lines = places(1, 0)
    cluster.join()
    doomed = crew.Crew(cluster, "engine", Doomed, lambda: (), 0, 1)
    with pytest.raises(RunError, match="3 engines died in a row, engine 0 last") as error:
        doomed.run([1, 2], lambda actor, piece: actor.work.remote(piece))
    assert "\n" not in str(error.value)
    assert len(lines) == 2


class Doomed:
    """An actor that starts and then dies of its first piece."""

    def start(self) -> None: ...

    def work(self, piece: int) -> int:
        os._exit(1)


@pytest.mark.slow
def test_too_few_places(places: Any) -> None:
    """A cluster that has less than is asked says what it has, in a line, and keeps nothing reserved."""
    cluster, _ = places(9, 3)
    with pytest.raises(UsageError, match=r"engines = 9 and scale.verifiers = 3 .* has 4 processors and 0 GPUs on 1 m"):
        cluster.join()
    few = Cluster(ScaleConfig(engines=1, nodes=3), Faults(Path("."), print))
    with pytest.raises(UsageError, match=r"scale.nodes = 3, and .* on 1 machines"):
        few.join()


@pytest.mark.slow
def test_a_lost_cluster_ends_the_call(places: Any, tmp_path: Path) -> None:
    """Once the watch has seen the cluster go, every call ends with what is gone, and an exit code that is retried."""
    cluster, lines = places(0, 1)
    verifier = RayVerifier(cluster)
    cluster.join()
    cluster._gone("the head")
    with pytest.raises(LostCluster, match=f"the head has gone; .* assay train --resume {tmp_path}") as error:
        verifier(Task("t", "q", reference="1", kind="exact"), "1")
    assert error.value.exit_code == 75
    assert not lines and [row["what"] for row in faults(tmp_path)] == ["the head"]
    cluster.lost = None


def test_no_answer_from_other_weights() -> None:
    """An engine refuses a call that wants other weights than it has, be they older or newer."""
    actor = EngineActor(("hf", {}, 1, 0), {})
    for wanted in (-1, 1):
        with pytest.raises(RunError, match="with weights 0 was asked for answers of weights"):
            actor.generate(wanted, [])


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 5), st.integers(1, 16))
def test_pieces_are_all_requests_in_order(rows: list[int], size: int, max_rows: int) -> None:
    """However requests are divided, each is in one piece, in order; a piece of several is no larger than allowed."""
    engine = RayEngine.__new__(RayEngine)
    engine.max_rows, engine.parts = max_rows, 2
    engine.crew = crew.Crew.__new__(crew.Crew)
    engine.crew.size = size
    asked = [Request("q", n, Sampling(), i) for i, n in enumerate(rows)]
    pieces = [asked[i] for i in engine._divide(asked)]
    assert [r for piece in pieces for r in piece] == asked
    assert all(piece for piece in pieces)
    for piece in pieces:
        assert len(piece) == 1 or sum(r.n for r in piece) <= max_rows
