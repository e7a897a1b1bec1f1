"""The fused RMSNorm against autograd, and which modules get it."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch.nn.functional import rms_norm
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from assay.policies.fused.norm import RMSNorm, fuse_norms


@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 3, 7), (0, 7)])
def test_value_and_gradients_equal_torchs(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(7, dtype=torch.float64, requires_grad=True)
    got, expected = RMSNorm.apply(x, weight, 1e-3), rms_norm(x, (7,), weight, 1e-3)
    torch.testing.assert_close(got, expected)
    upstream = torch.randn(shape, dtype=torch.float64)
    inputs = (x, weight)
    ours, torchs = torch.autograd.grad(got, inputs, upstream), torch.autograd.grad(expected, inputs, upstream)
    torch.testing.assert_close(ours, torchs)


def test_a_row_of_zeros_has_a_finite_gradient() -> None:
    x = torch.zeros(2, 4, requires_grad=True)
    RMSNorm.apply(x, torch.ones(4), 1e-6).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_only_the_same_norm_is_replaced_and_weights_are_kept() -> None:
    plain, shifted = LlamaRMSNorm(8), Gemma2RMSNorm(8)
    torch.nn.init.normal_(plain.weight)
    before = [plain.weight.clone(), shifted.weight.clone()]
    x = torch.randn(3, 8)
    expected = plain(x)
    assert fuse_norms(torch.nn.ModuleList([plain, shifted])) == 1
    assert torch.equal(plain.weight, before[0])
    assert torch.equal(shifted.weight, before[1])
    torch.testing.assert_close(plain(x), expected)
    assert "RMSNormBackward" in type(plain(x).grad_fn).__name__
    assert "forward" not in vars(shifted)


def test_a_copy_uses_its_own_weights() -> None:
    norm = LlamaRMSNorm(8)
    fuse_norms(norm)
    copy = deepcopy(norm)
    with torch.no_grad():
        copy.weight.zero_()
    assert copy(torch.ones(1, 8)).abs().max() == 0
    assert norm(torch.ones(1, 8)).abs().max() > 0


def test_other_precisions_are_left_alone() -> None:
    assert fuse_norms(LlamaRMSNorm(8).to(torch.bfloat16)) == 0
