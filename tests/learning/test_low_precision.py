"""A bfloat16 model's probabilities are those of its states and weights in float32."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny import TOKENIZER, batch_of, episode, ids, tiny
from torch.nn import Parameter

from assay.policies.attention.packed import SharedPrompts
from assay.policies.causal_lm import CausalLM
from assay.policies.logprobs import Head, token_logprobs

CAN_WIDEN = pytest.mark.skipif(
    not hasattr(torch.zeros(()), "grad_dtype"), reason="this torch has no gradients of another dtype"
)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma3, window 5", "granite", "cohere"])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_a_models_logprobs_are_the_float32_log_softmax_of_its_states(kind: str, temperature: float) -> None:
    policy = CausalLM(tiny(kind).bfloat16(), TOKENIZER)
    rng = np.random.default_rng(0)
    prompt, tokens = ids(rng, 6), ids(rng, 20)
    layout = SharedPrompts([torch.from_numpy(prompt)], [torch.from_numpy(tokens)], [0], policy.device)
    with torch.no_grad():
        out = policy.forward(batch_of([episode(prompt, tokens)]), ("entropy",), temperature)
        hidden = policy.hidden(layout.tokens, layout)[layout.predictors]
    assert hidden.dtype == torch.bfloat16
    head = policy.head
    logits = hidden.double() @ head.weight.double().T * head.scale
    if head.softcap is not None:
        logits = head.softcap * torch.tanh(logits / head.softcap)
    exact = (logits / temperature).log_softmax(-1)
    # Sums of 32 products and 24 exponentials in float32: a few units of 2^-24 of the largest logit, about 10.
    chosen = exact.gather(-1, torch.from_numpy(tokens)[:, None])[:, 0]
    torch.testing.assert_close(out.logprobs[0].double(), chosen, rtol=0, atol=2e-5)
    torch.testing.assert_close(out.live["entropy"][0].double(), -(exact.exp() * exact).sum(-1), rtol=0, atol=2e-5)
    # What rounding the logits to bfloat16 would have given is fifty times as far off.
    rounded = (logits.bfloat16().double() / temperature).log_softmax(-1).gather(-1, torch.from_numpy(tokens)[:, None])
    assert float((rounded[:, 0] - chosen).detach().abs().max()) > 1e-3


def big(rows: int, dtype: torch.dtype) -> tuple[Parameter, Parameter, Parameter, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(*s, generator=generator) for s in ((rows, 16), (40, 16)))
    offset = torch.randn(40, generator=generator)
    parameters = [Parameter(x.to(dtype)) for x in (hidden, weight, offset)]
    return parameters[0], parameters[1], parameters[2], torch.randint(40, (rows,), generator=generator)


@CAN_WIDEN
@pytest.mark.parametrize("entropy", [True, False])
def test_gradients_from_many_blocks_add_up_in_float32(entropy: bool) -> None:
    hidden, weight, offset, targets = big(1000, torch.bfloat16)
    for parameter in (weight, offset):
        parameter.grad_dtype = torch.float32
    logprobs, h = token_logprobs(hidden, Head(weight, offset), targets, 0.8, entropy, chunk_bytes=160)  # one row each
    (logprobs.sum() + (0 if h is None else h.sum())).backward()
    exact = [x.detach().double().requires_grad_() for x in (hidden, weight, offset)]
    logp = ((exact[0] @ exact[1].T + exact[2]) / 0.8).log_softmax(-1)
    wanted = logp.gather(-1, targets[:, None]).sum() - ((logp.exp() * logp).sum() if entropy else 0)
    for parameter, gradient in zip((hidden, weight, offset), torch.autograd.grad(wanted, exact), strict=True):
        assert parameter.grad is not None
        # The gradient of each logit is rounded to bfloat16 on its way into the products, 2^-9 at most.
        assert float((parameter.grad - gradient).abs().max() / gradient.abs().max()) < 2**-8
    assert weight.grad is not None
    assert not torch.equal(weight.grad, weight.grad.bfloat16().float())


def test_a_contribution_to_the_weights_gradient_is_not_lost_beside_a_large_sum() -> None:
    # 2000 equal rows: added one by one in bfloat16 their sum would stop at 256 times the first.
    hidden, weight, _, _ = big(1, torch.bfloat16)
    rows = hidden.detach().expand(2000, -1)
    logprobs, _ = token_logprobs(rows, Head(weight), torch.zeros(2000, dtype=torch.int64), chunk_bytes=160)
    found = torch.autograd.grad(logprobs.sum(), weight)[0]
    one, _ = token_logprobs(hidden.detach(), Head(weight), torch.zeros(1, dtype=torch.int64))
    single = torch.autograd.grad(one.sum(), weight)[0]
    torch.testing.assert_close(found.float(), 2000 * single.float(), rtol=2**-7, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_logits_have_gradients_in_the_models_precision(dtype: torch.dtype) -> None:
    hidden, weight, offset, targets = big(7, dtype)
    z = Head(weight, offset, 0.5, 3.0).logits(hidden, 0.7)
    assert z.dtype == torch.float32
    found = torch.autograd.grad(z.logsumexp(-1).sum(), (hidden, weight, offset))
    exact = [x.detach().double().requires_grad_() for x in (hidden, weight, offset)]
    z = torch.tanh((exact[0] @ exact[1].T + exact[2]) * 0.5 / 3.0) * 3.0 / 0.7
    for got, wanted in zip(found, torch.autograd.grad(z.logsumexp(-1).sum(), exact), strict=True):
        assert got.dtype == dtype
        assert float((got - wanted).abs().max() / wanted.abs().max()) < 2**-6
    assert len(targets) == 7
