"""Weights packed into blocks, and put into a model again."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import KINDS, TOKENIZER, batch_of, episode, ids, plain_logits, tiny

from assay import registry
from assay.config import load_config
from assay.errors import RunError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig
from assay.policies.merge import merged_state
from assay.scale.ray.engine import EngineActor, RayEngine, plain
from assay.scale.ray.weights import blocks, take

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.float64]


@given(
    st.lists(st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=3)), max_size=8),
    st.integers(1, 200),
)
@settings(deadline=None)
def test_blocks_hold_what_was_packed(what: list[tuple[Any, list[int]]], size: int) -> None:
    """Names, types, shapes and bits come back in order, whatever the size of a block; only one tensor may exceed it."""
    given_ = {f"w{i}": (torch.randn(shape) * 3).to(dtype) for i, (dtype, shape) in enumerate(what)}
    packed = list(blocks(given_.items(), size))
    found = [named for block in packed for named in block.tensors()]
    assert [name for name, _ in found] == list(given_)
    for name, tensor in found:
        assert tensor.dtype == given_[name].dtype and tensor.shape == given_[name].shape
        assert torch.equal(tensor, given_[name])
    assert all(len(block.data) <= size or len(block.what) == 1 for block in packed)


def test_blocks_do_not_change_with_the_policy() -> None:
    """A block is a copy: what is learned after it was packed is not in it."""
    weight = torch.ones(3)
    [block] = blocks([("w", weight)])
    weight += 1
    assert dict(block.tensors())["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [k for k in KINDS if "window" not in k])
def test_another_model_takes_them(kind: str) -> None:
    """A model with other weights has the first one's logits once it has taken its weights, tied or renamed ones too."""
    rng = np.random.default_rng(0)
    first, second = tiny(kind), tiny(kind)
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.normal_()
    take(second, (named for block in blocks(merged_state(first), 5000) for named in block.tensors()))
    prompt, tokens = ids(rng, 5), ids(rng, 4)
    torch.testing.assert_close(plain_logits(second, prompt, tokens), plain_logits(first, prompt, tokens))


def test_adapters_travel_merged() -> None:
    """A model without adapters that takes an adapted policy's weights has the adapted logits."""
    pytest.importorskip("peft", reason="the extra peft is not installed")
    rng = np.random.default_rng(0)
    policy = CausalLM(tiny("qwen2"), TOKENIZER, chat=False, lora=LoraConfig(rank=2))
    with torch.no_grad():
        for name, parameter in policy.module.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3)
    plain = CausalLM(tiny("qwen2"), TOKENIZER, chat=False)
    batch = batch_of([episode(ids(rng, 5), ids(rng, 4)), episode(ids(rng, 3), ids(rng, 6))])
    with torch.no_grad():
        before, wanted = plain.forward(batch).logprobs, policy.forward(batch).logprobs
        take(plain.model, policy.merged_state())
        assert not torch.allclose(before, wanted, atol=1e-2)
        torch.testing.assert_close(plain.forward(batch).logprobs, wanted, atol=1e-5, rtol=1e-4)


class ByName:
    """An engine that keeps weights of its own, of which it knows the names alone."""

    by_name = True

    def __init__(self, policy: Any):
        self.policy, self.weights = policy, {}
        self.follow(policy)

    def follow(self, policy: Any) -> None:
        self.weights = {name: weight.clone() for name, weight in policy.merged_state()}

    def close(self) -> None: ...


def test_an_actor_whose_engine_has_weights_of_its_own_holds_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is handed what was sent; its policy has no weights, and still reads and writes tokens."""
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda block: block))
    model = {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}, "device": "cpu"}
    config = load_config({"model": model}).model
    policy = CausalLM.load(config, seed=3)
    parts = registry._PARTS["engine"]
    monkeypatch.setitem(parts, "by_name", lambda policy, max_rows: ByName(policy))
    actor = EngineActor(("by_name", plain(config), 4, 0), {})
    actor.start()
    other = dict(actor.engine.weights)
    assert {p.device.type for p in actor.policy.module.parameters()} == {"meta"}
    assert actor.policy.decode(actor.policy.encode("1+2=")) == "1+2="
    for round_ in (1, 2):
        assert actor.take(round_, list(blocks(policy.merged_state(), 3000))) == round_
        wanted = dict(policy.merged_state())
        assert actor.engine.weights.keys() == wanted.keys() == other.keys()
        assert all(torch.equal(actor.engine.weights[name], wanted[name]) for name in wanted)
        with torch.no_grad():
            for parameter in policy.module.parameters():
                parameter.mul_(2)
    assert any(not torch.equal(other[name], wanted[name]) for name in wanted)
    assert {p.device.type for p in actor.policy.module.parameters()} == {"meta"}
    name = next(iter(wanted))
    for wrong in (
        {k: v for k, v in wanted.items() if k != name},
        wanted | {"more": torch.zeros(1)},
        wanted | {name: torch.zeros(2, 2)},
    ):
        with pytest.raises(RunError, match="weights of another model"):
            actor.take(3, list(blocks(wrong.items())))
    assert actor.version == 2


@pytest.mark.parametrize(("alone", "option", "wanted"), [(True, {}, 0.92), (True, {"x": 0.5}, 0.5), (False, {}, None)])
def test_an_engine_takes_the_gpu_that_is_its_own(
    alone: bool, option: dict[str, float], wanted: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM is told to take what the plan counts on, unless the recipe says otherwise or the GPU is shared."""
    seen: list[float | None] = []

    def like_vllm(policy: Any, max_rows: int, gpu_memory_utilization: float | None = None) -> ByName:
        seen.append(gpu_memory_utilization)
        return ByName(policy)

    monkeypatch.setitem(registry._PARTS["engine"], "like_vllm", like_vllm)
    config = load_config({"model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}}}).model
    cluster: Any = SimpleNamespace(own_gpus=alone, scale=SimpleNamespace(engines=1))
    spec = {"name": "like_vllm", **({"gpu_memory_utilization": option["x"]} if option else {})}
    engine = RayEngine(None, cluster, spec, config, max_rows=4)
    description, _ = engine.crew.arguments()
    EngineActor(description, {}).start()
    assert seen == [wanted]
    assert "gpu_memory_utilization" not in RayEngine(None, cluster, "hf", config, 4).crew.arguments()[0][0]


def test_weights_of_another_model_are_refused() -> None:
    """A missing weight, one too many, or one of another shape: an error that names it, and nothing is loaded."""
    model = tiny("llama")
    whole = dict(merged_state(model))
    name = next(iter(whole))
    kept = whole[name].clone()
    for wrong in (
        {k: v for k, v in whole.items() if k != name},
        whole | {"more": torch.zeros(1)},
        whole | {name: torch.zeros(2, 2)},
    ):
        with pytest.raises(RunError, match="weights of another model"):
            take(model, wrong.items())
    assert torch.equal(dict(merged_state(model))[name], kept)
