"""Batches asked ahead by trainers that share a run: the losses of one process, and no prompt lost or doubled."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import running
import tomli_w
from ranked import ranked, train
from running import recipe

import assay
from assay import registry
from assay.config import ModelConfig
from assay.engines.base import Request
from assay.engines.hf import HFEngine
from assay.policies.causal_lm import CausalLM
from assay.records.checkpoints import checkpoints, last_checkpoint
from assay.registry import part
from assay.scale.ray.weights import take
from assay.types import Episode

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="ranks are started by forking")

NANO = {"nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 24}}


class Beside:
    """Generates with a model of its own, as vLLM does, and is given the policy's weights."""

    def __init__(self, policy: Any, max_rows: int):
        self.policy, self.own = policy, CausalLM.load(ModelConfig.model_validate(NANO), 7)
        self.own.module.requires_grad_(False).eval()
        self.engine = HFEngine(self.own, max_rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def follow(self, policy: Any) -> None:
        take(self.own.model, policy.merged_state())

    def close(self) -> None:
        """Nothing was started."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return self.engine.generate(requests)


def beside(policy: Any, max_rows: int) -> Beside:
    return Beside(policy, max_rows)


def written(folder: Path, staleness: int, parts: int = 1, steps: int = 6, **sections: Any) -> str:
    file = folder.with_suffix(".toml")
    base: dict[str, Any] = {
        "model": NANO,
        "warmup": {"steps": 1, "batch": 3},
        "engine": {"name": "test_beside"},
        "overlap": {"staleness": staleness, "verify_chunks": parts},
        "train": {"steps": steps, "lr": 1e-3, "mini_batches": 2, "epochs": 1, "token_budget": 40},
        "evaluate": {"every": 0, "samples": 1},
        "run": {"checkpoint_every": 1},
    }
    file.write_text(tomli_w.dumps(recipe(folder, **{**base, **sections})))
    return str(file)


def rank(log: Path, *arguments: str) -> None:
    """In a rank: ``assay train``."""
    part("engine", "test_beside")(beside)
    train(log, *arguments)


def together(folder: Path, *arguments: str) -> None:
    log = folder.with_name(f"{folder.name}.log")
    codes = ranked(2, rank, log, *arguments, "scale.trainers=2")
    assert codes == [0, 0], "\n".join(log.with_name(f"{log.name}.{i}").read_text() for i in range(2))


def stopped(log: Path, *arguments: str) -> None:
    """In a rank: ``assay train``; rank 1 alone gets Ctrl-C, in the third step."""
    from assay.training.loop import Trainer

    original = Trainer.log

    def logged(self: Trainer, *found: Any) -> None:
        original(self, *found)
        if self.ranks.rank == 1 and (self.stage, self.step) == ("rl", 3):
            os.kill(os.getpid(), signal.SIGINT)

    Trainer.log = logged  # type: ignore[method-assign]
    rank(log, *arguments)


def consumed(folder: Path) -> list[tuple[int, str, str]]:
    """Step, prompt and response of everything that was learned from, in order."""
    tables = running.tables(folder, "rollouts").values()
    return [(row["step"], row["task_id"], row["response"]) for rows in tables for row in rows]


def assert_alike(folder: Path, other: Path) -> None:
    rows, same = running.metrics(folder), running.metrics(other)
    assert [(r["stage"], r["step"]) for r in rows] == [(r["stage"], r["step"]) for r in same]
    assert [r["loss"] for r in rows] == pytest.approx([r["loss"] for r in same], abs=1e-4)
    assert [r.get("staleness") for r in rows] == [r.get("staleness") for r in same]
    assert consumed(folder) == consumed(other)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    """The engine, in this process, as long as these tests run."""
    part("engine", "test_beside")(beside)
    yield
    del registry._PARTS["engine"]["test_beside"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Runs of one process, by staleness."""
    root = tmp_path_factory.mktemp("alone")
    for staleness in (1, 2):
        assay.train(written(root / f"run{staleness}", staleness), quiet=True)
    return {staleness: root / f"run{staleness}" for staleness in (1, 2)}


@pytest.mark.slow
@pytest.mark.parametrize(("staleness", "parts"), [(1, 1), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_two_trainers_with_staleness_are_one(
    staleness: int, parts: int, alone: dict[int, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    together(folder, written(folder, staleness, parts))
    assert_alike(folder, alone[staleness])
    rows = [r for r in running.metrics(folder) if r["stage"] == "rl"]
    assert [r["staleness"] for r in rows] == [min(i, staleness) for i in range(6)]
    assert len({r["loss"] for r in rows}) == 6, "every step has a loss of its own"
    # Four prompts a step, three responses each: none twice in a step, none left out.
    assert [sum(1 for s, *_ in consumed(folder) if s == step) for step in range(1, 7)] == [12] * 6


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2])
def test_no_prompt_is_lost_or_doubled_across_a_checkpoint(size: int, alone: dict[int, Path], tmp_path: Path) -> None:
    """Two trainers stop in mid-flight; as many, or one, go on from what they stored."""
    import torch

    folder, log = tmp_path / "run", tmp_path / "log"
    assert ranked(2, stopped, log, written(folder, 2), "scale.trainers=2") == [130, 130]
    assert checkpoints(folder)[-1].name == "rl-000003"
    flights = torch.load(last_checkpoint(folder)[2] / "trainer.pt", weights_only=True)["in_flight"]
    assert [(flight["step"], flight["version"]) for flight in flights] == [(3, 1), (4, 2)]
    if size == 2:
        together(folder, "--resume", str(folder))
    else:
        assay.train(resume=folder, overrides=["scale.trainers=1"], quiet=True)
    assert_alike(folder, alone[2])
