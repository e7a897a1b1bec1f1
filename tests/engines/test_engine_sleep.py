"""When an engine beside the policy is asleep, by an engine of our own in vLLM's place; and which GPU vLLM takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import running
import torch

from assay.engines.base import Request
from assay.engines.hf import HFEngine
from assay.engines.vllm.describe import architecture, precision
from assay.engines.vllm.device import visible_from
from assay.engines.vllm.engine import VLLMEngine, vllm_engine
from assay.engines.vllm.served import VLLMServerEngine
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.training import build, loop
from assay.types import Episode

STAGES = {"warmup": {"steps": 1}, "train": {"steps": 2, "epochs": 1, "mini_batches": 2}, "evaluate": {"every": 1}}
GENERATE, ANSWERS, LEARNS = "generate", "wake follow generate", "sleep update update"


class Sleeper(HFEngine):
    """Follows a policy, and loses its weights when it sleeps. What is done with it goes to ``CALLS``."""

    CALLS: ClassVar[list[str]] = []

    def __init__(self, policy: CausalLM):
        super().__init__(policy)
        self.awake, self.weights = True, False

    def follow(self, policy: CausalLM) -> None:
        assert self.awake
        self.weights = True
        self.policy.module.load_state_dict(policy.module.state_dict())
        self.CALLS.append("follow")

    def sleep(self, level: int = 1) -> None:
        assert self.awake
        self.awake, self.weights = False, level < 2
        self.CALLS.append("sleep")

    def wake(self) -> None:
        assert not self.awake
        self.awake = True
        self.CALLS.append("wake")

    def close(self) -> None:
        self.CALLS.append("close")

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        assert self.awake and self.weights
        if self.CALLS[-1] != GENERATE:  # an evaluation comes in parts
            self.CALLS.append(GENERATE)
        return super().generate(requests)


def calls(folder: Path, monkeypatch: pytest.MonkeyPatch, **sections: Any) -> str:
    """Run; return what was done with the engine, and when the weights were changed."""
    done: list[str] = []
    monkeypatch.setattr(Sleeper, "CALLS", done)
    monkeypatch.setattr(build, "engine_of", lambda policy, *_: Sleeper(policy.twin()))
    inner: Callable[..., Any] = loop.update
    monkeypatch.setattr(loop, "update", lambda *args, **options: [done.append("update"), inner(*args, **options)][1])
    running.run(folder, **{**STAGES, **sections})
    return " ".join(done)


def test_it_sleeps_while_the_weights_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps through all updates of a step, is woken for what it is asked next, and gets new weights then. In the
    first RL step it is asked without an update between: for the probe, the evaluation before, and the first batch."""
    expected = f"sleep update {ANSWERS} {LEARNS} {ANSWERS} {LEARNS} {ANSWERS} close"
    assert calls(tmp_path / "run", monkeypatch) == expected


def test_one_that_is_asked_ahead_never_sleeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = calls(tmp_path / "run", monkeypatch, overlap={"staleness": 1})
    assert "sleep" not in done and "wake" not in done
    assert done.count("follow") == 3, "before each of two steps, and for the evaluation at the end"


@pytest.mark.parametrize("sleeps", [True, False])
@pytest.mark.parametrize("server", [True, False])
def test_vllm_gets_the_memory_that_torch_keeps(server: bool, sleeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch holds what an update has freed; vLLM could not take it otherwise. On a CPU, and where sleep mode is
    switched off, nothing is called."""
    done: list[str] = []
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: done.append("empty"))
    vllm: Any = SimpleNamespace(sleeps=sleeps, sleep=lambda level: done.append(f"sleep {level}"))
    vllm.wake = vllm.wake_up = lambda: done.append("wake")
    engine: Any = object.__new__(VLLMServerEngine if server else VLLMEngine)
    vars(engine).update({"server": vllm, "_llm": vllm, "_sleeps": sleeps})
    engine.sleep(2)
    engine.wake()
    assert done == (["sleep 2", "empty", "wake"] if sleeps else [])


@pytest.mark.parametrize("sharded", [False, True])
def test_vllm_is_told_of_the_model_beneath_the_shards(sharded: bool) -> None:
    """Sharding renames the class of the model, and keeps weights in float32 whatever it computes in."""
    from torch.distributed.fsdp import FSDPModule

    policy: Any = CausalLM.load(ModelConfig(source="nano", device="cpu", dtype="float32" if sharded else "bfloat16"))
    assert architecture(policy.model) == "LlamaForCausalLM"
    if sharded:
        kind = type(policy.model)
        policy.model.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})
        policy.dtype = torch.bfloat16
    assert architecture(policy.model) == "LlamaForCausalLM"
    assert precision(policy) == "bfloat16"


@pytest.mark.parametrize(
    ("device", "seen", "expected"),
    [
        (0, "4,5,6", {}),
        (2, "4,5,6", {"CUDA_VISIBLE_DEVICES": "6"}),
        (1, "GPU-a,GPU-b,GPU-c", {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-c"}),
    ],
)
def test_a_server_sees_the_gpu_of_the_policy_first(device: int, seen: str, expected: dict[str, str]) -> None:
    assert visible_from(device, {"CUDA_VISIBLE_DEVICES": seen}) == expected


def test_a_server_counts_gpus_where_all_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert visible_from(2, {}) == {"CUDA_VISIBLE_DEVICES": "2,3"}
    assert visible_from(0, {}) == {}


def test_several_devices_are_the_servers() -> None:
    """Said before vLLM is looked for, which need not be installed."""
    policy = CausalLM.load(ModelConfig(source="nano", device="cpu"))
    with pytest.raises(UsageError, match="tensor_parallel_size has to be 1; engine vllm-server takes"):
        vllm_engine(policy=policy, extra={"tensor_parallel_size": 2})
