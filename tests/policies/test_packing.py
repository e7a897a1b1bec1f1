"""Packed passes equal transformers' own, one sequence at a time."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from tiny import KINDS, TOKENIZER, batch_of, episode, ids, plain_logits, tiny

from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM, distinct
from assay.policies.loading import ModelConfig
from assay.types import Episode


def episodes_of_many_shapes(seed: int = 0) -> list[Episode]:
    """Three prompts of different lengths, one of them shared by four responses, in mixed order; one-token responses."""
    rng = np.random.default_rng(seed)
    a, b, c = (ids(rng, n) for n in (7, 1, 12))
    made = [episode(p, ids(rng, t)) for p, t in ((a, 5), (b, 1), (a, 1), (c, 9), (a, 5), (c, 2), (a, 14), (b, 6))]
    return [made[i] for i in rng.permutation(len(made))]


def assert_equal_gradients(model: torch.nn.Module, plain: torch.nn.Module) -> None:
    expected = dict(plain.named_parameters())
    compared = 0
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            assert expected[name].grad is None or not expected[name].grad.any(), name
            continue
        # Entries are sums over many tokens: rounding goes with the largest of them.
        scale = float(expected[name].grad.abs().max())
        assert float((parameter.grad - expected[name].grad).abs().max()) <= 1e-5 * max(scale, 1.0), name
        compared += 1
    assert compared


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_packed_pass_equals_transformers(kind: str, temperature: float) -> None:
    plain = tiny(kind)
    policy = CausalLM(deepcopy(plain), TOKENIZER)
    episodes = episodes_of_many_shapes()
    batch = batch_of(episodes)
    rng = torch.Generator().manual_seed(1)
    weights, entropy_weights = torch.randn(2, *batch.tokens.shape, generator=rng)

    output = policy.forward(batch, ("entropy",), temperature)
    (output.logprobs * weights + output.live["entropy"] * entropy_weights).sum().backward()
    loss = torch.zeros(())
    for i, e in enumerate(episodes):
        logp = (plain_logits(plain, e.prompt, e.tokens) / temperature).log_softmax(-1)
        chosen = logp.gather(-1, torch.from_numpy(e.tokens)[:, None])[:, 0]
        entropy = -(logp.exp() * logp).sum(-1)
        n = len(e.tokens)
        torch.testing.assert_close(output.logprobs[i, :n], chosen, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(output.live["entropy"][i, :n], entropy, rtol=1e-5, atol=1e-5)
        assert not output.logprobs[i, n:].any()
        assert not output.live["entropy"][i, n:].any()
        loss = loss + (chosen * weights[i, :n]).sum() + (entropy * entropy_weights[i, :n]).sum()
    loss.backward()
    assert_equal_gradients(policy.model, plain)


def test_nano_equals_transformers() -> None:
    policy = CausalLM.load(ModelConfig(device="cpu"), seed=3)
    plain = deepcopy(policy.model)
    plain.set_attn_implementation("eager")
    episodes = episodes_of_many_shapes()
    output = policy.forward(batch_of(episodes))
    output.logprobs.sum().backward()
    loss = torch.zeros(())
    for i, e in enumerate(episodes):
        chosen = plain_logits(plain, e.prompt, e.tokens).log_softmax(-1).gather(-1, torch.from_numpy(e.tokens)[:, None])
        torch.testing.assert_close(output.logprobs[i, : len(e.tokens)], chosen[:, 0], rtol=1e-5, atol=1e-5)
        loss = loss + chosen.sum()
    loss.backward()
    assert_equal_gradients(policy.model, plain)


def test_order_and_company_do_not_matter() -> None:
    policy = CausalLM(tiny("grouped queries"), TOKENIZER)
    episodes = episodes_of_many_shapes()
    together = policy.forward(batch_of(episodes)).logprobs
    order = np.random.default_rng(5).permutation(len(episodes))
    shuffled = policy.forward(batch_of([episodes[i] for i in order])).logprobs
    torch.testing.assert_close(shuffled, together[torch.from_numpy(order)], rtol=1e-5, atol=1e-6)
    for i, e in enumerate(episodes):
        alone = policy.forward(batch_of([e])).logprobs[0]
        torch.testing.assert_close(alone, together[i, : len(e.tokens)], rtol=1e-5, atol=1e-6)


def test_an_empty_response_has_no_logprobs_and_disturbs_nothing() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    full = episodes_of_many_shapes()
    with_empty = [*full[:2], episode(full[0].prompt, ids(np.random.default_rng(0), 0)), *full[2:]]
    logprobs = policy.forward(batch_of(with_empty)).logprobs
    assert not logprobs[2].any()
    kept = [i for i in range(len(with_empty)) if i != 2]
    torch.testing.assert_close(logprobs[kept], policy.forward(batch_of(full)).logprobs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("budget", [1, 20, 40, 1000])
def test_micro_batches_partition_the_rows(budget: int) -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    batch = batch_of(episodes_of_many_shapes())
    parts = policy.micro_batches(batch, budget)
    assert sorted(torch.cat(parts).tolist()) == list(range(len(batch)))
    for part in parts:
        chosen = [batch.episodes[i] for i in part.tolist()]
        prompts, _ = distinct([e.prompt for e in chosen])
        packed = sum(map(len, prompts)) + sum(len(e.tokens) for e in chosen)
        assert len(part) == 1 or packed <= budget
    if budget == 1:
        assert len(parts) == len(batch)
    if budget == 1000:
        assert len(parts) == 1


def test_micro_batches_count_the_prompts_of_a_group_that_differ() -> None:
    # Under hints, the episodes of one group have different prompts: each is computed.
    policy = CausalLM(tiny("llama"), TOKENIZER)
    rng = np.random.default_rng(0)
    batch = batch_of([episode(ids(rng, 10), ids(rng, 2)) for _ in range(4)])
    batch.prompt_group = torch.zeros(4, dtype=torch.int64)
    assert [len(p) for p in policy.micro_batches(batch, 25)] == [2, 2]


def test_gradients_of_micro_batches_add_up() -> None:
    whole, parted = (CausalLM(tiny("grouped queries"), TOKENIZER) for _ in range(2))
    batch = batch_of(episodes_of_many_shapes())
    whole.forward(batch).logprobs.sum().backward()
    for rows in parted.micro_batches(batch, 30):
        parted.forward(batch.rows(rows)).logprobs.sum().backward()
    assert_equal_gradients(parted.model, whole.model)


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        ("gemma2", {"head_dim": 8, "sliding_window": 64}, "capped attention scores"),
        ("gpt_oss", {"head_dim": 8, "num_local_experts": 4}, "attention sinks"),
    ],
)
def test_attention_that_cannot_be_packed_is_refused(kind: str, changes: dict, reason: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, kind, (kind, KINDS["llama"][1]))
        model = tiny(kind, **changes)
    with pytest.raises(UsageError, match=reason) as error:
        CausalLM(model, TOKENIZER)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
        ("mamba", {"hidden_size": 32, "num_hidden_layers": 2}),
    ],
)
def test_models_without_an_attention_function_are_refused(kind: str, config: dict) -> None:
    # ALiBi's slopes hardly show in twelve tokens of a random model, so only the count of layers gives it away.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, kind, (kind, {"vocab_size": len(TOKENIZER), **config}))
        model = tiny(kind)
    with pytest.raises(UsageError, match="2 of its 2 layers do not call an attention function"):
        CausalLM(model, TOKENIZER)


def test_layers_of_an_unknown_kind_are_refused() -> None:
    model = tiny("llama")
    model.config.layer_types = ["full_attention", "chunked_attention"]
    with pytest.raises(UsageError, match="layer 1 is of type chunked_attention"):
        CausalLM(model, TOKENIZER)


def test_a_window_that_is_not_passed_on_is_refused() -> None:
    model = tiny("llama")
    model.config.layer_types = ["sliding_attention", "full_attention"]
    with pytest.raises(UsageError, match="layer 0 does not pass its sliding window on"):
        CausalLM(model, TOKENIZER)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("gpt2", {"resid_pdrop": 0.5, "embd_pdrop": 0.5, "attn_pdrop": 0.5}), ("opt", {"dropout": 0.5, "layerdrop": 0.5})],
)
def test_dropout_of_the_model_is_off_while_it_learns(kind: str, changes: dict) -> None:
    policy = CausalLM(tiny(kind, **changes), TOKENIZER)
    assert policy.module.training
    batch = batch_of(episodes_of_many_shapes())
    assert torch.equal(policy.forward(batch).logprobs, policy.forward(batch).logprobs)


def test_gradient_checkpointing_recomputes_and_changes_no_gradient() -> None:
    plain = CausalLM.load(ModelConfig())
    saving = CausalLM.load(ModelConfig(gradient_checkpointing=True))
    calls = []
    saving.model.model.layers[0].mlp.register_forward_pre_hook(lambda *_: calls.append(1))
    batch = batch_of(episodes_of_many_shapes())
    for policy in (plain, saving):
        policy.forward(batch).logprobs.sum().backward()
    assert len(calls) == 2
    assert_equal_gradients(saving.model, plain.model)
