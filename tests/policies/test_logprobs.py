"""Chunked log-probabilities and entropies equal automatic differentiation of the plain formula."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from assay.policies.logprobs import Head, token_logprobs

S, D, V = 11, 6, 17
ROW = 4 * V  # bytes of one row of logits


def naive(hidden: Tensor, head: Head, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    z = (hidden @ head.weight.T + (0 if head.bias is None else head.bias)) * head.scale
    if head.softcap is not None:
        z = head.softcap * torch.tanh(z / head.softcap)
    logp = torch.log_softmax(z / temperature, -1)
    finite = torch.where(logp.isinf(), torch.zeros_like(logp), logp)
    return logp.gather(-1, targets[:, None])[:, 0], -(logp.exp() * finite).sum(-1)


def inputs(bias: bool = True, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    g = torch.Generator().manual_seed(0)
    hidden = torch.randn(S, D, generator=g, dtype=dtype).requires_grad_()
    weight = torch.randn(V, D, generator=g, dtype=dtype).requires_grad_()
    offset = torch.randn(V, generator=g, dtype=dtype).requires_grad_() if bias else None
    return hidden, weight, offset, torch.randint(V, (S,), generator=g)


CHUNKS = [1, ROW, 3 * ROW, 10 * ROW, 11 * ROW, 1000 * ROW]  # less than a row still takes one row


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("entropy", [True, False])
@pytest.mark.parametrize(
    ("temperature", "scale", "softcap"), [(1.0, 1.0, None), (0.6, 1.0, None), (1.0, 0.3, 2.0), (1.7, 2.5, 3.0)]
)
def test_values_and_gradients_equal_autograd(
    chunk: int, bias: bool, entropy: bool, temperature: float, scale: float, softcap: float | None
) -> None:
    results = []
    for ours in (True, False):
        hidden, weight, offset, targets = inputs(bias)
        head = Head(weight, offset, scale, softcap)
        if ours:
            logprobs, h = token_logprobs(hidden, head, targets, temperature, entropy, chunk)
            assert (h is None) is not entropy
        else:
            logprobs, h = naive(hidden, head, targets, temperature)
        g = torch.Generator().manual_seed(9)
        loss = (logprobs * torch.randn(S, generator=g)).sum()
        if entropy:
            loss = loss + (h * torch.randn(S, generator=g)).sum()
        leaves = [x for x in (hidden, weight, offset) if x is not None]
        results.append([logprobs, *([h] if entropy else []), *torch.autograd.grad(loss, leaves)])
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chunk", [8, 2 * ROW, 1000 * ROW])
def test_gradient_equals_finite_differences(chunk: int) -> None:
    hidden, weight, offset, targets = inputs(dtype=torch.float64)

    def both(h: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        logprobs, entropy = token_logprobs(h, Head(w, b, 0.8, 2.0), targets, 0.9, True, chunk)
        assert entropy is not None
        return logprobs, entropy

    assert both(hidden, weight, offset)[0].dtype == torch.float64
    assert torch.autograd.gradcheck(both, (hidden, weight, offset))


@pytest.mark.parametrize(("chunk", "entropy"), itertools.product([ROW, 1000 * ROW], [True, False]))
def test_a_second_backward_pass_gives_the_same(chunk: int, entropy: bool) -> None:
    hidden, weight, offset, targets = inputs()
    logprobs, h = token_logprobs(hidden, Head(weight, offset, 1.0, 2.0), targets, 0.8, entropy, chunk)
    loss = logprobs.square().sum() + (h.sum() if h is not None else 0)
    first = torch.autograd.grad(loss, (hidden, weight, offset), retain_graph=True)
    second = torch.autograd.grad(loss, (hidden, weight, offset))
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("chunk", "entropy"), itertools.product([ROW, 1000 * ROW], [True, False]))
def test_tokens_of_probability_zero_make_no_nan(chunk: int, entropy: bool) -> None:
    hidden, weight, _, targets = inputs()
    offset = torch.zeros(V).index_fill_(0, torch.tensor([0, 5]), -torch.inf).requires_grad_()
    targets = torch.where((targets == 0) | (targets == 5), 1, targets)
    results = []
    for ours in (True, False):
        head = Head(weight, offset)
        logprobs, h = (
            token_logprobs(hidden, head, targets, 1.0, entropy, chunk) if ours else naive(hidden, head, targets, 1.0)
        )
        loss = logprobs.sum() + (3 * h.sum() if entropy else 0)
        results.append([logprobs, *([h] if entropy else []), *torch.autograd.grad(loss, (hidden, weight))])
    for got, expected in zip(*results, strict=True):
        assert got.isfinite().all()
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_a_target_of_probability_zero_has_logprob_minus_infinity() -> None:
    hidden, weight, _, targets = inputs()
    offset = torch.zeros(V).index_fill_(0, targets[:1], -torch.inf)
    logprobs, _ = token_logprobs(hidden, Head(weight, offset), targets)
    assert torch.equal(logprobs.isinf(), targets == targets[0])


@pytest.mark.parametrize("entropy", [True, False])
def test_no_tokens(entropy: bool) -> None:
    _, weight, offset, _ = inputs()
    hidden = torch.zeros(0, D, requires_grad=True)
    logprobs, h = token_logprobs(hidden, Head(weight, offset), torch.zeros(0, dtype=torch.int64), entropy=entropy)
    assert logprobs.shape == (0,)
    assert (h is None) if not entropy else h.shape == (0,)
    grads = torch.autograd.grad(logprobs.sum(), (hidden, weight, offset))
    assert [g.shape for g in grads] == [(0, D), (V, D), (V,)]
    assert not grads[1].any()


def test_only_the_gradients_asked_for_are_computed() -> None:
    hidden, weight, offset, targets = inputs()
    assert offset is not None
    logprobs, _ = token_logprobs(hidden, Head(weight.detach(), offset.detach()), targets, chunk_bytes=2 * ROW)
    logprobs.sum().backward()
    expected, _ = naive(hidden, Head(weight.detach(), offset.detach()), targets, 1.0)
    torch.testing.assert_close(hidden.grad, torch.autograd.grad(expected.sum(), hidden)[0], rtol=1e-5, atol=1e-5)
    assert weight.grad is None
    assert offset.grad is None


def test_half_precision_weights_give_float32_logprobs() -> None:
    hidden, weight, _, targets = (x.detach() if x is not None else None for x in inputs(False))
    logprobs, _ = token_logprobs(hidden.bfloat16(), Head(weight.bfloat16()), targets)
    expected, _ = naive(hidden.bfloat16().float(), Head(weight.bfloat16().float()), targets, 1.0)
    assert logprobs.dtype == torch.float32
    torch.testing.assert_close(logprobs, expected, rtol=0.02, atol=0.05)
