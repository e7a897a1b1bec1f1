"""Packed weights give what the layers give, follow changes of the weights, and leave no trace."""

from __future__ import annotations

import pytest
import torch
from tiny import KINDS, TOKENIZER, batch_of, tiny

from assay.engines import packed
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.packed import PackedLinear, packed_linears, supported
from assay.policies.causal_lm import CausalLM

needs_kernels = pytest.mark.skipif(not supported(), reason="this processor or torch lacks oneDNN's packed kernels")


@needs_kernels
@pytest.mark.parametrize("shape", [(1,), (7,), (1, 65), (0,)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_result_is_the_layers(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(33, 50, bias=bias)
    x = torch.randn(*shape, 33)
    with torch.inference_mode():
        torch.testing.assert_close(PackedLinear(layer)(x), layer(x), rtol=1e-5, atol=1e-5)


@needs_kernels
def test_changed_weights_are_packed_again() -> None:
    layer = torch.nn.Linear(8, 12)
    stand_in, x = PackedLinear(layer), torch.randn(3, 8)
    with torch.no_grad():
        before = stand_in(x)
        layer.weight += 1.0
        assert not torch.allclose(stand_in(x), before)
        torch.testing.assert_close(stand_in(x), layer(x), rtol=1e-5, atol=1e-5)


@needs_kernels
def test_only_inside_and_only_plain_layers() -> None:
    class Own(torch.nn.Linear):
        pass

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Own(4, 4), torch.nn.Linear(4, 4).double())
    taken = torch.nn.Linear(4, 4)
    taken.forward = mine = lambda input: input  # type: ignore[method-assign]
    model.append(taken)
    with packed_linears(model, packed.LEAST_TOKENS):
        assert ["forward" in vars(m) for m in model] == [True, False, False, True]
        assert model[3].forward is mine
    assert ["forward" in vars(m) for m in model] == [False, False, False, True]
    with packed_linears(model, packed.LEAST_TOKENS - 1):
        assert "forward" not in vars(model[0]), "too few tokens to pay"


@needs_kernels
def test_a_model_without_a_layer_to_pack_is_left_alone() -> None:
    """As one on a GPU is."""
    assert not packed.pays(torch.nn.Linear(4, 4).double(), packed.LEAST_TOKENS)


@needs_kernels
def test_a_gradient_wanted_inside_is_the_layers_own() -> None:
    layer = torch.nn.Linear(4, 3)
    x = torch.randn(2, 4)
    with packed_linears(layer, packed.LEAST_TOKENS):
        layer(x).sum().backward()
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, x.sum(0).expand(3, 4))


@needs_kernels
@pytest.mark.parametrize("kind", KINDS)
def test_recorded_log_probabilities_equal_the_trainers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = CausalLM(tiny(kind), TOKENIZER)
    asked = [Request(p, 4, Sampling(20), i) for i, p in enumerate(["12+3=", "4", "(10-2)+(33-1)="])]
    plain = [e for g in HFEngine(policy).generate(asked) for e in g]
    monkeypatch.setattr(packed, "LEAST_TOKENS", 0)
    made = [e for g in HFEngine(policy).generate(asked) for e in g]
    assert [e.tokens.tolist() for e in made] == [e.tokens.tolist() for e in plain]
    output = policy.forward(batch_of(made))
    for i, e in enumerate(made):
        learnt = output.logprobs[i, : len(e.tokens)].detach()
        torch.testing.assert_close(learnt, torch.from_numpy(e.logprobs), rtol=1e-5, atol=2e-5)
