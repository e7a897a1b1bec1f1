"""Episodes whose turns go on from another context than what stands before: every sampled token is learnt from once."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import TOKENIZER, VOCABULARY, tiny

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.environments.guess import Guess
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.policies.causal_lm import CausalLM
from assay.policies.conversation import drops_thinking
from assay.rollout.turns.contexts import SUMMARY, Context
from assay.rollout.turns.multi_turn import MultiTurn
from assay.rollout.turns.under_way import Live
from assay.training.ahead.in_flight import pack, unpack
from assay.types import Ask, Episode, Group, Message, Task

pytestmark = pytest.mark.usefixtures("one_thread")

# A thought is what stands before the last "+": the alphabet has no angles.
QWEN = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m['role'] == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}{% for m in messages %}({% if m['role'] == 'assistant' and loop.index0 < ns.last %}"
    "{{ m['content'].split('</think>')[-1] }}{% else %}{{ m['content'] }}{% endif %}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}(a {% endif %}"
)


def engine(context: int = 256) -> HFEngine:
    return HFEngine(CausalLM(tiny("llama", max_position_embeddings=context), TOKENIZER))


def played(by: HFEngine, turns: int = 4, most: int = 5, asks: int = 20, **options: Any) -> list[Group]:
    rollout = MultiTurn({"name": "guess", "asks": asks}, Sampling(most), turns=turns, **options)
    source = Guess().tasks()
    return rollout.collect([Ask(source[i], 4) for i in range(3)], by, np.random.default_rng(5))


def episodes(groups: list[Group]) -> list[Episode]:
    return [e for g in groups for e in g.episodes]


def agrees(by: HFEngine, groups: list[Group]) -> Batch:
    """The trainer's log-probabilities are the sampler's, on the tokens that the policy wrote and no others."""
    batch = Batch.from_groups(groups)
    with torch.no_grad():
        logprobs = by.policy.forward(batch).logprobs
    assert float((logprobs - batch.logprobs)[batch.mask].abs().max()) < 1e-4
    assert torch.equal(batch.turn >= 0, batch.mask)
    assert int(batch.mask.sum()) == sum(t.end - t.start for e in batch.episodes for t in e.turns)
    return batch


def test_a_row_for_every_turn_is_the_same_to_learn_from() -> None:
    by = engine()
    whole, split = played(by), played(by, layout="turns")
    a, b = agrees(by, whole), agrees(by, split)
    assert sum(len(e.forks) for e in b.episodes) == sum(len(e.turns) - 1 for e in b.episodes) > 12
    for x, y in zip(a.episodes, b.episodes, strict=True):
        assert np.array_equal(x.tokens[x.mask], y.tokens) and y.mask.all() and len(x.turns) == len(y.turns)
        for fork, turn in zip(y.forks, x.turns[1:], strict=True):
            assert np.array_equal(fork.prompt, [*x.prompt, *x.tokens[: turn.start]])
    # Samples, means and gradients are of trajectories in either case.
    found = []
    for batch in (a, b):
        batch.rewards = torch.arange(len(batch)) % 3.0
        batch.advantages, batch.totals = Method().credit(batch), batch.count()
        by.policy.module.zero_grad()
        loss = ClippedSurrogate(aggregation="sequence_mean")(by.policy.forward(batch).logprobs, batch).value
        loss.backward()
        weight = by.policy.model.base_model.layers[0].self_attn.q_proj.weight
        found.append((batch.totals, float(loss.detach()), weight.grad.clone()))
    (totals, loss, gradient), (others, other, like) = found
    assert totals == others and loss == pytest.approx(other, abs=1e-6)
    assert torch.allclose(gradient, like, atol=1e-6) and float(gradient.abs().max()) > 1e-4


def test_what_a_template_drops_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TOKENIZER, "chat_template", QWEN)
    user, tool = Message(role="user", content="1"), Message(role="tool", content="1")
    assert drops_thinking(TOKENIZER, True, [user]) and not drops_thinking(TOKENIZER, True, [tool])
    assert not drops_thinking(TOKENIZER, False, [user])
    # The tiny alphabet has no angles, so that thoughts have another end here.
    monkeypatch.setattr("assay.rollout.turns.contexts.THOUGHT", "+")
    by = engine()
    groups = played(by, turns=5, most=8)
    batch = agrees(by, groups)
    thought = [[("+" in t.text) for t in e.turns[:-1]] for e in batch.episodes]
    assert [len(e.forks) for e in batch.episodes] == [sum(x) for x in thought] and any(any(x) for x in thought)
    assert not all(x for y in thought for x in y)
    for episode in batch.episodes:
        for fork in episode.forks:
            # What is said now has been written by the template, in which each turn stands once.
            text = by.decode(fork.prompt)
            said = [t for t in episode.turns if t.end <= fork.start]
            assert text.count("(") >= 2 * len(said) + 2 and text.endswith("(a ")


def test_a_window_has_the_beginning_and_the_last_turns() -> None:
    by = engine()
    whole = {e.trajectory: e for e in episodes(played(by, turns=6))}
    groups = played(by, turns=6, context="window", keep=2)
    forks = 0
    for e in agrees(by, groups).episodes:
        starts = {t.start for t in e.turns}
        for fork in e.forks:
            forks += 1
            assert fork.start in starts
            assert np.array_equal(fork.prompt[: len(e.prompt)], e.prompt)
            turn = next(t for t in e.turns if t.start == fork.start)
            before = [e.tokens[t.start : t.end].tolist() for t in e.turns[turn.index - 2 : turn.index]]
            rest = fork.prompt[len(e.prompt) :].tolist()
            assert rest[: len(before[0])] == before[0] and str(before[1])[1:-1] in str(rest)
        assert len(e.forks) == max(0, len(e.turns) - 3)
        # As far as the window reaches, nothing differs.
        upto = e.forks[0].start if e.forks else len(e.tokens)
        assert np.array_equal(e.tokens[:upto], whole[str(e.trajectory)].tokens[:upto])
    assert forks > 12


@pytest.mark.parametrize("keep", [0, 2])
def test_a_memory_of_rounds_has_the_task_and_what_was_seen_then(keep: int) -> None:
    by = engine()
    replies = [Message(role="user", content=r) for r in ("a number from 1 to 16", "higher", "lower")]
    first = [by.opening([Message(role="user", content=f"1-16?\n\n{r['content']}")], ()) for r in replies]
    later = [by.bridge([r], ended) for r in replies for ended in (True, False)]
    forks = 0
    for e in agrees(by, played(by, turns=6, context="rounds", keep=keep)).episodes:
        assert [f.start for f in e.forks] == [t.start for t in e.turns[keep + 1 :]]
        for fork, turn in zip(e.forks, e.turns[keep + 1 :], strict=True):
            forks += 1
            own = [e.tokens[t.start : t.end] for t in e.turns[turn.index - keep : turn.index]]
            rounds = [[np.concatenate([said, answer]) for answer in later] for said in own]
            assert any(np.array_equal(fork.prompt, np.concatenate(parts)) for parts in product(first, *rounds))
    assert forks > 12


def test_engines_that_are_asked_by_messages_see_as_much() -> None:
    task = Task("t", "Play.")
    opened = (Message(role="user", content="Play.\n\no0"),)
    later = [Message(role=r, content=c) for k in (1, 2, 3) for r, c in (("assistant", f"a{k}"), ("user", f"o{k}"))]
    live = Live("t", SimpleNamespace(task=task), np.random.default_rng(0), opened=opened, said=[*opened, *later])  # type: ignore[arg-type]

    def seen(**options: Any) -> list[str]:
        return [m["content"] for m in Context(**options).shown(live)]

    every = ["Play.\n\no0", "a1", "o1", "a2", "o2", "a3", "o3"]
    assert seen() == seen(kind="window", keep=3) == seen(kind="rounds", keep=3) == every
    assert seen(kind="window", keep=1) == ["Play.\n\no0", "a3", "o3"]
    assert seen(kind="rounds", keep=1) == ["Play.\n\no2", "a3", "o3"] and seen(kind="rounds", keep=0) == ["Play.\n\no3"]
    apart = (Message(role="system", content="Play."), Message(role="user", content="o0"))
    live.opened, live.said = apart, [*apart, *later]
    assert seen(kind="rounds", keep=0) == ["Play.", "o3"]
    live.opened, live.said = apart[1:], [apart[1], *later]
    assert seen(kind="rounds", keep=2) == ["o0\n\no1", "a2", "o2", "a3", "o3"]
    with pytest.raises(UsageError, match="keep -1"):
        Context("rounds", keep=-1)
    with pytest.raises(UsageError, match="keep 0"):
        Context("window", keep=0)


def test_a_summary_takes_the_place_of_turns() -> None:
    by = engine(1024)
    groups = played(by, turns=7, context="summary", room=60)
    summaries = 0
    for e in agrees(by, groups).episodes:
        assert [f.start for f in e.forks] == [t.end for t in e.turns[:-1] if t.tag == "summary"]
        for fork, turn in zip(e.forks, (t for t in e.turns if t.tag == "summary"), strict=False):
            summaries += 1
            opened = by.decode(e.prompt)
            expected = by.decode(by.encode(f"{opened.rstrip()}\n\n{SUMMARY}{turn.text.strip()}"))
            assert by.decode(fork.prompt).strip() == expected.strip()
            assert turn.state == turn.next_state and not turn.calls
        assert len(e.turns) <= 7
    assert summaries > 6
    # Also where nobody else is waited for.
    rollout = MultiTurn({"name": "guess", "asks": 20}, Sampling(5), turns=7, context="summary", room=60)
    [group] = rollout.collect([Ask(Guess().tasks()[0], 1)], by, np.random.default_rng(5))
    assert len(group.episodes[0].turns) == 7 and group.verdicts[0].passed is not None


def test_rows_are_read_and_counted_as_rows() -> None:
    by = engine()
    batch = Batch.from_groups(played(by, layout="turns"))
    forked = batch.episodes[0]
    assert [t.tolist() for _, t in forked.rows] == [forked.tokens[t.start : t.end].tolist() for t in forked.turns]
    assert forked.reading == len(forked.tokens) + sum(len(f.prompt) for f in forked.forks)
    parts = by.policy.micro_batches(batch, forked.reading + 1)
    assert sorted(i for p in parts for i in p.tolist()) == list(range(len(batch))) and len(parts) > len(batch) / 2
    after = by.policy.forward(batch, {"next_logprob@3"}).live["next_logprob@3"]
    for i, e in enumerate(batch.episodes):
        prompt, tokens = e.rows[-1]
        alone = Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, "", "eos")
        one = Batch.from_groups([Group(Ask(batch.tasks[0], 1), (alone,))])
        assert float(by.policy.forward(one, {"next_logprob@3"}).live["next_logprob@3"]) == pytest.approx(
            float(after[i]), abs=1e-5
        )
    with pytest.raises(UsageError, match="forks"):
        by.policy.continuations(batch, [[1]] * len(batch), [[np.array([5])]] * len(batch))
    assert VOCABULARY > 3


def test_episodes_with_turns_and_forks_are_plain_data() -> None:
    groups = played(engine(), layout="turns")
    again = unpack(pack(groups))
    for a, b in zip(episodes(groups), episodes(again), strict=True):
        assert a.turns == b.turns and [f.start for f in a.forks] == [f.start for f in b.forks]
        assert all(np.array_equal(f.prompt, g.prompt) for f, g in zip(a.forks, b.forks, strict=True))


@pytest.mark.parametrize("options", [{"context": "all"}, {"layout": "rows"}, {"keep": 0}, {"room": 0}])
def test_unknown_ways_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="multi_turn"):
        MultiTurn("guess", Sampling(5), **options)
