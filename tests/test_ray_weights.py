"""Weights packed into blocks, and put into a model again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import KINDS, TOKENIZER, batch_of, episode, ids, plain_logits, tiny

from assay.errors import RunError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig
from assay.policies.merge import merged_state
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
