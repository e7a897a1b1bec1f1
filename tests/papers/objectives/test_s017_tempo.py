"""TEMPO: worked numbers, the tree by brute force, what the differences add up to, what does not share a prefix."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.credit import tempo
from assay.credit.grpo import GRPO
from assay.credit.tempo import Tempo, temporal_differences
from assay.errors import UsageError
from assay.learning.update import update
from assay.method import make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Episode, Fork, Group, Task, Verdict


def batch_of(responses, rewards, prompts=None, groups=None, active=None) -> Batch:
    """One sample per response, a sequence of token ids."""
    made = []
    for i, response in enumerate(responses):
        episode = Episode(
            prompt=np.array(prompts[i] if prompts else [7], dtype=np.int64),
            tokens=np.array(response, dtype=np.int64),
            mask=np.ones(len(response), dtype=bool),
            logprobs=None,
            text="",
            stop="eos",
            advantage_group=str(groups[i] if groups else 0),
        )
        made.append(Group(Ask(Task(str(i), ""), 1), (episode,), (Verdict(0, False),)))
    batch = Batch.from_groups(made, torch.float64)
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    if active is not None:
        batch.weights = torch.tensor(active, dtype=torch.float64)
    return batch


LETTERS = ["abc", "abd", "aef", "gh"]


def letters(words):
    return [[ord(c) for c in word] for word in words]


def test_the_worked_example() -> None:
    batch = batch_of(letters(LETTERS), [1, 0, 0, 1])
    td = temporal_differences(batch, batch.rewards)
    assert td[0].tolist() == pytest.approx([-1 / 6, 1 / 6, 1 / 2])
    got = Tempo(epsilon=0)(batch)
    want = [
        [0.577350, 1.154701, 1.732051],
        [-1.154701, -0.577350, -1.732051],
        [-1.154701, -1.443376, -0.866025],
        [1.732051, 0.866025, 0],
    ]
    assert torch.allclose(got, torch.tensor(want, dtype=torch.float64), atol=1e-6)


def brute_force(rows, rewards, active):
    """V by scanning all active responses for every prefix; the end of a response is a token of its own."""
    whole = [[*r, "end"] for r in rows]

    def value(prefix):
        found = [x for w, x, a in zip(whole, rewards, active, strict=True) if a and w[: len(prefix)] == prefix]
        return sum(found) / len(found)

    out = []
    for row, counts in zip(rows, active, strict=True):
        states = [row[:t] for t in range(len(row))] + [[*row, "end"]]
        out.append([value(b) - value(a) if counts else 0.0 for a, b in pairwise(states)])
    return out


@given(st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=8), st.data())
def test_the_differences_are_those_of_the_tree(rows, data) -> None:
    n = len(rows)
    rewards = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n, max_size=n))
    active = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    batch = batch_of(rows, rewards, active=[float(a) for a in active])
    got = temporal_differences(batch, batch.rewards)
    for i, want in enumerate(brute_force(rows, rewards, active)):
        assert got[i, : len(rows[i])].tolist() == pytest.approx(want, abs=1e-12)


def test_along_a_response_the_differences_add_up_to_the_centred_reward() -> None:
    batch = batch_of(letters(LETTERS), [1, 0, 0, 1])
    assert temporal_differences(batch, batch.rewards).sum(-1).tolist() == pytest.approx([0.5, -0.5, -0.5, 0.5])


def test_a_prefix_of_another_response_has_its_own_end() -> None:
    """Cut off at "ab", which another response goes on from: V at its end is its own reward, not the mean of both."""
    batch = batch_of(letters(["ab", "abc", "ad"]), [0, 1, 1])
    td = temporal_differences(batch, batch.rewards)
    assert td[0, :2].tolist() == pytest.approx([0, -2 / 3])
    assert td[1].tolist() == pytest.approx([0, -1 / 6, 1 / 2])


def test_between_forks_it_is_grpo_bit_for_bit() -> None:
    batch = batch_of(letters(["abxyz", "abxuv", "abxyw"]), [0.3, 0.1, 0.7])
    ours, grpo = Tempo()(batch), GRPO()(batch)
    assert torch.equal(ours[:, :3], grpo[:, :3])
    assert not torch.isclose(ours[:, 3], grpo[:, 3]).any()
    assert ours[1, 4] == grpo[1, 4] and ours[0, 4] != grpo[0, 4]


def test_responses_that_part_at_once_are_corrected_at_the_first_token_only() -> None:
    batch = batch_of(letters(["abc", "bcd", "cde"]), [1, 0, 0])
    ours, grpo = Tempo()(batch), GRPO()(batch)
    assert torch.equal(ours[:, 1:], grpo[:, 1:])
    # With epsilon zero both terms are the centred reward over the same deviation.
    assert torch.allclose(ours[:, 0], 2 * grpo[:, 0])


def test_limits() -> None:
    batch = batch_of(letters(LETTERS), [1, 0, 0, 1])
    assert torch.equal(Tempo(td_weight=0)(batch), GRPO()(batch))
    assert torch.equal(Tempo(td_weight=0, normalise=False)(batch), GRPO(normalise=False)(batch))
    for same in (0.0, 1 / 3):
        assert not Tempo()(batch_of(letters(LETTERS), [same] * 4)).any()
    assert not Tempo()(batch_of(letters(["abc"]), [1])).any()


def test_other_groups_and_other_prompts_share_nothing() -> None:
    rows, rewards = letters(["abc", "abd", "abc", "abd"]), [1, 0, 0, 0]
    apart = batch_of(rows, rewards, groups=[0, 0, 1, 1])
    assert torch.allclose(Tempo()(apart)[:2], Tempo()(batch_of(rows[:2], rewards[:2]))) and not Tempo()(apart)[2:].any()
    hinted = batch_of(rows, rewards, prompts=[[7], [7], [8], [8]])
    td = temporal_differences(hinted, hinted.rewards)
    assert td[:2, 2].tolist() == [0.5, -0.5] and not td[2:].any()


def test_a_response_that_goes_on_from_anothers_prefix_shares_it() -> None:
    """The same text as prompt + prefix and as a response: the same values at the tokens both have."""
    whole = batch_of(letters(LETTERS), [1, 0, 0, 1])
    rows = letters(LETTERS)
    split = batch_of([rows[0], rows[1][2:], rows[2], rows[3]], [1, 0, 0, 1], prompts=[[7], [7, *rows[1][:2]], [7], [7]])
    a, b = temporal_differences(whole, whole.rewards), temporal_differences(split, split.rewards)
    assert b[1, 0] == a[1, 2] and torch.equal(b[[0, 2, 3]], a[[0, 2, 3]])


def test_prompts_of_different_lengths() -> None:
    """Two responses go on from the first tokens of a third, and part where that one, the longest, has ended."""
    whole, rewards = [[1, 2, 3, 4], [1, 2, 5, 6, 7], [1, 2, 5, 6, 8]], [1.0, 0.0, 1.0]
    want = brute_force(whole, rewards, [True] * 3)
    split = batch_of([whole[0], whole[1][2:], whole[2][2:]], rewards, prompts=[[7], [7, 1, 2], [7, 1, 2]])
    td = temporal_differences(split, split.rewards)
    assert td[0].tolist() == pytest.approx(want[0]) == [0, 0, pytest.approx(1 / 3), 0]
    assert td[1].tolist() == pytest.approx([*want[1][2:], 0]) and td[2].tolist() == pytest.approx([*want[2][2:], 0])
    # One that goes on for long, alone, from where others part before it: nothing of that is on its own tokens.
    late = batch_of([[1], [2], [5, 6, 7, 8]], [0.0, 1.0, 1.0], prompts=[[7], [7], [7, 1]])
    assert temporal_differences(late, late.rewards)[2].tolist() == pytest.approx([0.5, 0, 0, 0])


def test_the_tree_is_walked_only_where_responses_stand_together(monkeypatch) -> None:
    """Neither a common prompt but for its last token, nor what follows where all stand alone or have ended."""
    walked, real = [], tempo._shared
    monkeypatch.setattr(tempo, "_shared", lambda node, active, on: walked.append(on) or real(node, active, on))
    apart = batch_of([[1] * 40, [2] * 40], [1.0, 0.0], prompts=[[7] * 50] * 2)
    assert temporal_differences(apart, apart.rewards)[:, 0].tolist() == [0.5, -0.5] and len(walked) == 3
    walked.clear()
    ended = batch_of([[1], [1], [2] * 40], [1.0, 0.0, 1.0])
    assert temporal_differences(ended, ended.rewards)[2, 0].item() == pytest.approx(1 / 3) and len(walked) == 3


def test_tokens_that_are_not_learned_from_get_nothing_but_count_as_prefix() -> None:
    batch = batch_of(letters(LETTERS), [1, 0, 0, 1])
    want = Tempo()(batch)
    batch.mask[:, 1] = False
    got = Tempo()(batch)
    assert not got[:, 1].any() and torch.equal(got[:, [0, 2]], want[:, [0, 2]])


def test_episodes_that_fork_are_refused() -> None:
    batch = batch_of(letters(LETTERS), [1, 0, 0, 1])
    batch.episodes[2] = replace(batch.episodes[2], forks=(Fork(1, np.array([7, 8])),))
    with pytest.raises(UsageError, match="keep its context whole"):
        temporal_differences(batch, batch.rewards)


def test_rewards_on_tokens_count() -> None:
    plain, placed = batch_of(letters(LETTERS), [1, 0, 0, 1]), batch_of(letters(LETTERS), [0, 0, 0, 1])
    placed.token_rewards = torch.zeros(4, 3, dtype=torch.float64)
    placed.token_rewards[0, 1] = 1
    assert torch.equal(Tempo()(placed), Tempo()(plain))


def test_an_objective_of_whole_responses_is_refused() -> None:
    with pytest.raises(UsageError, match="own advantage"):
        make_method("grpo", credit="S017", objective="gspo")
    assert make_method("S017").credit == Tempo()


def test_rewards_that_hardly_differ_are_hardly_told_apart() -> None:
    """A deviation of 1e-6, as much as is added to it: both terms are halved."""
    rewards = [0.0, 2**0.5 * 1e-6]
    assert Tempo()(batch_of([[1], [2]], rewards))[:, 0].tolist() == pytest.approx([-0.707107, 0.707107], abs=1e-6)
    plain = Tempo(td_weight=3.0, normalise=False)(batch_of([[1], [2]], [0.0, 1.0]))
    assert plain[:, 0].tolist() == [-2, 2]
    assert make_method("S017", credit={"td_weight": 3.0, "normalise": False}).credit == Tempo(3.0, False)
    assert Tempo.group_relative
    assert [Tempo(normalise=n).summary["normalisation"] for n in (True, False)] == ["group std", "none"]


def test_no_responses_and_empty_ones() -> None:
    assert Tempo()(batch_of([[], []], [1, 0])).shape == (2, 0)
    assert Tempo()(Batch.from_groups([], torch.float64)).shape[0] == 0
    assert Tempo()(batch_of([[], [5]], [1, 0]))[1, 0].item() == pytest.approx(-2 * 0.707107, abs=1e-5)


def test_an_update_moves_the_token_that_decides_twice_as_far() -> None:
    """All four responses of two tokens, right if the first token is 0: V = 1 and 0 after it, 1/2 before.

    GRPO's advantages are -+0.866025; at the first token the difference doubles them. Each of four responses adds
    0.866025 / 2 to the first logit at the root, over eight tokens; below it right and right, wrong and wrong cancel.
    """
    moved = {}
    for name in ("grpo", "S017"):
        policy = TabularPolicy(Tree.uniform(2, 2))
        verdicts = tuple(Verdict(float(k < 2), k < 2) for k in range(4))
        group = Group(Ask(Task("t", ""), 4), tuple(policy.leaf_episodes(torch.arange(4))), verdicts)
        method = make_method(name)
        batch = method.value(Batch.from_groups([group], torch.float64))
        before = policy.logits.detach().clone()
        optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
        update(policy, method.objective, batch, optimizer, max_grad_norm=float("inf"))
        change = policy.logits.detach() - before
        assert change[1:].abs().max() < 1e-9
        moved[name] = change[0].tolist()
    assert moved["grpo"] == pytest.approx([0.216506, -0.216506], abs=1e-5)
    assert moved["S017"] == pytest.approx([0.433013, -0.433013], abs=1e-5)
