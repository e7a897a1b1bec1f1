"""What an inference engine loads is the policy: the base model's names, the adapters' effect, nothing else."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import KINDS, TOKENIZER, batch_of, episode, ids, plain_logits, tiny

from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig


def adapted(kind: str, dtype: torch.dtype = torch.float32, **lora: object) -> CausalLM:
    """A policy whose adapters do something; they start as zero."""
    pytest.importorskip("peft", reason="PEFT is not installed")
    policy = CausalLM(tiny(kind).to(dtype), TOKENIZER, lora=LoraConfig(rank=3, **lora))  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(1)
    for name, parameter in policy.model.named_parameters():
        if "lora_B" in name:
            parameter.data = 0.1 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return policy


def plainly_loaded(kind: str, policy: CausalLM, folder: Path) -> torch.nn.Module:
    """A model that transformers made of the merged weights, written as its files are, by nobody but safetensors."""
    from transformers import AutoModelForCausalLM

    state = {name: weight.contiguous() for name, weight in policy.merged_state()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    tiny(kind).config.save_pretrained(folder)
    model, found = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not found["missing_keys"]
    assert not found["unexpected_keys"]
    return model


# PEFT adapts a mixture's experts where they are named; its own names for them do not match its rank pattern.
@pytest.mark.filterwarnings("ignore:.*did not match any targeted module")
@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False")
@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma3, window 5", "gpt2", "mixtral"])
def test_a_base_model_with_the_merged_weights_is_the_policy(kind: str, tmp_path: Path) -> None:
    policy, rng = adapted(kind), np.random.default_rng(0)
    episodes = [episode(ids(rng, p), ids(rng, t)) for p, t in ((5, 6), (3, 1), (9, 4))]
    expected = policy.forward(batch_of(episodes)).logprobs
    fresh, before = plainly_loaded(kind, policy, tmp_path), tiny(kind)
    shift = 0.0
    for i, e in enumerate(episodes):
        target = torch.from_numpy(e.tokens)[:, None]
        found, unadapted = (
            plain_logits(m, e.prompt, e.tokens).log_softmax(-1).gather(-1, target)[:, 0] for m in (fresh, before)
        )
        torch.testing.assert_close(found, expected[i, : len(e.tokens)], atol=2e-5, rtol=1e-5)
        shift = max(shift, float((unadapted - found).detach().abs().max()))
    assert shift > 0.05  # the adapters change the policy


@pytest.mark.parametrize("kind", ["llama", "qwen2", "mixtral"])
def test_without_adapters_they_are_the_saved_weights(kind: str, tmp_path: Path) -> None:
    policy = CausalLM(tiny(kind), TOKENIZER)
    policy.save(tmp_path)
    saved, merged = load_file(tmp_path / "model.safetensors"), dict(policy.merged_state())
    assert merged.keys() == saved.keys()
    assert all(torch.equal(merged[k], saved[k]) for k in saved)


def test_merging_changes_nothing_that_trains_and_needs_no_gradient() -> None:
    policy = adapted("qwen2")
    before = deepcopy(policy.model.state_dict())
    names = [name for name, weight in policy.merged_state() if not weight.requires_grad]
    assert len(names) == len(set(names)) == len(list(policy.merged_state()))
    assert "lm_head.weight" not in names  # it is the embedding
    after = policy.model.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)


def test_a_bfloat16_weight_is_rounded_once() -> None:
    policy = adapted("llama", torch.bfloat16, alpha=5.0)
    layer = policy.model.model.layers[1].mlp.down_proj
    a, b = layer.lora_A["default"].weight.double(), layer.lora_B["default"].weight.double()
    exact = layer.base_layer.weight.double() + (5.0 / 3) * b @ a
    merged = dict(policy.merged_state())["model.layers.1.mlp.down_proj.weight"]
    assert merged.dtype == torch.bfloat16
    # Half a unit in the last place: eight bits of significand.
    assert bool(((merged.double() - exact).abs() <= exact.abs() * 2**-8 * 1.001).all())
    assert not torch.equal(merged, layer.base_layer.weight)


def test_an_adapted_embedding_that_is_the_output_layer_is_refused() -> None:
    assert KINDS["qwen2"][1]["tie_word_embeddings"]
    with pytest.warns(UserWarning, match="tie_word_embeddings"):
        policy = adapted("qwen2", targets=["embed_tokens", "q_proj"])
    with pytest.raises(UsageError, match="shares with its output layer"):
        list(policy.merged_state())
