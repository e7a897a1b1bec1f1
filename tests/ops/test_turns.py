"""The table of turns, returns, comparisons and what stands on tokens: worked numbers, plain NumPy, limit cases."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.ops.turns import Turns, normalise, turns_of
from assay.types import Ask, Episode, Group, Task, Turn, Verdict


def batch_of(*rows: Sequence[Turn], keys: Sequence[tuple[str, str]] | None = None, gap: int = 1) -> Batch:
    """One sample per row of turns, each of two own tokens with ``gap`` of the world's between; one group.

    ``keys`` are group and trajectory.
    """
    made = []
    for i, turns in enumerate(rows):
        width = len(turns) * (2 + gap)
        mask = np.zeros(width, dtype=bool)
        placed = []
        for k, turn in enumerate(turns):
            start = k * (2 + gap)
            mask[start : start + 2] = True
            placed.append(Turn(**{**{f: getattr(turn, f) for f in turn.__slots__}, "start": start, "end": start + 2}))
        group, trajectory = keys[i] if keys else ("g", str(i))
        zeros = np.zeros(width, dtype=np.int64)
        episode = Episode(zeros[:0], zeros, mask, None, "", "eos", turns=tuple(placed), trajectory=trajectory)
        made.append(Group(Ask(Task(str(i), ""), 1), (episode,), (Verdict(0, False),)))
        made[-1] = Group(made[-1].ask, (_grouped(episode, group),), made[-1].verdicts)
    return Batch.from_groups(made, torch.float64)


def _grouped(episode: Episode, group: str) -> Episode:
    return Episode(**{**{f: getattr(episode, f) for f in episode.__slots__}, "advantage_group": group})


def row(count: int, **fields: Sequence[object]) -> list[Turn]:
    return [Turn(k, 0, 0, **{name: values[k] for name, values in fields.items()}) for k in range(count)]


def tensor(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


# The table


def test_rewards_are_what_was_placed_and_the_outcome_on_the_last_turn() -> None:
    batch = batch_of(row(2), row(1))
    batch.rewards = tensor([1.0, 0.5])
    batch.token_rewards = torch.zeros(2, 6, dtype=torch.float64)
    batch.token_rewards[0, 0], batch.token_rewards[0, 2], batch.token_rewards[0, 4] = 3, 100, 5
    turns = turns_of(batch)
    assert turns.rewards.tolist() == [3, 6, 0.5], "what is on the world's token is nobody's"
    assert turns.sample.tolist() == [0, 0, 1] and turns.index.tolist() == [0, 1, 0]
    assert turns.last.tolist() == [False, True, True]
    assert turns.place[0].tolist() == [0, 0, -1, 1, 1, -1]


def test_a_trajectory_in_two_samples_has_its_outcome_once() -> None:
    """A fork: its third turn stands in a sample of its own, which comes first."""
    forked = batch_of([Turn(2, 0, 0)], row(2), row(1), keys=[("g", "a"), ("g", "a"), ("g", "b")])
    forked.rewards = tensor([1.0, 1.0, 0.25])
    turns = turns_of(forked)
    assert turns.sample.tolist() == [1, 1, 0, 2] and turns.index.tolist() == [0, 1, 2, 0]
    assert turns.rewards.tolist() == [0, 0, 1, 0.25]
    assert turns.returns(turns.rewards, 0.5).tolist() == [0.25, 0.5, 1, 0.25]
    assert turns.on_tokens(tensor([1, 2, 3, 4]), forked)[0].tolist() == [3, 3, 0, 0, 0, 0]


def test_an_episode_without_turns_is_one(make_batch) -> None:
    batch = make_batch([2, 3, 0], rewards=[1.0, 0.5, 0.25])
    turns = turns_of(batch)
    assert turns.rewards.tolist() == [1, 0.5, 0.25] and turns.records[1] == Turn(0, 0, 3)
    assert turns.on_tokens(tensor([1, 2, 3]), batch).tolist() == [[1, 1, 0], [2, 2, 2], [0, 0, 0]]


def test_no_turns_at_all(make_batch) -> None:
    nothing = Batch.from_groups([], torch.float64)
    turns = turns_of(nothing)
    assert len(turns) == 0 and turns.on_tokens(turns.rewards, nothing).shape == (0, 0)
    assert normalise(turns.rewards, turns.key("turn"), turns.active).shape == (0,)


def test_keys() -> None:
    batch = batch_of(
        row(3, state=["s", "t", "s"], tag=["plan", None, "plan"]),
        row(2, state=["s", None], tag=[None, "plan"]),
        row(2, state=["s", None], tag=["plan", "explore"]),
        keys=[("g", "0"), ("g", "1"), ("h", "2")],
    )
    turns = turns_of(batch)
    assert turns.key("task").tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert turns.key("turn").tolist() == [0, 1, 2, 0, 1, 3, 4]
    assert turns.key("state").tolist() == [0, 1, 0, 0, 2, 3, 4], "an unknown state is like no other"
    assert turns.key("last").tolist() == [0, 0, 1, 0, 1, 2, 3]
    assert turns.key("tag").tolist() == [0, 1, 0, 1, 0, 0, 2]
    assert turns.key("tag+task").tolist() == [0, 1, 0, 1, 0, 2, 3]


def test_what_is_dropped_has_nothing_on_its_tokens_and_does_not_count() -> None:
    batch = batch_of(row(1), row(1), row(1))
    batch.weights = tensor([1.0, 0.0, 1.0])
    turns = turns_of(batch)
    values = normalise(tensor([1.0, 9.0, 3.0]), turns.key("task"), turns.active, "center")
    assert values.tolist() == [-1, 0, 1]
    assert turns.on_tokens(tensor([1.0, 9.0, 3.0]), batch).tolist() == [[1, 1, 0], [0, 0, 0], [3, 3, 0]]


def test_sums_and_means_are_over_own_tokens() -> None:
    batch = batch_of(row(2))
    turns = turns_of(batch)
    x = tensor([1, 2, 50, 3, 5, 50])[None]
    assert turns.sums(x).tolist() == [3, 8] and turns.means(x).tolist() == [1.5, 4]


# Returns


def test_returns_by_hand() -> None:
    """Rewards 1, 1, 0.55, 1 and 1, 0.19 with discount 1/2; the third and the last are cut off: nothing flows across."""
    reset = [False, False, True, False]
    turns = turns_of(batch_of(row(4, reset=reset), row(2, reset=[False, True])))
    rewards = tensor([1, 1, 0.55, 1, 1, 0.19])
    assert turns.returns(rewards, 0.5).tolist() == [1.5, 1, 0.55, 1, 1, 0.19]
    whole = turns.returns(rewards, 0.5, torch.zeros(6, dtype=torch.bool))
    assert whole.tolist() == pytest.approx([1 + 0.5 * 1.525, 1.525, 1.05, 1, 1.095, 0.19])


@given(st.lists(st.lists(st.floats(-4, 4), min_size=1, max_size=5), min_size=1, max_size=5), st.floats(0, 1))
def test_returns_are_discounted_sums(rewards, discount) -> None:
    turns = turns_of(batch_of(*[row(len(r)) for r in rewards]))
    want = [sum(x * discount ** (u - t) for u, x in enumerate(r) if u >= t) for r in rewards for t in range(len(r))]
    assert turns.returns(tensor([x for r in rewards for x in r]), discount).tolist() == pytest.approx(want, abs=1e-9)


# Comparisons


def test_columns_by_hand() -> None:
    """Right and wrong actions of four trajectories, three turns each, compared at the same turn."""
    right = [[1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1]]
    turns = turns_of(batch_of(*[row(4)] * 3))
    values = normalise(tensor([x for r in right for x in r]), turns.key("turn"), turns.active, ddof=0)
    want = [[0.7071, 0.7071, -0.7071, 0.7071], [0.7071, -1.4142, -0.7071, -1.4142], [-1.4142, 0.7071, 1.4142, 0.7071]]
    assert values.reshape(3, 4).numpy() == pytest.approx(np.array(want), abs=1e-4)


def test_tags_by_hand() -> None:
    """Two trajectories of three steps: planning, exploring, exploring; planning, exploring, reflecting."""
    turns = turns_of(batch_of(row(3, tag=["p", "e", "e"]), row(3, tag=["p", "e", "r"])))
    rewards = tensor([0.1, 0.1, 0, 0, 0.1, 0.1])
    key = turns.key("tag+task")
    found = normalise(rewards, key, turns.active, singleton="keep_raw")
    want = [0.7071, 0.57735, -1.1547, -0.7071, 0.57735, 0.1]
    assert found.tolist() == pytest.approx(want, abs=1e-4)
    assert normalise(rewards, key, turns.active)[-1].item() == 0
    centred = normalise(rewards, key, turns.active, "center", singleton="keep_raw")
    assert centred.tolist() == pytest.approx([0.05, 1 / 30, -1 / 15, -0.05, 1 / 30, 0.1])


def test_median_by_hand() -> None:
    """Rewards 3, 0, 3, 1: lower median 1, deviations 2, 1, 2, 0 with lower median 1."""
    x, key, where = tensor([3, 0, 3, 1]), torch.zeros(4, dtype=torch.int64), torch.ones(4, dtype=torch.bool)
    found = normalise(x, key, where, "median_mad", epsilon=0)
    assert found.tolist() == pytest.approx([2 / 1.4826, -1 / 1.4826, 2 / 1.4826, 0])
    assert found.tanh().tolist() == pytest.approx([0.8738, -0.5879, 0.8738, 0], abs=1e-4)
    alike = normalise(tensor([2, 2, 2, 4]), key, where, "median_mad", epsilon=0.0, least=0.5)
    assert alike.tolist() == [0, 0, 0, 4], "no less than the least"


values = st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 2), st.booleans()), min_size=1, max_size=10)


@given(values, st.sampled_from(["center", "leave_one_out", "center_std", "median_mad"]), st.integers(0, 1))
def test_normalised_as_by_numpy(rows, kind, ddof) -> None:
    x, key, where = zip(*rows, strict=True)
    got = normalise(tensor(x), torch.tensor(key), torch.tensor(where), kind, ddof, 1e-3)
    for i, (value, k, counts) in enumerate(rows):
        mine = [v for v, other, w in rows if other == k and w]
        if not counts or len(mine) == 1:
            assert got[i] == 0
            continue
        want = value - np.mean(mine)
        if kind == "leave_one_out":
            want *= len(mine) / (len(mine) - 1)
        elif kind == "center_std":
            want /= np.std(mine, ddof=ddof) + 1e-3
        elif kind == "median_mad":
            centre = statistics.median_low(mine)
            want = (value - centre) / (1.4826 * statistics.median_low([abs(v - centre) for v in mine]) + 1e-3)
        assert got[i].item() == pytest.approx(want, abs=1e-9)


def test_nothing_that_differs_is_nothing() -> None:
    x, key, where = tensor([0.1, 0.1, 0.1]), torch.tensor([7, 7, 7]), torch.ones(3, dtype=torch.bool)
    assert not normalise(x, key, where, epsilon=0).any()
    assert not normalise(x, key, where, "median_mad", epsilon=0).any()
    assert normalise(x, key, where, "none").tolist() == [0.1] * 3
    assert normalise(tensor([2.0]), key[:1], where[:1], singleton="keep_raw").tolist() == [2]
    assert normalise(tensor([2.0]), key[:1], where[:1]).tolist() == [0]


def decided(p: float, padded: bool) -> float:
    """Expected gradient for the logit of going on, where a second turn pays 1 to whoever goes on; groups of two.

    All four groups, by their probability; d log pi / d logit is 1 - p on going on and -p on stopping.
    """
    total = 0.0
    for first, second in ((a, b) for a in (True, False) for b in (True, False)):
        batch = batch_of(*[row(2 if goes else 1) for goes in (first, second)])
        turns = turns_of(batch, padded)
        rewards = torch.where(turns.played, turns.index, 0).to(torch.float64)
        centred = normalise(rewards, turns.key("turn"), turns.active, "leave_one_out")
        advantages = turns.returns(centred)
        starts = (turns.index == 0).nonzero()[:, 0].tolist()
        for goes, m in zip((first, second), starts, strict=True):
            chance = np.prod([p if g else 1 - p for g in (first, second)])
            total += chance * advantages[m].item() * ((1 - p) if goes else -p) / 2
    return total


def test_a_baseline_of_the_living_is_biased_where_the_policy_decides_who_lives() -> None:
    """True gradient p (1 - p) = 0.21: with the ended as zeros exactly that, over the living alone nothing."""
    assert decided(0.3, padded=True) == pytest.approx(0.21, abs=1e-12)
    assert decided(0.3, padded=False) == pytest.approx(0, abs=1e-12)


def test_ended_trajectories_go_on_without_reward() -> None:
    """Three trajectories of one, two and three turns; another group has none that ended early."""
    batch = batch_of(row(1), row(2), row(3), row(1), keys=[("g", "0"), ("g", "1"), ("g", "2"), ("h", "3")])
    batch.rewards = tensor([1, 2, 6, 5])
    turns = turns_of(batch, padded=True)
    assert turns.played.tolist() == [True, False, False, True, True, False, True, True, True, True]
    assert turns.rewards.tolist() == [1, 0, 0, 0, 2, 0, 0, 0, 6, 5]
    found = normalise(turns.rewards, turns.key("turn"), turns.active, "center")
    want = [2 / 3, -2 / 3, -2, -1 / 3, 4 / 3, -2, -1 / 3, -2 / 3, 4, 0]
    assert found.tolist() == pytest.approx(want)
    on = turns.on_tokens(found, batch)
    assert on[0].tolist() == pytest.approx([2 / 3, 2 / 3, 0, 0, 0, 0, 0, 0, 0]), "nothing of what was not played"
    assert on[1].tolist() == pytest.approx([-1 / 3, -1 / 3, 0, 4 / 3, 4 / 3, 0, 0, 0, 0])
    assert turns.last.tolist() == [True, False, False, False, True, False, False, False, True, True]


def test_a_fork_is_padded_once() -> None:
    forked = batch_of(row(1), [Turn(1, 0, 0)], row(4), keys=[("g", "a"), ("g", "a"), ("g", "b")])
    turns = turns_of(forked, padded=True)
    assert turns.index.tolist() == [0, 1, 2, 3] * 2 and turns.sample.tolist() == [0, 1, 1, 1, 2, 2, 2, 2]


def test_a_new_credit_takes_three_lines() -> None:
    batch = batch_of(row(2), row(2))
    batch.rewards = tensor([1.0, 0.0])
    turns: Turns = turns_of(batch)
    values = normalise(turns.returns(turns.rewards, 0.5), turns.key("turn"), turns.active, "center")
    assert turns.on_tokens(values, batch)[:, [0, 3]].tolist() == [[0.25, 0.5], [-0.25, -0.5]]
