"""Keys and values kept between turns: the same responses, and only new tokens read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from tiny import KINDS, TOKENIZER, tiny

from assay.engines import hf
from assay.engines.base import Keeping, Request, Sampling, can
from assay.engines.hf import HFEngine
from assay.engines.sessions import Kept, Sessions
from assay.engines.tabular import TabularEngine
from assay.engines.tokens import Tokens
from assay.policies.attention.packed import Decode
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.training.ahead.shadow import Shadow
from assay.types import Episode

BRIDGES = ["\n=12\n", "", "+", "\n1+2=3 and more of it\n"]


def turns(engine: HFEngine, sessions: bool, rounds: int = 3, rows: int = 6, most: int = 5) -> list[list[Episode]]:
    """Let conversations of different lengths take turns, with what differs in length in between."""
    prompts = [engine.encode("1+2="[: 1 + i % 4] * (1 + i % 3)) for i in range(rows)]
    out = []
    for turn in range(rounds):
        asked = [
            Request(Tokens(p), 1, Sampling(most - i % 2), 100 * turn + i, session=f"s{i}" if sessions else None)
            for i, p in enumerate(prompts)
        ]
        made = [e for [e] in engine.generate(asked)]
        out.append(made)
        prompts = [
            np.concatenate([p, e.tokens, engine.encode_response(BRIDGES[(i + turn) % 4] + "1", end=False)])
            for i, (p, e) in enumerate(zip(prompts, made, strict=True))
        ]
    return out


def same(a: Sequence[Sequence[Episode]], b: Sequence[Sequence[Episode]]) -> None:
    for x, y in zip((e for g in a for e in g), (e for g in b for e in g), strict=True):
        assert np.array_equal(x.tokens, y.tokens) and np.array_equal(x.prompt, y.prompt) and x.stop == y.stop
        np.testing.assert_allclose(x.logprobs, y.logprobs, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(x.entropies, y.entropies, rtol=1e-5, atol=1e-5)


class Counting:
    """Counts the tokens that go through a model."""

    def __init__(self, policy: CausalLM):
        self.policy, self.count = policy, 0

    def __call__(self, tokens: torch.Tensor, layout: Any) -> torch.Tensor:
        self.count += 0 if isinstance(layout, Decode) else len(tokens)
        return self.policy.hidden(tokens, layout)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Counting]:
    made: list[Counting] = []

    def hidden_of(policy: CausalLM, tokens: int) -> Counting:
        made.append(Counting(policy))
        return made[-1]

    monkeypatch.setattr(hf, "hidden_of", hidden_of)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_responses_are_what_they_are_without(kind: str) -> None:
    engine = HFEngine(CausalLM(tiny(kind), TOKENIZER), max_rows=4)
    same(turns(engine, True), turns(engine, False))
    assert len(engine.sessions) == 6


def test_only_new_tokens_are_read(counted: list[Counting]) -> None:
    engine = HFEngine(CausalLM(tiny("llama"), TOKENIZER))
    said = turns(engine, True)
    read = [c.count for c in counted]
    whole = [sum(len(e.prompt) for e in made) for made in said]
    # The last token of the turn before has been drawn and not been read.
    new = [
        sum(len(e.prompt) - len(b.prompt) - len(b.tokens) + 1 for e, b in zip(now, before, strict=True))
        for before, now in pairwise(said)
    ]
    assert read[1:] == new and sum(new) < sum(whole[1:]) / 2


def test_conversations_begin_beside_others_that_go_on() -> None:
    engine = HFEngine(CausalLM(tiny("grouped queries"), TOKENIZER))
    turns(engine, True, rounds=1)
    texts = ["1+2=", "77777", "1", "1+2="]
    for keys in (["s0", None, "new", "s1"], [None, "new", "s5", "s0"]):
        asked = [Request(t, 1, Sampling(6), i, session=k) for i, (t, k) in enumerate(zip(texts, keys, strict=True))]
        plain = [Request(t, 1, Sampling(6), i) for i, t in enumerate(texts)]
        same(engine.generate(asked), engine.generate(plain))


def test_what_was_said_otherwise_is_read_again(counted: list[Counting]) -> None:
    """A session holds for the tokens that are still the same, however it was broken off."""
    engine = HFEngine(CausalLM(tiny("llama"), TOKENIZER))
    base = engine.encode("12+34=")

    def ask(ids: Sequence[int] | np.ndarray, session: str | None = "s") -> list[list[Episode]]:
        return engine.generate([Request(Tokens(ids), 1, Sampling(4), 9, session=session)])

    ask(base)
    for ids, read in [([*base[:3], *base[1:]], len(base) - 1), (base[:2], 1), (base, len(base) - 1), (base, 1)]:
        got, cost = ask(ids), counted[-1].count
        same(got, ask(ids, None))
        assert cost <= read + 1
    assert counted[-2].count == 1, "the very same prompt costs its last token"


def test_new_weights_are_heard_of() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    engine = HFEngine(policy)
    turns(engine, True, rounds=1)
    with torch.no_grad():
        policy.model.lm_head.weight.mul_(0.5)
        policy.model.base_model.layers[0].self_attn.k_proj.weight.neg_()
    same(turns(engine, True), turns(HFEngine(policy), False))
    engine.generate([Request("1", 1, Sampling(2), 0, session="x")])
    assert len(engine.sessions) == 7, "as long as they stay, so do sessions"


def test_what_does_not_fit_is_not_kept() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    free = HFEngine(policy)
    said = turns(free, True)
    one = max(kept.bytes for kept in free.sessions._kept.values())
    engine = HFEngine(policy, kept_bytes=2 * one)
    same(turns(engine, True), said)
    assert 1 <= len(engine.sessions) <= 4 and engine.sessions._bytes <= 2 * one
    engine.end_sessions([*(f"s{i}" for i in range(6)), "unknown"])
    assert len(engine.sessions) == 0 and engine.sessions._bytes == 0
    same(turns(HFEngine(policy, kept_bytes=0), True), said)


def test_it_is_of_requests_for_one_response() -> None:
    engine = HFEngine(CausalLM(tiny("llama"), TOKENIZER))
    [made] = engine.generate([Request("1+", 3, Sampling(4), 0, session="s")])
    assert len(made) == 3 and len(engine.sessions) == 0
    engine.generate([Request("1+", 1, Sampling(4), 0, session="s", beam=True)])
    assert len(engine.sessions) == 0


def test_pieces_are_cut_where_tokens_differ() -> None:
    pieces = tuple(torch.arange(n).float()[None, None, None, :, None] for n in (3, 2, 4))
    kept = Kept(np.arange(9), pieces)
    for n in range(1, 10):
        some = kept.first(n)
        assert sum(p.shape[3] for p in some.pieces) == len(some.tokens) == n
        assert torch.equal(torch.cat(some.pieces, 3).flatten(), torch.cat(pieces, 3).flatten()[:n])
    sessions = Sessions(10**6)
    sessions.keep("a", kept)
    assert sessions.take("b", np.arange(9)) is None and sessions.take("a", np.array([5, 5])) is None
    for asked, common in [(np.arange(9), 8), (np.arange(12), 9), (np.array([0, 1, 7, 3, 4]), 2)]:
        sessions.keep("a", kept)
        found = sessions.take("a", asked)
        assert found is not None and len(found.tokens) == common and len(sessions) == 0


def test_who_keeps() -> None:
    policy = CausalLM(tiny("llama"), TOKENIZER)
    engine = HFEngine(policy)
    assert can(engine, Keeping) and can(Shadow(policy, HFEngine), Keeping)
    assert not can(TabularEngine(TabularPolicy(Tree.bandit(2, [1, 0]))), Keeping)
    shadow = Shadow(policy, HFEngine)
    shadow.generate([Request("1+", 1, Sampling(2), 0, session="s")])
    shadow.end_sessions(["s"])
    assert len(shadow.engine.sessions) == 0


@pytest.mark.parametrize("least", [40, 60, 80, 100])
def test_turns_of_much_and_of_little_work_go_together(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed with packed weights keeps its keys in another order, in which the rest has to go on."""
    monkeypatch.setattr("assay.engines.packed.LEAST_TOKENS", least)
    one, other = (HFEngine(CausalLM(tiny("llama", seed=3), TOKENIZER)) for _ in range(2))
    same(turns(one, True), turns(other, False))
