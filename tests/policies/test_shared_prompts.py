"""A long prompt shared by a group is computed once, when generating and when learning, and nothing else changes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from tiny import KINDS, TOKENIZER, batch_of, episode, ids, tiny

from assay.engines import hf
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.lean import Hidden
from assay.policies.attention.packed import Layout, SharedPrompts, ToRows
from assay.policies.attention.split import SplitPrompts, worthwhile
from assay.policies.causal_lm import CausalLM, distinct
from assay.policies.logprobs import token_logprobs
from assay.types import Episode

GROUP = 16


def groups(prompt: int = 512, response: int = 32, prompts: int = 2) -> list[Episode]:
    rng = np.random.default_rng(0)
    made = []
    for i in range(prompts):
        shared = ids(rng, prompt - 5 * i)
        made += [episode(shared, ids(rng, int(rng.integers(1, response + 1)))) for _ in range(GROUP)]
    return made


def objective(logprobs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """A loss with another weight for every token, as advantages give."""
    return (logprobs * weights).sum() / weights.numel()


def weights_of(episodes: list[Episode]) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    return [torch.randn(len(e.tokens), generator=rng) for e in episodes]


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def packed(policy: CausalLM, episodes: list[Episode], layout: type[SharedPrompts]) -> torch.Tensor:
    """Log-probabilities of all response tokens, one after the other, by one pass in a layout."""
    prompts, of = distinct([e.prompt for e in episodes])
    responses = [torch.from_numpy(e.tokens) for e in episodes]
    made = layout([torch.from_numpy(p) for p in prompts], responses, of, policy.device)
    assert len(made.tokens) == sum(map(len, prompts)) + sum(len(r) - 1 for r in responses)
    hidden = policy.hidden(made.tokens, made)[made.predictors]
    return token_logprobs(hidden, policy.head, torch.cat(responses))[0]


@pytest.mark.parametrize("layout", [SharedPrompts, pytest.param(SplitPrompts, marks=pytest.mark.slow)])
def test_loss_and_gradients_equal_the_unshared_ones(layout: type[SharedPrompts]) -> None:
    """512 tokens of prompt, 32 of response, groups of 16, against every sequence by itself in transformers' own way."""
    plain = tiny("grouped queries", max_position_embeddings=1024)
    policy = CausalLM(deepcopy(plain), TOKENIZER)
    episodes = groups()
    weights = weights_of(episodes)
    loss = objective(packed(policy, episodes, layout), torch.cat(weights))
    loss.backward()

    plain.set_attn_implementation("eager")
    expected = torch.zeros(())
    total = sum(map(len, weights))
    for e, w in zip(episodes, weights, strict=True):
        whole = torch.from_numpy(np.concatenate([e.prompt, e.tokens]))[None]
        logits = plain(input_ids=whole, use_cache=False).logits[0, len(e.prompt) - 1 : -1]
        logp = logits.log_softmax(-1).gather(-1, whole[0, len(e.prompt) :, None])[:, 0]
        part = (logp * w).sum() / total
        part.backward()
        expected = expected + part.detach()
    torch.testing.assert_close(loss.detach(), expected, rtol=1e-5, atol=1e-5)
    ours, theirs = gradients(policy.model), gradients(plain)
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(12, 7), (1, 9), (20, 1)])
def test_split_attention_is_the_same_for_every_kind_of_model(kind: str, lengths: tuple[int, int]) -> None:
    policy = CausalLM(tiny(kind), TOKENIZER)
    rng = np.random.default_rng(3)
    long, short = ids(rng, lengths[0]), ids(rng, max(1, lengths[0] - 4))
    made = [episode(p, ids(rng, int(rng.integers(1, lengths[1] + 1)))) for p in (long, short, long, long, short)]
    found: list[tuple[torch.Tensor, dict[str, torch.Tensor]]] = []
    for layout in (SharedPrompts, SplitPrompts):
        policy.model.zero_grad()
        logprobs = packed(policy, made, layout)
        objective(logprobs, torch.cat(weights_of(made))).backward()
        found.append((logprobs.detach(), {name: g.clone() for name, g in gradients(policy.model).items()}))
    (whole, expected), (split, got) = found
    torch.testing.assert_close(split, whole, rtol=1e-5, atol=1e-5)
    for name, gradient in got.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-5, msg=name)


def test_when_splitting_pays() -> None:
    long, short = torch.zeros(512), torch.zeros(8)
    reply = torch.zeros(32)
    assert worthwhile([long], [reply] * 16, [0] * 16)
    assert not worthwhile([long, long], [reply] * 2, [0, 1]), "nothing is shared"
    assert not worthwhile([short], [reply] * 16, [0] * 16), "short rows have a way of their own"
    assert not worthwhile([short], [long] * 16, [0] * 16), "the prompt is the least of it"


def counted(policy: CausalLM, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many tokens enter the model at each of its calls."""
    entered: list[int] = []
    inner = policy.model.base_model.forward

    def forward(*arguments: Any, **options: Any) -> Any:
        entered.append(options["input_ids"].numel())
        return inner(*arguments, **options)

    monkeypatch.setattr(policy.model.base_model, "forward", forward)
    return entered


@pytest.mark.parametrize("requests", [1, 2], ids=["one request for a group", "requests of the same prompt"])
def test_prefill_computes_each_distinct_prompt_once(monkeypatch: pytest.MonkeyPatch, requests: int) -> None:
    policy = CausalLM(tiny("llama", max_position_embeddings=1024), TOKENIZER)
    prompts = ["1+" * 255 + "1", "2-" * 200]
    entered: list[int] = []
    found = hf.hidden_of

    def counting(policy: CausalLM, tokens: int) -> Hidden:
        inner = found(policy, tokens)

        def hidden(ids: torch.Tensor, layout: Layout) -> torch.Tensor:
            entered.append(ids.numel())
            return inner(ids, layout)

        return hidden

    monkeypatch.setattr(hf, "hidden_of", counting)
    asked = [Request(p, GROUP // requests, Sampling(4), i) for i, p in enumerate(prompts * requests)]
    made = HFEngine(policy).generate(asked)
    assert entered[0] == sum(len(policy.encode(p)) for p in prompts) == 512 + 401
    # After that, the tokens drawn, each once, but for those that ended a response.
    assert sum(entered[1:]) == sum(len(e.tokens) - 1 for group in made for e in group)


def test_the_update_computes_each_distinct_prompt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = CausalLM(tiny("llama", max_position_embeddings=1024), TOKENIZER)
    episodes = groups()
    batch = batch_of(episodes)
    entered = counted(policy, monkeypatch)
    policy.forward(batch)
    assert entered == [512 + 507 + sum(len(e.tokens) - 1 for e in episodes)]
    # Splitting by a budget of tokens keeps a group's responses with its prompt, so it enters once there too.
    parts = policy.micro_batches(batch, 1000)
    assert sorted(i for part in parts for i in part.tolist()) == list(range(len(episodes)))
    entered.clear()
    for part in parts:
        policy.forward(batch.rows(part))
    assert sum(entered) == 512 + 507 + sum(len(e.tokens) - 1 for e in episodes)


def test_a_gradient_may_lie_in_memory_as_it_likes() -> None:
    """A GPU's kernel returns gradients in rows of its own width."""
    prompts, responses = [torch.arange(3), torch.arange(2)], [torch.arange(4), torch.arange(1), torch.arange(2)]
    layout = SharedPrompts(prompts, responses, [0, 0, 1], torch.device("cpu"))
    x = torch.randn(len(layout.tokens), 2, 4, dtype=torch.float64, requires_grad=True)
    rows = ToRows.apply(x, layout.map)
    wide = torch.randn(rows.shape[0], rows.shape[1] + 3, *rows.shape[2:], dtype=torch.float64)[:, : rows.shape[1]]
    found, wanted = (torch.autograd.grad(rows, x, g, retain_graph=True)[0] for g in (wide, wide.contiguous()))
    assert torch.equal(found, wanted)
