"""Rewards made from rewards: by hand, and, for potential-based shaping, that it moves no optimum of a tree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch, Reward
from assay.credit.reinforce_pp import ReinforcePlusPlus
from assay.errors import UsageError
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.returns import placed_rewards, returns_to_go
from assay.rewards.process.potential import PotentialShaping, differences
from assay.rewards.shaping.gates import Cascade, Pareto, fronts
from assay.rewards.shaping.transforms import Annealed, Clipped, LogSigmoid, PerSource, Tiers
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


class Fixed:
    """A reward of given values, and tokens if any."""

    def __init__(self, values: list[float], valid: list[bool] | None = None, tokens: Any = None):
        self.values, self.valid, self.tokens = values, valid, tokens

    def __call__(self, batch: Batch) -> Reward:
        values = torch.tensor(self.values, dtype=batch.rewards.dtype)
        valid = None if self.valid is None else torch.tensor(self.valid)
        tokens = None if self.tokens is None else torch.tensor(self.tokens, dtype=batch.rewards.dtype)
        return Reward(values, tokens, valid, {"fixed": values})


def batch(n: int, length: int = 2, sources: list[str] | None = None) -> Batch:
    groups = []
    for i in range(n):
        tokens = np.zeros(length, np.int64)
        e = Episode(np.zeros(1, np.int64), tokens, np.ones(length, bool), np.zeros(length, np.float32), "", "eos")
        meta = {} if sources is None else {"source": sources[i]}
        groups.append(Group(Ask(Task(str(i), "", meta=meta), 1), (e,), (Verdict.right(),)))
    made = Batch.from_groups(groups, torch.float64)
    made.prompt_group[:] = 0
    return made


def test_bent() -> None:
    raw = [-2.0, 0.2, 0.25, 0.74, 0.75, 3.0]
    made = batch(6)
    assert Clipped(Fixed(raw), 0, 1)(made).values.tolist() == [0, 0.2, 0.25, 0.74, 0.75, 1]
    tiers = Tiers(Fixed(raw))(made).values.tolist()
    assert tiers == pytest.approx([0, 0, 1 / 3, 2 / 3, 1, 1])
    # The published sweet spot's example: quarters of the share solved, four tiers.
    shares = [0, 0.2, 0.3, 0.5, 0.74, 0.75, 0.99, 1]
    assert Tiers(Fixed(shares))(batch(8)).values.tolist() == pytest.approx([0, 0, 1 / 3, 2 / 3, 2 / 3, 1, 1, 1])
    soft = LogSigmoid(Fixed([0.0, 2.0]), centre=1, scale=0.5)(batch(2)).values.tolist()
    assert soft == pytest.approx([-math.log(1 + math.exp(2)), -math.log(1 + math.exp(-2))])
    reward = Clipped(Fixed(raw, [True] * 5 + [False], np.zeros((6, 2))), 0, 1)(made)
    assert reward.valid is not None and reward.valid.tolist() == [True] * 5 + [False]
    assert reward.tokens is not None and set(reward.terms) == {"raw", "bent"}


def test_annealing_counts_batches_and_goes_on_from_a_checkpoint() -> None:
    part = Annealed(Fixed([2.0]), start=1.0, end=0.0, steps=4)
    seen = [part(batch(1)).values.item() for _ in range(3)]
    again = Annealed(Fixed([2.0]), start=1.0, end=0.0, steps=4)
    again.load_state_dict(part.state_dict())
    seen += [again(batch(1)).values.item() for _ in range(3)]
    assert seen == pytest.approx([2, 1.5, 1, 0.5, 0, 0])
    half = Annealed(Fixed([1.0]), 0, 1, 2, "cosine")
    assert [half(batch(1)).values.item() for _ in range(3)] == pytest.approx([0, 0.5, 1])


def test_each_source_has_its_own_scale() -> None:
    sources = ["a", "b", "a", "b", "a"]
    part = PerSource(Fixed([1.0, 100.0, 3.0, 300.0, 9.0], [True, True, True, True, False]))
    got = part(batch(5, sources=sources)).values.tolist()
    assert got[:4] == pytest.approx([-1, -1, 1, 1], abs=1e-5)
    again = PerSource(Fixed([5.0]))
    again.load_state_dict(part.state_dict())
    # Seen from a: 1, 3, 5; mean 3, deviation sqrt(8 / 3).
    assert again(batch(1, sources=["a"])).values.item() == pytest.approx(2 / math.sqrt(8 / 3), abs=1e-5)
    assert PerSource(Fixed([4.0, 4.0]))(batch(2)).values.tolist() == [0, 0]


def test_what_each_is_unless_told_otherwise() -> None:
    """Clipped to [-1, 1], tiers at quarters, around 0 in units of 1, from 1 to 0 in 100 steps, less the mean."""
    raw = Fixed([-3.0, -0.5, 3.0])
    assert Clipped(raw)(batch(3)).values.tolist() == [-1, -0.5, 1]
    assert Clipped(raw, low=0.5, high=0.5)(batch(3)).values.tolist() == [0.5] * 3
    assert Tiers(raw).edges == [0.25, 0.5, 0.75] and Tiers(raw, edges=[]).worth == [0]
    assert Tiers(raw, edges=[0.0], worth=[5, 7])(batch(3)).values.tolist() == [5, 5, 7]
    assert LogSigmoid(Fixed([0.0]))(batch(1)).values.item() == pytest.approx(-math.log(2))
    assert LogSigmoid(Fixed([1.0]))(batch(1)).values.item() == pytest.approx(-math.log(1 + math.exp(-1)))
    fades = Annealed(Fixed([1.0]))
    assert (fades.start, fades.end, fades.steps, fades.shape, fades.done) == (1, 0, 100, "linear", 0)
    assert Annealed(steps=1).steps == 1
    for made in (Clipped(), Tiers(), LogSigmoid(), Annealed(), PerSource()):
        assert type(made.members[0]).__name__ == "VerdictReward"
    assert (PerSource().key, PerSource().centre, PerSource().epsilon) == ("source", True, 1e-6)


def test_annealing_weighs_tokens_and_tells_its_weight() -> None:
    part = Annealed(Fixed([4.0], tokens=[[1.0, 2.0]]), start=1.0, end=0.5, steps=2)
    first, second = part(batch(1)), part(batch(1))
    assert first.tokens is not None and second.tokens is not None
    assert first.tokens.tolist() == [[1, 2]] and second.tokens.tolist() == [[0.75, 1.5]]
    assert second.values.tolist() == [3] and second.terms["weight"].tolist() == [0.75]
    assert part.state_dict() == {"done": 2}
    # Half a cosine: (1 - cos(pi / 4)) / 2 of the way after a quarter of the steps.
    slow = Annealed(Fixed([1.0]), 0, 1, 4, "cosine")
    assert [slow(batch(1)).values.item() for _ in range(2)] == pytest.approx([0, 0.146447], abs=1e-6)


def test_sources_without_a_name_a_mean_or_a_spread() -> None:
    """1 and 3 have a mean of 2 and a deviation of 1; without the mean they stay, with epsilon 1 they halve."""
    assert PerSource(Fixed([1.0, 3.0]), centre=False)(batch(2)).values.tolist() == pytest.approx([1, 3], abs=1e-5)
    assert PerSource(Fixed([1.0, 3.0]), epsilon=1.0)(batch(2)).values.tolist() == pytest.approx([-0.5, 0.5])
    assert PerSource(Fixed([1.0, 3.0]))(batch(2)).values.tolist() == pytest.approx([-0.999999, 0.999999], abs=1e-9)
    part = PerSource(Fixed([1.0, 3.0, 7.0], [False, True, True], [[1.0, 0], [0, 0], [0, 0]]), key="of")
    found = part(batch(3, sources=["a", "b", "c"]))
    # Nobody has a key "of", so they are one source: of 3 and 7, what has no reward not among them.
    assert part.state_dict() == {"seen": {"": [2, 5, 8]}}
    assert found.values.tolist() == pytest.approx([-2, -1, 1], abs=1e-5)
    assert found.tokens is not None and found.tokens.tolist()[0] == [1, 0]
    assert found.valid.tolist() == [False, True, True] and set(found.terms) == {"raw", "bent"}
    never = PerSource(Fixed([1.0], [False]))
    assert never(batch(1)).values.tolist() == [0] and never.state_dict() == {"seen": {}}


@pytest.mark.parametrize(
    ("levels", "expected"), [((0, 0.3, 0.5), 0), ((1, 0.3, 0.5), 1.8), ((1, -0.1, 0.5), 0.9), ((-1, 1, 1), -1)]
)
def test_a_cascade(levels: tuple[float, ...], expected: float) -> None:
    part = Cascade({f"level{i}": Fixed([x], tokens=[[0.0, 1.0]]) for i, x in enumerate(levels)})
    reward = part(batch(1))
    assert reward.values.item() == pytest.approx(expected)
    reached = 1 + sum(all(x > 0 for x in levels[:i]) for i in (1, 2))
    assert reward.tokens is not None and reward.tokens[0].tolist() == [0, reached]
    assert list(reward.terms) == ["level0", "level1", "level2"]


def test_pareto_fronts() -> None:
    x, y = [3.0, 1.0, 2.0, 1.0, 3.0], [1.0, 3.0, 2.0, 1.0, 0.0]
    # The first three beat each other in one term; (1, 1) and (3, 0) are beaten by some of them.
    got = Pareto({"x": Fixed(x), "y": Fixed(y)})(batch(5)).values.tolist()
    assert got == [1, 1, 1, 0.5, 0.5]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_fronts_by_definition(rows: list[tuple[int, int]]) -> None:
    """No row is beaten within its own front, and every row of a later front is beaten by one of the front before."""
    front = fronts(torch.tensor(rows, dtype=torch.float64)).tolist()

    def beats(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return a != b and a[0] >= b[0] and a[1] >= b[1]

    for i, row in enumerate(rows):
        assert not any(beats(rows[j], row) for j in range(len(rows)) if front[j] == front[i])
        assert front[i] == 0 or any(beats(rows[j], row) for j in range(len(rows)) if front[j] == front[i] - 1)


def test_differences_by_hand() -> None:
    potential = torch.tensor([[0.2, torch.nan, 0.4, 0.9]])
    mask = torch.tensor([[True, True, True, True]])
    assert differences(potential, mask)[0].tolist() == pytest.approx([0.2, 0, 0.2, -0.4])
    mask = torch.tensor([[False, True, True, False]])
    assert differences(torch.tensor([[9.0, 0.5, 0.7, 9.0]]), mask)[0].tolist() == pytest.approx([0, 0.5, -0.5, 0])
    assert differences(torch.tensor([[1.0, 1.0]]), torch.tensor([[True, True]]), 0.5)[0].tolist() == [0.5, -1.0]
    assert differences(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool)).shape == (2, 0)


def test_shaping_adds_nothing_to_a_response_and_moves_no_optimum() -> None:
    """On a tree with random potentials at its nodes every leaf keeps its return, hence every policy its value."""
    tree = Tree.of([[1.0, 0.0], [0.25, [0.5, 0.0]]])
    policy = TabularPolicy.random(tree, 0)
    leaves = policy.leaf_episodes(torch.arange(len(tree)))
    groups = [
        Group(Ask(Task("t", ""), len(leaves)), tuple(leaves), tuple(Verdict(float(r), None) for r in tree.rewards))
    ]
    made = Batch.from_groups(groups, torch.float64)
    phi = torch.randn(len(tree.children), dtype=torch.float64)
    after = tree.nodes.roll(-1, 1)
    part = PotentialShaping(Fixed(tree.rewards.tolist(), tokens=phi[after].tolist()), Fixed(tree.rewards.tolist()))
    reward = part(made)
    assert reward.tokens is not None and float(reward.tokens.abs().max()) > 0.1
    made.rewards, made.token_rewards = reward.values, reward.tokens
    returns = returns_to_go(placed_rewards(made), made.mask)
    np.testing.assert_allclose(returns[:, 0], tree.rewards, atol=1e-12)
    # From any node on, the shaped return differs from the plain one by the potential of that node alone.
    for t in range(1, made.tokens.shape[1]):
        on = made.mask[:, t]
        np.testing.assert_allclose((returns[:, t] - tree.rewards)[on], -phi[tree.nodes[:, t]][on], atol=1e-12)
    assert ReinforcePlusPlus()(made).isfinite().all()


def test_what_cannot_be() -> None:
    for make in (
        lambda: Clipped(low=1, high=0),
        lambda: Tiers(edges=[0.5, 0.5]),
        lambda: Tiers(edges=[0.5], worth=[1]),
        lambda: LogSigmoid(scale=0),
        lambda: Annealed(steps=0),
        lambda: Cascade({}),
        lambda: Cascade({"a": "verdict"}, {"b": 1}),
        lambda: PotentialShaping("verdict", discount=0),
    ):
        with pytest.raises(UsageError):
            make()
    nested = {"name": "cascade", "terms": {"right": "verdict", "short": {"name": "tiers", "inner": "verdict"}}}
    assert [type(m).__name__ for m in build("reward", nested).members] == ["VerdictReward", "Tiers"]
