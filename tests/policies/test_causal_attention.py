"""Short rows attend by plain matrix products: the same numbers and gradients as the library's kernel."""

import pytest
import torch
import torch.nn.functional as F

from assay.policies.attention import causal as module
from assay.policies.attention.causal import causal, short_causal


def inputs(n=3, heads=4, shared=1, length=9, dim=8, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = [(n, heads, length, dim), *[(n, heads // shared, length, dim)] * 2]
    return [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]


def by_hand(q, k, v, scale, window):
    """One query at a time, as the definition reads."""
    shared = q.shape[1] // k.shape[1]
    out = torch.zeros_like(q)
    for n in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                seen = slice(0 if window is None else max(0, i - window + 1), i + 1)
                weights = (scale * k[n, h // shared, seen] @ q[n, h, i]).softmax(0)
                out[n, h, i] = weights @ v[n, h // shared, seen]
    return out


@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("window", [None, 1, 4, 100])
def test_equals_the_definition_and_the_kernel(shared, window, monkeypatch):
    q, k, v = inputs(shared=shared)
    upstream = torch.randn(q.shape, generator=torch.Generator().manual_seed(1))
    short = causal(q, k, v, 0.3, window)
    torch.testing.assert_close(short, by_hand(q.detach(), k.detach(), v.detach(), 0.3, window))
    monkeypatch.setattr(module, "SHORT", 0)
    long = causal(q, k, v, 0.3, window)
    torch.testing.assert_close(short, long)
    for ours, library in zip(
        torch.autograd.grad(short, (q, k, v), upstream), torch.autograd.grad(long, (q, k, v), upstream), strict=True
    ):
        torch.testing.assert_close(ours, library, atol=1e-5, rtol=1e-5)


def test_gradient_by_finite_differences():
    assert torch.autograd.gradcheck(
        lambda q, k, v: short_causal(q, k, v, 0.5, 3),
        [x.detach().double().requires_grad_() for x in inputs(n=2, heads=2, shared=2, length=4, dim=3)],
    )


def test_default_scale_is_the_kernels():
    q, k, v = inputs()
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(causal(q, k, v, None), expected)
