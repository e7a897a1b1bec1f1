"""The fused rotation: transformers' own numbers, gradients by finite differences, and only where it applies."""

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from assay.policies.fused.rotary import Rotate, fuse_rotary, rotate_both


def inputs(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, h, 5, 6, generator=generator, dtype=dtype) for h in (4, 2))
    angles = torch.randn(1, 5, 3, generator=generator, dtype=dtype).repeat(1, 1, 2)
    return q, k, angles.cos(), angles.sin()


def test_equals_transformers():
    for ours, theirs in zip(rotate_both(*inputs()), apply_rotary_pos_emb(*inputs()), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_gradient_by_finite_differences():
    q, _, cos, _ = inputs(torch.float64)
    # Angles that differ between the halves, which no model has, would hide a mix-up of the two if left equal.
    angles = torch.randn(cos.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rotate = lambda x: Rotate.apply(x, angles.cos().unsqueeze(1), angles.sin().unsqueeze(1))  # noqa: E731
    assert torch.autograd.gradcheck(rotate, [q.requires_grad_()])


def llama(**changes):
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, vocab_size=11, **changes
    )
    return AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("changes", [{}, {"num_key_value_heads": 1}])
def test_a_fused_model_computes_the_same(changes):
    model = llama(**changes)
    ids = torch.arange(9)[None]
    before = model(input_ids=ids, labels=ids)
    before.loss.backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    assert fuse_rotary(model) == 2
    after = model(input_ids=ids, labels=ids)
    after.loss.backward()
    torch.testing.assert_close(after.logits, before.logits)
    for p, expected in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(p.grad, expected, atol=1e-6, rtol=1e-4)


def test_a_model_that_rotates_otherwise_is_left_alone():
    from transformers.models.gptj.configuration_gptj import GPTJConfig

    other = GPTJConfig(n_embd=16, n_layer=1, n_head=2, vocab_size=11, rotary_dim=4)
    assert fuse_rotary(AutoModelForCausalLM.from_config(other)) == 0
    assert fuse_rotary(llama().to(torch.bfloat16)) == 0
