"""Credits of turns: worked numbers, limit cases, what they have in common with credits of tokens and responses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from turned import by_turn, turned

from assay.batch import Batch
from assay.credit.gae import GAE
from assay.credit.grpo import GRPO
from assay.credit.turns.turn_gae import TurnGAE
from assay.credit.turns.turn_group import TurnGroup
from assay.errors import UsageError
from assay.returns import placed_rewards, returns_to_go


def near(got: list[list[float]], want: list[list[float]], digits: float = 1e-4) -> bool:
    return all(a == pytest.approx(b, abs=digits) for a, b in zip(got, want, strict=True))


# Turns compared with their like


def test_rewards_at_the_same_turn_by_hand() -> None:
    """Right and wrong actions; nothing later flows back, and the outcome stays apart."""
    batch = turned([[1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1]], [1, 0, 0])
    credit = TurnGroup(sums="none", of="turns", ddof=0)
    want = [[0.7071, 0.7071, -0.7071, 0.7071], [0.7071, -1.4142, -0.7071, -1.4142], [-1.4142, 0.7071, 1.4142, 0.7071]]
    assert near(by_turn(credit(batch), batch), want)
    both = TurnGroup(sums="none", of="turns", ddof=0, weight=0.5, episode=2.0)
    outcome = [1.41421, -0.70711, -0.70711]
    assert near(
        by_turn(both(batch), batch),
        [[0.5 * x + 2 * o for x in row] for row, o in zip(want, outcome, strict=True)],
        1e-4,
    )


def test_all_rewards_of_a_group_together_and_then_summed_by_hand() -> None:
    """Gains 0.2, -0.05 and an answer worth 1; a gain of 0.02 and an answer worth 0."""
    batch = turned([[0.2, -0.05, 0], [0.02, 0]], [1, 0])
    population = TurnGroup("task", "after", ddof=0, epsilon=0)
    assert near(by_turn(population(batch), batch), [[1.1423, 1.2289, 1.9531], [-1.1423, -0.5966]])
    sample = TurnGroup("task", "after", ddof=1, epsilon=0)
    assert near(by_turn(sample(batch), batch), [[1.0217, 1.0992, 1.7469], [-1.0217, -0.5336]])


def test_states_by_hand() -> None:
    """Two trajectories through s and t; the first comes to s twice. Discount 1/2, outcomes 1 and 0."""
    batch = turned([[0, 0, 0], [0, 0]], [1, 0], state=[["s", "t", "s"], ["s", "t"]])
    credit = TurnGroup("state", discount=0.5, kind="center")
    # Returns: s 1/4, 1, 0, of mean 5/12; t 1/2 and 0, of mean 1/4.
    assert near(by_turn(credit(batch), batch), [[1 / 4 - 5 / 12, 1 / 4, 1 - 5 / 12], [-5 / 12, -1 / 4]], 1e-12)
    gigpo = TurnGroup("state", discount=0.5, kind="center", episode=1.0)
    assert near(by_turn(gigpo(batch), batch), [[1 / 3, 3 / 4, 13 / 12], [-11 / 12, -3 / 4]], 1e-12)


def test_returns_at_the_same_turn_by_hand() -> None:
    """Trajectories of two turns and one; the second has ended when the first takes its second turn."""
    batch = turned([[1, 2], [3]])
    assert near(by_turn(TurnGroup(kind="center", discount=0.5)(batch), batch), [[-0.5, 1], [0.5]], 1e-12)
    assert near(by_turn(TurnGroup(kind="center", discount=0.5, padded=False)(batch), batch), [[-0.5, 0], [0.5]], 1e-12)
    after = TurnGroup(kind="center", sums="after")
    assert near(by_turn(after(batch), batch), [[0, 1], [0]], 1e-12), "what has ended loses what others gain"


@settings(max_examples=30)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=5), st.integers(0, 1))
def test_of_one_turn_each_it_is_grpo(outcomes, ddof) -> None:
    batch = turned([[0.0]] * len(outcomes), outcomes)
    want = GRPO(ddof=ddof)(batch)
    for by in ("task", "turn"):
        for sums in ("before", "after", "none"):
            assert torch.allclose(TurnGroup(by, sums, ddof=ddof)(batch), want, atol=1e-9)
    assert torch.allclose(TurnGroup(weight=0, episode=1, ddof=ddof)(batch), want, atol=1e-9)


def test_the_episodes_term_counts_a_trajectory_once() -> None:
    batch = turned([[0, 0, 0], [0]], [1, 0])
    got = by_turn(TurnGroup(weight=0, episode=1, kind="center")(batch), batch)
    assert near(got, [[0.5] * 3, [-0.5]], 1e-12), "not 1/4 and -3/4, by turns"


def test_what_is_not_active_is_no_sibling() -> None:
    batch = turned([[0], [0], [0]], [1, 0, 5])
    batch.valid[2] = False
    assert near(by_turn(TurnGroup(kind="center")(batch), batch), [[0.5], [-0.5], [0]], 1e-12)


def test_what_cannot_be() -> None:
    for options in ({"discount": 1.5}, {"weight": -1.0}, {"weight": 0.0}, {"episode": -1.0}):
        with pytest.raises(UsageError, match="credit 'turn_group'"):
            TurnGroup(**options)
    with pytest.raises(UsageError, match="tells its states"):
        TurnGroup("state")(turned([[0]]))
    assert TurnGroup("state")(Batch.from_groups([], torch.float64)).shape == (0, 0)
    for name in ("discount", "decay"):
        with pytest.raises(UsageError, match=f"'turn_gae': {name} 2 is outside"):
            TurnGAE(**{name: 2.0})
    assert TurnGroup(kind="median_mad").summary["normalisation"] == "median deviation"


# With a critic


def test_over_turns_by_hand() -> None:
    """Rewards 1 and 2, values 0.5 and 1 where the turns begin; discount and decay 0.5; no later value is read."""
    batch = turned([[1, 2]])
    batch.signals["values"] = torch.tensor([[0.5, 9, 9, 1, 9, 9]], dtype=torch.float64)
    got = TurnGAE(0.5, 0.5, whitened=False)(batch)
    second = 2 - 1.0
    first = 1 + 0.5 * 1 - 0.5 + 0.25 * second
    assert near(by_turn(got, batch), [[first, second]], 1e-12)
    assert near(by_turn(batch.signals["returns"], batch), [[first + 0.5, 2]], 1e-12)


def test_nothing_flows_across_a_reset() -> None:
    batch = turned([[1, 2, 4]], reset=[[False, True, False]])
    batch.signals["values"] = torch.full((1, 9), 0.5, dtype=torch.float64)
    got = by_turn(TurnGAE(1.0, 1.0, whitened=False)(batch), batch)
    assert got == [[1.0, 1.5, 3.5]], "1 + 1/2 - 1/2; 2 - 1/2; 4 - 1/2"


rows = st.lists(st.lists(st.floats(-2, 2), min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=40)
@given(rows, st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_of_turns_of_one_token_it_is_gae(rewards, discount, decay, whitened) -> None:
    one, other = (turned(rewards, own=1, gap=2) for _ in range(2))
    values = torch.from_numpy(np.random.default_rng(len(rewards)).standard_normal(one.mask.shape))
    one.signals["values"], other.signals["values"] = values, values
    assert torch.allclose(TurnGAE(discount, decay, whitened)(one), GAE(discount, decay, whitened)(other), atol=1e-9)
    assert torch.allclose(one.signals["returns"], other.signals["returns"], atol=1e-9)


def test_gae_sees_turn_rewards_and_discounts_by_token() -> None:
    """Two turns of two own tokens: with decay 1 the returns are those of turns; a discount counts tokens."""
    batch = turned([[1, 2]], [4])
    batch.signals["values"] = torch.zeros(1, 6, dtype=torch.float64)
    assert GAE(decay=1.0, whitened=False)(batch).tolist() == [[7, 7, 0, 6, 6, 0]]
    assert returns_to_go(placed_rewards(batch), batch.mask).tolist() == [[7, 7, 0, 6, 6, 0]]
    assert by_turn(TurnGAE(decay=1.0, whitened=False)(batch), batch) == [[7, 6]]
    discounted = GAE(0.5, 1.0, whitened=False)(batch)
    assert discounted.tolist() == [[0.5 + 6 / 8, 1 + 6 / 4, 0, 3, 6, 0]]
    assert by_turn(TurnGAE(0.5, 1.0, whitened=False)(batch), batch) == [[4, 6]]


def test_a_critics_targets_are_the_returns_of_turns() -> None:
    batch = turned([[1, 2], [0]], [4, 1])
    batch.signals["values"] = torch.from_numpy(np.random.default_rng(0).standard_normal(batch.mask.shape))
    TurnGAE(decay=1.0)(batch)
    assert near(by_turn(batch.signals["returns"], batch), [[7, 6], [1]], 1e-9)
