"""Compiled layers compute what the others do, with one compilation for batches of all sizes."""

from __future__ import annotations

import functools
from functools import partial

import numpy as np
import pytest
import torch
from tiny import TOKENIZER, batch_of, episode, ids, tiny
from torch._dynamo.utils import counters

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies import compiling
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig, ModelConfig
from assay.policies.nano import NanoConfig

NANO = NanoConfig(hidden=32, layers=2, heads=2, context=64)


def batch(seed: int, prompts: int = 3) -> Batch:
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(prompts):
        prompt = rng.integers(4, 12, int(rng.integers(3, 9)))
        episodes += [episode(prompt, rng.integers(4, 12, int(rng.integers(2, 12)))) for _ in range(3)]
    return batch_of(episodes)


def step(policy: CausalLM, data: Batch) -> list[torch.Tensor]:
    """Log-probabilities, entropies and the gradient of something that depends on both."""
    policy.model.zero_grad()
    out = policy.forward(data, ("entropy",), 0.9)
    (out.logprobs.sum() - out.live["entropy"].square().sum()).backward()
    gradients = [p.grad for p in policy.model.parameters() if p.grad is not None]
    return [out.logprobs.detach(), out.live["entropy"].detach(), torch.cat([g.flatten() for g in gradients])]


def assert_equal(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert float((a - b).abs().max() / b.abs().max().clamp(min=1)) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_compiled_policy_equals_the_other(checkpointing: bool) -> None:
    options = {"nano": NANO, "gradient_checkpointing": checkpointing}
    plain, fast = (CausalLM.load(ModelConfig(**options, compile=c)) for c in (False, True))
    assert fast.head.compiled
    for seed in (0, 1):
        assert_equal(step(fast, batch(seed)), step(plain, batch(seed)))
    graphs = counters["stats"]["unique_graphs"]
    assert graphs > 0
    # Other sizes, passes without a gradient and a copy's weights compile nothing anew.
    for seed, prompts in ((2, 2), (3, 7)):
        assert_equal(step(fast, batch(seed, prompts)), step(plain, batch(seed, prompts)))
    with torch.no_grad():
        torch.testing.assert_close(fast.forward(batch(4)).logprobs, plain.forward(batch(4)).logprobs)
    twin = fast.twin()
    with torch.no_grad():
        for a, b in zip(twin.model.parameters(), plain.model.parameters(), strict=True):
            b.add_(0.01 * torch.randn(b.shape, generator=torch.Generator().manual_seed(0)))
            a.copy_(b)
    assert_equal(step(twin, batch(5)), step(plain, batch(5)))
    assert counters["stats"]["unique_graphs"] == graphs


@pytest.mark.slow
def test_a_machine_that_cannot_compile_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> object:
        raise RuntimeError("no g++ found\nand a trace")

    monkeypatch.setattr(compiling, "compiled", broken)
    with pytest.raises(
        UsageError, match=r"model.compile: torch.compile does not work here .*: no g\+\+ found"
    ) as error:
        CausalLM.load(ModelConfig(nano=NANO, compile=True))
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grouped queries", "gemma3, window 5", "gpt2", "mixtral", "adapters"])
def test_layers_of_other_models_are_traced_faithfully(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The tracer without the code generator, which would take a minute each.
    monkeypatch.setattr(compiling, "compiled", functools.cache(partial(torch.compile, backend="eager", dynamic=True)))
    lora = None
    if kind == "adapters":
        pytest.importorskip("peft", reason="PEFT is not installed")
        kind, lora = "llama", LoraConfig(rank=2)
    plain, fast = (CausalLM(tiny(kind), TOKENIZER, lora=lora, compile=c) for c in (False, True))
    for a, b in zip(plain.module.parameters(), fast.module.parameters(), strict=True):
        b.data.copy_(a.data)
    fast.compile = False  # of the head, which is not a layer
    rng = np.random.default_rng(0)
    for sizes in ((5, 8, 2), (9, 1, 14)):
        prompt = ids(rng, sizes[0])
        data = batch_of([episode(prompt, ids(rng, n)) for n in sizes])
        assert_equal(step(fast, data), step(plain, data))
