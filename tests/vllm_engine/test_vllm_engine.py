"""vLLM in this process, on a real model: what it says against the policy's own pass, and weights that change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from tiny import batch_of

from assay.engines.base import Engine, Follower, Request, Sampling
from assay.engines.ended import listening
from assay.engines.hf import HFEngine
from assay.engines.trie import Trie
from assay.engines.vllm.asking import seed_of
from assay.engines.vllm.device import executor_at
from assay.engines.vllm.engine import VLLMEngine, vllm_engine
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig, ModelConfig
from assay.types import Episode

PROMPTS = ["What is 7 times 8?", "Name a colour.", "Write a line about the sea."]
TOLERANCE = 5e-4
"""Nats; in float32, after 30 layers, the two differ by a few 1e-5."""


@pytest.fixture(scope="module")
def policy(source: str) -> CausalLM:
    policy = CausalLM.load(ModelConfig(source=source, device="cpu"))
    policy.module.requires_grad_(False)
    return policy


@pytest.fixture(scope="module")
def engine(policy: CausalLM) -> Iterator[VLLMEngine]:
    state = torch.get_rng_state(), random.getstate(), np.random.get_state()[1], torch.get_num_threads()
    extra = {"max_num_batched_tokens": 512}
    made = vllm_engine(policy=policy, max_rows=32, max_model_len=512, kv_cache_gib=1, extra=extra)
    assert torch.equal(torch.get_rng_state(), state[0]), "vLLM seeds what others draw from"
    assert random.getstate() == state[1]
    assert np.array_equal(np.random.get_state()[1], state[2])
    assert torch.get_num_threads() == state[3]
    yield made
    made.close()
    made.close()


def requests(n: int = 2, tokens: int = 10, **settings: Any) -> list[Request]:
    return [Request(p, n, Sampling(max_tokens=tokens, **settings), seed=100 + i) for i, p in enumerate(PROMPTS)]


def flat(groups: list[list[Episode]]) -> list[Episode]:
    return [e for group in groups for e in group]


def tokens(groups: list[list[Episode]]) -> list[list[int]]:
    return [e.tokens.tolist() for e in flat(groups)]


def assert_agrees(made: list[Episode], policy: CausalLM, temperature: float) -> None:
    """Log-probabilities and entropies are the policy's."""
    with torch.no_grad():
        output = policy.forward(batch_of(made), ("entropy",), temperature or 1.0)
    for i, e in enumerate(made):
        n = len(e.tokens)
        assert e.entropies is not None and e.logprobs is not None
        assert e.logprobs.dtype == e.entropies.dtype == np.float32
        np.testing.assert_allclose(output.logprobs[i, :n].numpy(), e.logprobs, rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(output.live["entropy"][i, :n].numpy(), e.entropies, rtol=0, atol=2 * TOLERANCE)


def test_it_is_an_engine_that_follows(engine: VLLMEngine) -> None:
    assert isinstance(engine, Engine)
    assert isinstance(engine, Follower)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.7},
        {"temperature": 1.4, "top_p": 0.8},
        {"temperature": 0.9, "top_k": 4},
        {"temperature": 0.0},
    ],
    ids=str,
)
def test_what_it_says_is_what_the_policy_says(engine: VLLMEngine, policy: CausalLM, settings: dict[str, float]) -> None:
    """After temperature, before truncation."""
    made = flat(engine.generate(requests(**settings)))
    assert all(len(e.tokens) == len(e.mask) and e.mask.all() for e in made)
    assert_agrees(made, policy, settings.get("temperature", 1.0))


def test_greedy_and_sampled_requests_in_one_call(engine: VLLMEngine, policy: CausalLM) -> None:
    mixed = [*requests(1, temperature=0.0), *requests(1, temperature=0.8)]
    made = engine.generate(mixed)
    assert_agrees(flat(made[:3]), policy, 1.0)
    assert_agrees(flat(made[3:]), policy, 0.8)
    assert tokens(made[:3]) == tokens(HFEngine(policy).generate(mixed[:3]))


def test_tokens_are_drawn_as_often_as_it_says(engine: VLLMEngine, policy: CausalLM) -> None:
    n, k = 300, 4
    (drawn,) = engine.generate([Request(PROMPTS[1], n, Sampling(max_tokens=1, top_k=k), seed=5)])
    seen, counts = np.unique([e.tokens[0] for e in drawn], return_counts=True)
    assert len(seen) <= k
    chances = {int(e.tokens[0]): float(np.exp(e.logprobs[0])) for e in drawn if e.logprobs is not None}
    expected = np.array([chances[int(t)] for t in seen])
    assert chisquare(counts, expected / expected.sum() * n).pvalue > 1e-4


def test_a_seed_decides_alone_or_in_company(engine: VLLMEngine) -> None:
    together = engine.generate(requests(3))
    assert tokens(together) == tokens(engine.generate(requests(3)))
    assert tokens(together) == tokens([engine.generate([r])[0] for r in requests(3)])
    assert len({tuple(t) for t in tokens(together)}) == 9


def test_seeds_that_follow_each_other_are_unrelated(engine: VLLMEngine) -> None:
    a, b = engine.generate([Request(PROMPTS[2], 3, Sampling(max_tokens=8), seed) for seed in (7, 8)])
    assert not {tuple(e.tokens) for e in a} & {tuple(e.tokens) for e in b}
    assert len({seed_of(s, j) for s in range(50) for j in range(50)}) == 2500


def test_more_prompts_than_a_step_has_room_for(engine: VLLMEngine, policy: CausalLM) -> None:
    asked = [Request(f"{i} " + "word " * 90, 1, Sampling(max_tokens=3), i) for i in range(12)]
    assert sum(len(engine.encode(r.prompt)) for r in asked) > 2 * 512
    assert_agrees(flat(engine.generate(asked)), policy, 1.0)


def test_stop_strings_end_a_response_and_stay_in_it(engine: VLLMEngine) -> None:
    (whole,), (cut,) = (
        engine.generate([Request(PROMPTS[2], 1, Sampling(max_tokens=24, temperature=0, stop=stop), 1)])[0]
        for stop in ((), (" the",))
    )
    assert " the" in whole.text
    assert cut.stop == "stop"
    assert cut.text.count(" the") == 1
    n = len(cut.tokens)
    assert cut.tokens.tolist() == whole.tokens[:n].tolist()
    assert cut.logprobs is not None and len(cut.logprobs) == n
    assert " the" not in engine.decode(cut.tokens[:-1])


def test_endings_are_told_apart(engine: VLLMEngine, policy: CausalLM) -> None:
    asked = [Request("Say yes.", 1, Sampling(max_tokens=m, temperature=0), 0) for m in (2, 100)]
    (short,), (long,) = engine.generate(asked)
    assert short.stop == "length" and len(short.tokens) == 2 and short.truncated
    assert long.stop == "eos"
    assert long.tokens[-1] in policy.stop_ids
    assert not any(t in policy.stop_ids for t in long.tokens[:-1])
    assert long.logprobs is not None and len(long.logprobs) == len(long.tokens)
    assert tokens([[long]]) == tokens(HFEngine(policy).generate(asked[1:]))
    nearly = tuple(engine.encode_response("word " * 600, end=False)[: engine.context - len(short.prompt) - 3])
    (full,) = engine.generate([Request("Say yes.", 1, Sampling(max_tokens=50, temperature=0), 0, prefix=nearly)])[0]
    assert len(full.tokens) == 3 and full.stop == "context"


def test_a_response_is_continued(engine: VLLMEngine) -> None:
    (whole,) = engine.generate(requests(1, tokens=12, temperature=0.0)[:1])[0]
    begun = tuple(whole.tokens[:5].tolist())
    (rest,) = engine.generate([Request(PROMPTS[0], 1, Sampling(max_tokens=7, temperature=0), 100, prefix=begun)])[0]
    assert rest.prompt.tolist() == [*whole.prompt, *begun]
    assert rest.tokens.tolist() == whole.tokens[5:12].tolist()
    assert rest.logprobs is not None and whole.logprobs is not None
    np.testing.assert_allclose(rest.logprobs, whole.logprobs[5:12], atol=TOLERANCE)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_catalogue_confines_responses(engine: VLLMEngine, policy: CausalLM, temperature: float) -> None:
    """Log-probabilities are those of the whole vocabulary all the same."""
    catalogue = Trie([engine.encode_response(text, end=False) for text in ("bright red", "bright blue", "no")])
    sampling = Sampling(max_tokens=9, temperature=temperature)
    made = engine.generate([Request(PROMPTS[1], 6, sampling, 3, within=catalogue)])[0]
    assert all(e.tokens in catalogue and e.stop == "stop" for e in made)
    assert_agrees(made, policy, temperature)
    (cut,) = engine.generate([Request(PROMPTS[1], 1, Sampling(max_tokens=1), 3, within=catalogue)])[0]
    assert cut.stop in ("length", "stop") and cut.text in ("bright", "no", "b")


def test_it_follows_weights_that_change(engine: VLLMEngine, policy: CausalLM) -> None:
    before = engine.generate(requests(temperature=0.0))
    changed = policy.twin()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in changed.module.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.add_(noise * (0.05 * weight.std() if weight.ndim > 1 else 0.01))
    engine.follow(changed)
    after = engine.generate(requests(temperature=0.0))
    assert_agrees(flat(after), changed, 1.0)
    assert tokens(after) != tokens(before)
    engine.follow(policy)
    assert tokens(engine.generate(requests(temperature=0.0))) == tokens(before)


def test_it_follows_adapters(engine: VLLMEngine, policy: CausalLM, source: str) -> None:
    adapted = CausalLM.load(ModelConfig(source=source, device="cpu", lora=LoraConfig(rank=4)))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weight in adapted.module.named_parameters():
            if "lora_B" in name:
                weight.copy_(0.01 * torch.randn(weight.shape, generator=generator))
    engine.follow(adapted)
    made = flat(engine.generate(requests()))
    assert_agrees(made, adapted, 1.0)
    with pytest.raises(AssertionError):
        assert_agrees(made, policy, 1.0)
    engine.follow(policy)


def test_an_interrupted_call_leaves_nothing_behind(engine: VLLMEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = engine.generate(requests())
    inner, steps = engine._llm.llm_engine, []

    def struck() -> Any:
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return type(inner).step(inner)

    monkeypatch.setattr(inner, "step", struck)
    with pytest.raises(KeyboardInterrupt):
        engine.generate(requests(tokens=40))
    monkeypatch.undo()
    assert not inner.has_unfinished_requests()
    assert tokens(engine.generate(requests())) == tokens(expected)


def test_responses_are_told_of_as_they_end(engine: VLLMEngine) -> None:
    """The shorter first, while the others are being made, with the text that their episode has."""
    asked = [Request(PROMPTS[0], n, Sampling(max_tokens=t, temperature=0.7), 3) for n, t in ((1, 30), (2, 5), (1, 15))]
    heard: list[tuple[Request, str, bool]] = []
    with listening(lambda *said: heard.append((*said, engine._llm.llm_engine.has_unfinished_requests()))):
        made = engine.generate(asked)
    assert [request for request, *_ in heard] == [asked[1], asked[1], asked[2], asked[0]]
    assert sorted(text for _, text, _ in heard) == sorted(e.text for e in flat(made))
    assert [more for *_, more in heard[1:]] == [True, True, False]
    assert tokens(made) == tokens(engine.generate(asked))
    with pytest.raises(ZeroDivisionError), listening(lambda *_: 1 // 0):
        engine.generate(asked)
    assert not engine._llm.llm_engine.has_unfinished_requests()


def test_it_is_placed_on_the_gpu_of_its_policy() -> None:
    """vLLM's own executor in one process, but for the number of the GPU, which else is the first."""
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    placed = object.__new__(executor_at(3))
    assert isinstance(placed, UniProcExecutor)
    placed.vllm_config = SimpleNamespace(device_config=SimpleNamespace(device="cuda"))
    assert placed._distributed_args()[1:] == (0, 3)


def test_draws_of_others_are_left_alone(engine: VLLMEngine) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    engine.generate(requests())
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("x", 2, Sampling(), 0, beam=True), "cannot search by beams"),
        (Request("x", 1, Sampling(temperature=0.001), 0), "no temperature between 0 and 0.01"),
        (Request("word " * 600, 1, Sampling(), 0), "leaves no room for a response in vllm's context of 512"),
    ],
)
def test_what_it_cannot_do_is_said(engine: VLLMEngine, request_: Request, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine.generate([request_])
