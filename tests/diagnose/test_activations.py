"""Activation checkpointing keeps less for the backward pass and changes no loss and no gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny import batch_of, episode
from torch import Tensor

from assay.batch import Batch
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig, ModelConfig
from assay.policies.nano import NanoConfig


def batch() -> Batch:
    rng = np.random.default_rng(0)
    prompts = [rng.integers(4, 12, n) for n in (5, 9)]
    return batch_of([episode(prompts[i % 2], rng.integers(4, 12, int(rng.integers(8, 20)))) for i in range(8)])


def kept(policy: CausalLM, data: Batch) -> tuple[int, Tensor, dict[str, Tensor]]:
    """Bytes that a forward pass saves for the backward pass, weights aside; its log-probabilities and gradients."""
    weights = {p.untyped_storage().data_ptr() for p in policy.module.parameters()}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logprobs = policy.forward(data).logprobs
    size = sum(saved.values())
    (logprobs * torch.linspace(-1, 1, logprobs.numel()).view_as(logprobs)).sum().backward()
    gradients = {n: p.grad for n, p in policy.module.named_parameters() if p.grad is not None}
    return size, logprobs.detach(), gradients


@pytest.mark.parametrize("layers", [2, 6])
@pytest.mark.parametrize("lora", [None, LoraConfig(rank=2)])
def test_losses_and_gradients_are_equal_and_less_is_kept(layers: int, lora: LoraConfig | None) -> None:
    if lora:
        pytest.importorskip("peft", reason="PEFT is not installed")
    nano = NanoConfig(hidden=32, layers=layers, heads=2, context=64)
    policies = [CausalLM.load(ModelConfig(nano=nano, lora=lora, gradient_checkpointing=c)) for c in (False, True)]
    generator = torch.Generator().manual_seed(0)
    for a, b in zip(*(p.module.parameters() for p in policies), strict=True):
        a.data += 0.02 * torch.randn(a.shape, generator=generator)  # adapters start at zero
        b.data.copy_(a.data)
    (whole, expected, wanted), (less, logprobs, gradients) = (kept(p, batch()) for p in policies)
    assert torch.equal(logprobs, expected)
    assert gradients.keys() == wanted.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[name], rtol=1e-5, atol=1e-6)
    # What every layer keeps beyond its input is gone; embeddings, the last norm and the logits stay.
    assert less < whole / layers


def test_what_a_layer_adds_is_its_input() -> None:
    data = batch()
    sizes = []
    for layers in (2, 5):
        nano = NanoConfig(hidden=32, layers=layers, heads=2, context=64)
        sizes.append(kept(CausalLM.load(ModelConfig(nano=nano, gradient_checkpointing=True)), data)[0])
    prompts = {e.prompt.tobytes(): len(e.prompt) for e in data.episodes}
    tokens = sum(prompts.values()) + sum(len(e.tokens) - 1 for e in data.episodes)
    assert sizes[1] - sizes[0] == 3 * tokens * 32 * 4
