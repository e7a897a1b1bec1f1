"""The lean forward pass gives the model's own hidden states, or stands back."""

from __future__ import annotations

import pytest
import torch
from tiny import KINDS, TOKENIZER, VOCABULARY, tiny

from assay.engines import packed
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.lean import Lean, hidden_of
from assay.engines.packed import LEAST_TOKENS, PackedLinear, supported
from assay.policies.attention.packed import KeyValueCache, Prefill
from assay.policies.causal_lm import CausalLM

LLAMA_LIKE = {
    "llama",
    "grouped queries",
    "qwen2",
    "mistral",
    "mistral, window 4",
    "qwen2, one layer with window 3",
}

pytestmark = pytest.mark.skipif(not supported(), reason="this processor or torch lacks oneDNN's packed kernels")


def shaken(kind: str) -> CausalLM:
    """Return a tiny model none of whose weights is one or zero, so that each of them matters."""
    torch.manual_seed(1)
    policy = CausalLM(tiny(kind), TOKENIZER)
    with torch.no_grad():
        for weight in policy.model.parameters():
            if weight.ndim == 1:
                weight.add_(torch.rand_like(weight), alpha=0.5)
    return policy


def prompts(*lengths: int) -> Prefill:
    return Prefill([torch.randint(VOCABULARY, (n,)) for n in lengths], KeyValueCache(), torch.device("cpu"))


@torch.inference_mode()
def both(policy: CausalLM) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the hidden states of the same prompts by the model itself and by what is found for it."""
    layout = prompts(1, 30, 7)
    own = policy.hidden(layout.tokens, layout)
    layout.cache = KeyValueCache()
    return own, hidden_of(policy, LEAST_TOKENS)(layout.tokens, layout)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_are_the_models_own(kind: str) -> None:
    policy = shaken(kind)
    own, got = both(policy)
    torch.testing.assert_close(got, own, rtol=1e-4, atol=1e-4)
    assert isinstance(hidden_of(policy, LEAST_TOKENS), Lean) == (kind in LLAMA_LIKE)


def test_weights_changed_in_place_are_used() -> None:
    policy = shaken("grouped queries")
    with torch.inference_mode():
        hidden = hidden_of(policy, LEAST_TOKENS)
    layer = policy.model.base_model.layers[1]
    for part in (layer.self_attn.k_proj, layer.mlp.up_proj, layer.input_layernorm, policy.model.base_model.norm):
        with torch.no_grad():
            part.weight *= 1.5
        layout = prompts(9)
        with torch.inference_mode():
            got = hidden(layout.tokens, layout)
            layout.cache = KeyValueCache()
            torch.testing.assert_close(got, policy.hidden(layout.tokens, layout), rtol=1e-4, atol=1e-4)


def test_few_tokens_or_hooks_leave_a_model_its_own_pass() -> None:
    policy = shaken("llama")
    assert hidden_of(policy, LEAST_TOKENS - 1) == policy.hidden
    handle = policy.model.base_model.layers[0].register_forward_hook(lambda *_: None)
    assert hidden_of(policy, LEAST_TOKENS) == policy.hidden
    handle.remove()
    assert isinstance(hidden_of(policy, LEAST_TOKENS), Lean)


def test_an_engine_packs_even_if_it_is_the_first_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    call = PackedLinear.__call__

    def noting(self: PackedLinear, input: torch.Tensor) -> torch.Tensor:
        used.append(self.layer.out_features)
        return call(self, input)

    monkeypatch.setattr(PackedLinear, "__call__", noting)
    monkeypatch.setattr(packed, "LEAST_TOKENS", 0)
    supported.cache_clear()
    HFEngine(shaken("llama")).generate([Request("1+1=", 2, Sampling(3), 0)])
    assert set(used) == {VOCABULARY, 40}, "the output layer, and the trial of the kernels"
