"""Beam search and responses from a catalogue, on both engines: against enumeration, transformers and the softmax."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from tiny import KINDS, TOKENIZER, batch_of, plain_logits, tiny

from assay.engines.base import Request, Sampling
from assay.engines.beam import Beams
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine
from assay.engines.trie import Trie
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPTS = ["12+3=", "4", "(10-2)+(33-1)="]
ITEMS = ["1", "12", "120", "121", "3", "45", "46", "9-9", "9-8"]
LONG = Sampling(max_tokens=12)


@pytest.fixture(scope="module")
def engine() -> HFEngine:
    return HFEngine(CausalLM(tiny("grouped queries"), TOKENIZER))


@pytest.fixture(scope="module")
def catalogue(engine: HFEngine) -> Trie:
    return Trie(engine.encode_response(item) for item in ITEMS)


def random_tree(seed: int = 0, branching: int = 3, depth: int = 3) -> TabularPolicy:
    tree = Tree.uniform(branching, depth)
    logits = torch.randn(tree.children.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return TabularPolicy(tree, 2 * logits)


def score(model: Any, prompt: np.ndarray, response: np.ndarray) -> float:
    """Log-probability of a response by the plain model, the whole vocabulary in the denominator."""
    with torch.no_grad():
        logp = plain_logits(model, prompt, response).double().log_softmax(-1)
    return float(logp.gather(-1, torch.from_numpy(response)[:, None]).sum())


# The prefix tree


@given(st.sets(st.lists(st.integers(0, 3), min_size=3, max_size=3).map(tuple), min_size=1, max_size=20))
def test_a_trie_leads_along_its_sequences_and_nowhere_else(sequences: set[tuple[int, ...]]) -> None:
    trie = Trie(sequences)
    assert len(trie) == len(sequences) and trie.depth == 3
    assert all(s in trie and s[:2] not in trie and (*s, 0) not in trie for s in sequences) and (9,) not in trie
    for prefix in {s[:n] for s in sequences for n in range(3)}:
        node = np.zeros(1, dtype=np.int64)
        for token in prefix:
            node = trie.follow(node, np.array([token]))
        assert not trie.complete(node)[0]
        following = {s[len(prefix)] for s in sequences if s[: len(prefix)] == prefix}
        assert set(np.flatnonzero(trie.mask(node, 4)[0]).tolist()) == following
    for sequence in sequences:
        node = np.zeros(1, dtype=np.int64)
        for token in sequence:
            node = trie.follow(node, np.array([token]))
        assert trie.complete(node)[0]


def test_a_trie_of_nothing_and_of_beginnings_is_refused() -> None:
    for bad in ([], [()], [(1, 2), (1,)], [(1,), (1, 2)]):
        with pytest.raises(UsageError):
            Trie(bad)
    assert len(Trie([(1, 2), (1, 2)])) == 1


# Beams, apart from any model


@given(st.integers(0, 10_000), st.integers(1, 9))
def test_a_beam_that_drops_nothing_finds_the_best_leaves_in_order(seed: int, width: int) -> None:
    """Wide enough for every prefix of the last level but one, a beam search is a sort of all leaves."""
    policy = random_tree(seed, 3, 2)
    [found] = TabularEngine(policy).generate([Request("", width, LONG, 0, beam=True)])
    logp = policy.leaf_logprobs().detach()
    if width >= 3:
        best = [policy.tree.paths[i] for i in logp.argsort(descending=True)[:width].tolist()]
        assert [tuple(e.tokens.tolist()) for e in found] == best
    sums = [float(e.logprobs.sum()) for e in found]
    assert sums == sorted(sums, reverse=True) and len({e.text for e in found}) == width


def test_a_narrow_beam_follows_what_is_best_so_far() -> None:
    # The likely first token leads to four ends, the other to a sure one that is the likeliest of all.
    policy = TabularPolicy(
        Tree.of([[0, 0, 0, 0], [0]]), torch.tensor([[0.6, 0.4, 0, 0], [0.4, 0.3, 0.2, 0.1], [1.0] * 4]).log()
    )
    one, two = (TabularEngine(policy).generate([Request("", n, LONG, 0, beam=True)])[0] for n in (1, 2))
    assert [e.text for e in one] == ["0/0"]
    assert [e.text for e in two] == ["1/0", "0/0"]


def test_ends_keep_their_place_among_the_others() -> None:
    """A short response stays while it is good enough, and is pushed out by longer ones that are better."""
    tree = Tree.of([0, [0, [0, 0]]])
    policy = TabularPolicy(tree, torch.tensor([[0.3, 0.7], [0.1, 0.9], [0.5, 0.5]]).log())
    found = [TabularEngine(policy).generate([Request("", n, LONG, 0, beam=True)])[0] for n in (1, 2, 3, 9)]
    # 0: 0.3; 1/0: 0.07; 1/1/0 and 1/1/1: 0.315 each.
    assert [[e.text for e in group] for group in found[1:]] == [
        ["1/1/0", "1/1/1"],
        ["1/1/0", "1/1/1", "0"],
        ["1/1/0", "1/1/1", "0", "1/0"],
    ]
    assert all(e.stop == "eos" for group in found for e in group)


def test_fewer_where_there_are_fewer_and_cut_where_there_is_no_room() -> None:
    policy = random_tree(0, 2, 2)
    engine = TabularEngine(policy)
    [found] = engine.generate([Request("", 7, LONG, 0, beam=True)])
    assert len(found) == 4
    [cut] = engine.generate([Request("", 7, Sampling(max_tokens=1), 0, beam=True)])
    assert sorted(e.text for e in cut) == ["0", "1"] and all(e.stop == "length" for e in cut)


def test_a_beam_has_none_of_the_settings_of_sampling() -> None:
    for bad in (Sampling(4, top_k=2), Sampling(4, top_p=0.9)):
        with pytest.raises(UsageError, match="beam search"):
            TabularEngine(random_tree()).generate([Request("", 2, bad, 0, beam=True)])
    assert Beams(1, 2, 3).over is False


# Catalogues, on the tabular engine


def test_a_catalogue_narrows_a_tabular_search_to_its_paths() -> None:
    policy = random_tree(3)
    paths = [(0, 1, 2), (2, 2, 2), (0, 1, 0), (1, 0, 0)]
    requests = [Request("", 4, LONG, 0, within=Trie(paths), beam=True), Request("0", 4, LONG, 0, beam=True)]
    inside, free = TabularEngine(policy).generate(requests)
    leaves = dict(zip(policy.tree.paths, policy.leaf_logprobs().tolist(), strict=True))
    assert [tuple(e.tokens.tolist()) for e in inside] == sorted(paths, key=lambda p: -leaves[p])
    for e in inside:
        # Of the whole distribution, as the trainer computes them.
        assert float(e.logprobs.sum()) == pytest.approx(leaves[tuple(e.tokens.tolist())], abs=1e-5)
    assert len(free) == 4 and all(e.prompt.tolist() == [0] for e in free)


def test_samples_from_a_catalogue_follow_the_policy_given_each_prefix() -> None:
    policy = random_tree(1, 3, 2)
    paths = [(0, 0), (0, 2), (1, 1)]
    [found] = TabularEngine(policy).generate([Request("", 4000, LONG, 7, within=Trie(paths))])
    p = policy.log_policy().exp()
    first = p[0, :2] / p[0, :2].sum()
    node = policy.tree.node([0])
    assert node is not None
    second = p[node, [0, 2]] / p[node, [0, 2]].sum()
    expected = 4000 * torch.stack([first[0] * second[0], first[0] * second[1], first[1]]).detach()
    counts = [sum(tuple(e.tokens.tolist()) == path for e in found) for path in paths]
    assert sum(counts) == 4000 and chisquare(counts, expected.numpy()).pvalue > 1e-3


def test_what_leads_out_of_the_tree_is_never_a_response() -> None:
    policy = random_tree(0, 2, 2)
    within = Trie([(0, 1), (5, 0)])
    [beam], [sampled] = (
        TabularEngine(policy).generate([Request("", 5, LONG, 0, within=within, beam=b)]) for b in (True, False)
    )
    assert [e.text for e in beam] == ["0/1"] and {e.text for e in sampled} == {"0/1"}
    with pytest.raises(UsageError, match="catalogue"):
        TabularEngine(policy).generate([Request("", 1, LONG, 0, within=Trie([(5, 0)]))])


# The transformers engine


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_search_in_a_catalogue_is_a_sort_of_it(kind: str) -> None:
    plain = tiny(kind)
    engine = HFEngine(CausalLM(deepcopy(plain), TOKENIZER))
    sequences = [engine.encode_response(item) for item in ITEMS]
    within = Trie(sequences)
    made = engine.generate([Request(p, len(ITEMS), LONG, 0, within=within, beam=True) for p in PROMPTS])
    for prompt, found in zip(PROMPTS, made, strict=True):
        encoded = engine.encode(prompt)
        scores = {item: score(plain, encoded, s) for item, s in zip(ITEMS, sequences, strict=True)}
        assert [e.text for e in found] == sorted(ITEMS, key=lambda item: -scores[item])
        for e in found:
            assert float(e.logprobs.sum()) == pytest.approx(scores[e.text], abs=1e-4)
            assert e.stop == "eos" and np.array_equal(e.prompt, encoded)


def test_without_a_catalogue_it_keeps_what_transformers_keeps() -> None:
    """Of fixed length, without a length penalty, the hypotheses are those of the reference implementation."""
    plain = tiny("grouped queries")
    bias = torch.zeros(plain.config.vocab_size)
    bias[2] = -100.0  # no hypothesis ends by itself
    plain.lm_head.bias = torch.nn.Parameter(bias)
    engine = HFEngine(CausalLM(deepcopy(plain), TOKENIZER))
    made = engine.generate([Request(p, 4, Sampling(max_tokens=6), 0, beam=True) for p in PROMPTS])
    for prompt, found in zip(PROMPTS, made, strict=True):
        ids = torch.from_numpy(engine.encode(prompt))[None]
        out = plain.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            num_beams=4,
            num_return_sequences=4,
            length_penalty=0.0,
            max_new_tokens=6,
            eos_token_id=2,
            pad_token_id=0,
        )
        assert [e.tokens.tolist() for e in found] == out[:, ids.shape[1] :].tolist()
        assert all(e.stop == "length" for e in found)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_what_is_recorded_is_the_trainers(engine: HFEngine, catalogue: Trie, temperature: float) -> None:
    sampling = Sampling(max_tokens=12, temperature=temperature)
    made = engine.generate(
        [
            Request(p, 4, sampling, i, within=catalogue, beam=b)
            for i, (p, b) in enumerate(product(PROMPTS, (False, True)))
        ]
    )
    episodes: list[Episode] = [e for group in made for e in group]
    output = engine.policy.forward(batch_of(episodes), ("entropy",), temperature)
    for i, e in enumerate(episodes):
        n = len(e.tokens)
        assert e.text in ITEMS
        np.testing.assert_allclose(output.logprobs[i, :n].detach().numpy(), e.logprobs, rtol=1e-5, atol=2e-5)
        np.testing.assert_allclose(output.live["entropy"][i, :n].detach().numpy(), e.entropies, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("max_rows", [1, 5, 100])
def test_searches_do_not_depend_on_what_else_is_decoded(engine: HFEngine, catalogue: Trie, max_rows: int) -> None:
    requests = [Request(p, 3, LONG, i, within=catalogue, beam=True) for i, p in enumerate(PROMPTS)]
    mixed = [*requests, Request(PROMPTS[0], 2, LONG, 5), Request(PROMPTS[1], 2, LONG, 6, within=catalogue)]
    together = HFEngine(engine.policy, max_rows).generate(mixed)
    alone = [engine.generate([r])[0] for r in mixed]
    assert [[e.tokens.tolist() for e in g] for g in together] == [[e.tokens.tolist() for e in g] for g in alone]


def test_samples_from_a_catalogue_follow_the_model() -> None:
    plain = tiny("grouped queries")
    engine = HFEngine(CausalLM(deepcopy(plain), TOKENIZER))
    sequences = [engine.encode_response(item) for item in ("3", "45", "46")]
    [found] = engine.generate([Request("4", 600, LONG, 3, within=Trie(sequences))])
    with torch.no_grad():
        [logits] = plain_logits(plain, engine.encode("4"), np.zeros(1, dtype=np.int64))
    first = torch.stack([logits[s[0]] for s in sequences[:2]]).double().softmax(-1)
    counts = [sum(e.text.startswith(c) for e in found) for c in ("3", "4")]
    assert sum(counts) == 600 and chisquare(counts, 600 * first.numpy()).pvalue > 1e-3
    assert {e.text for e in found} <= {"3", "45", "46"} and all(e.stop == "eos" for e in found)


def test_sequences_without_an_end_token_stop_where_they_are_whole(engine: HFEngine) -> None:
    within = Trie([engine.encode_response(item, end=False) for item in ("45", "3")])
    for beam in (True, False):
        [found] = engine.generate([Request("4", 2, LONG, 1, within=within, beam=beam)])
        assert all(e.text in ("45", "3") and e.stop == "stop" for e in found)


def test_a_response_may_be_cut(engine: HFEngine, catalogue: Trie) -> None:
    for beam in (True, False):
        [found] = engine.generate([Request("4", 3, Sampling(max_tokens=1), 1, within=catalogue, beam=beam)])
        assert found and all(e.stop == "length" and len(e.tokens) == 1 for e in found)
