"""The transformers engine: tokens, log-probabilities and endings against transformers and the trainer's own pass."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from tiny import KINDS, TOKENIZER, VOCABULARY, batch_of, plain_logits, tiny

from assay.engines.base import Engine, Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import RunError, UsageError
from assay.inference.named import make_strategy
from assay.policies.causal_lm import CausalLM
from assay.types import Episode, Task

PROMPTS = ["12+3=", "4", "(10-2)+(33-1)=", "7-7=", "1+1=\n2+2="]


@pytest.fixture(scope="module")
def engine() -> HFEngine:
    return HFEngine(CausalLM(tiny("grouped queries"), TOKENIZER))


def never_ending(model: Any) -> Any:
    """Make the end token next to impossible, so that responses reach their limit."""
    bias = torch.zeros(VOCABULARY)
    bias[2] = -100.0
    model.lm_head.bias = torch.nn.Parameter(bias)
    return model


TWELVE = Sampling(max_tokens=12)


def requests(n: int = 3, sampling: Sampling = TWELVE) -> list[Request]:
    return [Request(prompt, n, sampling, seed=100 + i) for i, prompt in enumerate(PROMPTS)]


def same(a: list[list[Episode]], b: list[list[Episode]], logprobs: bool = True) -> bool:
    for x, y in zip((e for g in a for e in g), (e for g in b for e in g), strict=True):
        if not np.array_equal(x.tokens, y.tokens) or x.stop != y.stop or x.text != y.text:
            return False
        if logprobs:
            np.testing.assert_allclose(x.logprobs, y.logprobs, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(x.entropies, y.entropies, rtol=1e-5, atol=1e-5)
    return True


def test_it_is_an_engine(engine: HFEngine) -> None:
    assert isinstance(engine, Engine)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_equals_transformers_generate(kind: str) -> None:
    plain = tiny(kind)
    engine = HFEngine(CausalLM(deepcopy(plain), TOKENIZER))
    made = engine.generate(requests(n=1, sampling=Sampling(max_tokens=15, temperature=0)))
    for prompt, (episode,) in zip(PROMPTS, made, strict=True):
        encoded = engine.encode(prompt)
        assert np.array_equal(episode.prompt, encoded)
        ids = torch.from_numpy(encoded)[None]
        out = plain.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=15, eos_token_id=2, pad_token_id=0
        )
        assert episode.tokens.tolist() == out[0, len(encoded) :].tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_recorded_quantities_equal_the_trainers(kind: str, temperature: float) -> None:
    policy = CausalLM(tiny(kind), TOKENIZER)
    sampling = Sampling(max_tokens=20, temperature=temperature, top_p=0.95)
    made = [e for g in HFEngine(policy).generate(requests(4, sampling)) for e in g]
    assert len({len(e.tokens) for e in made}) > 2
    output = policy.forward(batch_of(made), ("entropy",), temperature)
    for i, e in enumerate(made):
        n = len(e.tokens)
        assert e.logprobs.dtype == e.entropies.dtype == np.float32
        assert e.mask.all()
        assert len(e.mask) == n
        np.testing.assert_allclose(output.logprobs[i, :n].detach().numpy(), e.logprobs, rtol=1e-5, atol=2e-5)
        np.testing.assert_allclose(output.live["entropy"][i, :n].detach().numpy(), e.entropies, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_seeds_alone_decide_whatever_decodes_together(engine: HFEngine, max_rows: int) -> None:
    # With one row per round nothing is padded, no row leaves before another, and nothing else is in the call.
    together = engine.generate(requests())
    assert same(together, HFEngine(engine.policy, max_rows).generate(requests()))
    alone = [engine.generate([r])[0] for r in reversed(requests())]
    assert same(together, alone[::-1])
    assert len({len(e.tokens) for g in together for e in g}) > 2, "rows finish at different times"


def test_different_seeds_and_samples_differ(engine: HFEngine) -> None:
    sampling = Sampling(max_tokens=12)
    a, b = engine.generate([Request("12+3=", 8, sampling, 1), Request("12+3=", 8, sampling, 2)])
    texts = {e.text for e in a + b}
    assert len(texts) > 12


def test_samples_of_one_call_may_have_different_settings(engine: HFEngine) -> None:
    settings = [
        Sampling(max_tokens=5),
        Sampling(max_tokens=9, temperature=0),
        Sampling(max_tokens=9, temperature=0.5, top_k=3),
        Sampling(max_tokens=5),
        Sampling(max_tokens=7, stop=("1",)),
    ]
    mixed = [Request(p, 2, s, i) for i, (p, s) in enumerate(zip(PROMPTS, settings, strict=True))]
    assert same(engine.generate(mixed), [engine.generate([r])[0] for r in mixed])


def test_weights_and_mode_are_left_alone(engine: HFEngine) -> None:
    before = deepcopy(engine.policy.model.state_dict())
    engine.policy.module.train()
    engine.generate(requests())
    assert engine.policy.module.training
    assert all(torch.equal(v, before[k]) for k, v in engine.policy.model.state_dict().items())
    # Tensors made while sampling must not leak into training as inference tensors.
    made = engine.generate(requests())
    engine.policy.forward(batch_of([e for g in made for e in g])).logprobs.sum().backward()


# The distribution. Seeds are fixed: each test gives one p-value, below ALARM by chance once in 10,000 sets of seeds.

ALARM = 1e-4


def first_tokens(engine: HFEngine, sampling: Sampling, n: int) -> tuple[np.ndarray, torch.Tensor]:
    """Return counts of the first token over ``n`` samples, and its distribution after temperature by transformers."""
    (made,) = engine.generate([Request("4+", n, sampling, 7)])
    counts = np.bincount([int(e.tokens[0]) for e in made], minlength=VOCABULARY)
    plain = deepcopy(engine.policy.model)
    plain.set_attn_implementation("eager")
    with torch.no_grad():
        logits = plain_logits(plain.eval(), engine.encode("4+"), np.array([0]))[0].double()
    return counts, (logits / sampling.temperature).softmax(-1)


def test_tokens_follow_the_softmax(engine: HFEngine) -> None:
    n = 20_000
    counts, probabilities = first_tokens(engine, Sampling(max_tokens=1, temperature=1.5), n)
    expected = probabilities.numpy() * n
    common = expected >= 5  # the rest go into one cell
    observed = [*counts[common], counts[~common].sum()]
    theory = [*expected[common], expected[~common].sum()]
    if theory[-1] < 1e-9:
        observed, theory = observed[:-1], theory[:-1]
    assert chisquare(observed, theory).pvalue > ALARM


@pytest.mark.parametrize(
    ("sampling", "keep"),
    [
        (Sampling(max_tokens=1, temperature=1.5, top_k=4), lambda p: p.topk(4).indices),
        (
            Sampling(max_tokens=1, temperature=1.5, top_p=0.8),
            lambda p: p.argsort(descending=True)[: int((p.sort(descending=True).values.cumsum(0) < 0.8).sum()) + 1],
        ),
    ],
    ids=["top-k", "top-p"],
)
def test_truncation_restricts_and_renormalises(
    engine: HFEngine, sampling: Sampling, keep: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    n = 20_000
    counts, probabilities = first_tokens(engine, sampling, n)
    kept = keep(probabilities).numpy()
    assert 1 < len(kept) < VOCABULARY
    assert counts[kept].sum() == n
    expected = probabilities.numpy()[kept]
    assert chisquare(counts[kept], n * expected / expected.sum()).pvalue > ALARM


def test_later_tokens_follow_the_softmax_too(engine: HFEngine) -> None:
    # Each recorded log-probability is of the token drawn, so the mean of -log p must match the mean entropy.
    made = [e for g in engine.generate(requests(400, Sampling(max_tokens=6))) for e in g]
    surprise = np.concatenate([-e.logprobs - e.entropies for e in made])
    z = surprise.mean() / (surprise.std() / len(surprise) ** 0.5)
    assert abs(z) < 3.9  # two-sided, once in 10,000


# Endings


def test_length_and_context_and_end(engine: HFEngine) -> None:
    endless = HFEngine(CausalLM(never_ending(tiny("llama")), TOKENIZER))
    long = "1+" * 29  # 58 characters and the begin token: five tokens of the 64 are left
    nine = Sampling(max_tokens=9)
    short, cut = endless.generate([Request("1+", 4, nine, 0), Request(long, 4, nine, 1)])
    assert all(e.stop == "length" and len(e.tokens) == 9 and e.truncated for e in short)
    assert all(e.stop == "context" and len(e.tokens) == 5 and e.truncated for e in cut)

    ended = [e for g in engine.generate(requests(50, Sampling(max_tokens=30))) for e in g]
    assert {"eos", "length"} <= {e.stop for e in ended}
    for e in ended:
        assert (2 in e.tokens.tolist()) == (e.stop == "eos")
        assert e.stop != "eos" or e.tokens.tolist().index(2) == len(e.tokens) - 1
        assert e.stop != "length" or len(e.tokens) == 30
        assert "<eos>" not in e.text


def test_every_end_token_of_the_generation_settings_counts() -> None:
    model = tiny("llama")
    seven = TOKENIZER.convert_tokens_to_ids("7")
    model.generation_config.eos_token_id = [2, seven]
    made = [e for g in HFEngine(CausalLM(model, TOKENIZER)).generate(requests(30, Sampling(max_tokens=30))) for e in g]
    assert any(int(e.tokens[-1]) == seven for e in made)
    assert all(seven not in e.tokens[:-1] for e in made)
    assert all(e.stop == "eos" for e in made if int(e.tokens[-1]) == seven)


@pytest.mark.parametrize("stop", [("3",), ("12", "9"), ("0+", "a", "-1")])
def test_stop_strings_end_a_response_as_soon_as_they_appear(stop: tuple[str, ...]) -> None:
    endless = HFEngine(CausalLM(never_ending(tiny("llama")), TOKENIZER))
    free = Sampling(max_tokens=40)
    unstopped = endless.generate(requests(20, free))
    stopped = endless.generate(requests(20, Sampling(max_tokens=40, stop=stop)))
    ends = set()
    for a, b in zip((e for g in unstopped for e in g), (e for g in stopped for e in g), strict=True):
        cuts = [n for n in range(1, len(a.tokens) + 1) if any(s in endless.policy.decode(a.tokens[:n]) for s in stop)]
        n = cuts[0] if cuts else len(a.tokens)
        assert b.tokens.tolist() == a.tokens[:n].tolist()
        assert b.stop == ("stop" if cuts else "length")
        assert any(b.text.endswith(s) for s in stop) == bool(cuts)
        ends.add(b.stop)
    assert "stop" in ends


def test_a_prompt_that_fills_the_context_is_refused(engine: HFEngine) -> None:
    with pytest.raises(UsageError, match=r"64 tokens leaves no room .* context of 64: '1111") as error:
        engine.generate([Request("1" * 63, 1, Sampling(), 0)])
    assert "\n" not in str(error.value)
    assert len(engine.generate([Request("1" * 62, 1, Sampling(), 0)])[0][0].tokens) == 1


@pytest.mark.parametrize("more", [0, 3])
def test_after_a_beginning_that_fills_the_context_nothing_comes(engine: HFEngine, more: int) -> None:
    alone = Request("12+3=", 2, TWELVE, 1)
    begun = tuple(engine.encode_response("1" * (52 + more), end=False).tolist())
    found, others = engine.generate([Request("1" * 11, 2, TWELVE, 0, begun), alone])
    for e in found:
        assert (len(e.prompt), len(e.tokens), e.text, e.stop) == (64 + more, 0, "", "context")
        assert len(e.mask) == len(e.logprobs) == len(e.entropies) == 0
    assert same([others], engine.generate([alone]))


@pytest.mark.parametrize("name", ["beam", "mcts"])
def test_a_search_whose_step_ends_where_the_context_does_is_at_its_end(name: str) -> None:
    policy = CausalLM(never_ending(tiny("llama", max_position_embeddings=14)), TOKENIZER)
    strategy = make_strategy({"name": name, "stop": ("1", "2", "3", "4"), "step": 8}, sampling=Sampling(32))
    for answer in strategy([Task("", "1+1=")] * 6, HFEngine(policy), 8, np.random.default_rng(0)):
        assert all(len(e.prompt) + len(e.tokens) <= 14 for e in answer.episodes)


def test_diverged_weights_are_told() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    policy.model.model.norm.weight.data.fill_(torch.nan)
    with pytest.raises(RunError, match="diverged"):
        HFEngine(policy).generate(requests())


def test_nothing_asked_nothing_made(engine: HFEngine) -> None:
    assert engine.generate([]) == []
    assert engine.generate([Request("1", 0, Sampling(), 0)]) == [[]]
    ((empty,),) = engine.generate([Request("1", 1, Sampling(max_tokens=0), 0)])
    assert (len(empty.tokens), empty.text, empty.stop) == (0, "", "length")
    # Nor where others of the call are longer.
    (again,), _ = engine.generate([Request("1", 1, Sampling(max_tokens=0), 0), Request("1", 1, Sampling(5), 0)])
    assert (len(again.tokens), again.text, again.stop) == (0, "", "length")


def test_large_vocabularies_are_sampled_in_blocks(engine: HFEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = engine.generate(requests())
    monkeypatch.setattr("assay.policies.logprobs.Head.rows", lambda head, chunk_bytes=0: 2)
    assert same(whole, engine.generate(requests()))


def test_the_cache_grows_with_long_responses() -> None:
    model = never_ending(tiny("llama", max_position_embeddings=1024))
    (made,) = HFEngine(CausalLM(model, TOKENIZER)).generate([Request("1+", 2, Sampling(max_tokens=300), 0)])
    assert [len(e.tokens) for e in made] == [300, 300]
    output = CausalLM(model, TOKENIZER).forward(batch_of(made))
    np.testing.assert_allclose(output.logprobs[0].detach().numpy(), made[0].logprobs, rtol=1e-4, atol=1e-4)


def test_an_engine_from_a_recipe() -> None:
    """What a judge or a teacher is in a recipe: a model of its own, whose weights nobody trains."""
    from assay.registry import build

    table = {"name": "hf", "model": {"source": "nano", "nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 32}}}
    made = build("engine", table)
    [[episode]] = made.generate([Request("1+1=", 1, Sampling(4), 0)])
    assert len(episode.tokens) <= 4 and not any(p.requires_grad for p in made.policy.module.parameters())
    with pytest.raises(UsageError, match="unknown key"):
        build("engine", {"name": "hf", "model": {"sources": "nano"}})


def test_every_token_is_told_as_it_is_drawn(engine: HFEngine) -> None:
    class Told(HFEngine):
        def observe(self, rows: Any, live: np.ndarray, tokens: torch.Tensor, logprobs: torch.Tensor) -> None:
            for i, token, value in zip(live.tolist(), tokens.tolist(), logprobs.tolist(), strict=True):
                seen.setdefault((rows[i].request, rows[i].sample), []).append((token, value))

    seen: dict[tuple[int, int], list[tuple[int, float]]] = {}
    made = Told(engine.policy, max_rows=4).generate(requests())
    for i, group in enumerate(made):
        for j, episode in enumerate(group):
            tokens, logprobs = zip(*seen[i, j], strict=True)
            assert list(tokens) == episode.tokens.tolist()
            assert np.array_equal(np.float32(logprobs), episode.logprobs)
    assert len(seen) == sum(map(len, made))
