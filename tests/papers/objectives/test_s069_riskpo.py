"""RiskPO: worked numbers, the tracked quantiles, how advantages are shared, and its limits."""

from __future__ import annotations

import itertools
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.catalogue import make
from assay.errors import UsageError
from assay.papers.objectives.s069_riskpo import MixedValueAtRisk
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Episode, Group, Task, Verdict


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def batch_of(rewards: list[list[float | None]], tokens: int = 1) -> Batch:
    """Questions with the rewards of their responses; ``None`` abstains."""
    groups = []
    for i, row in enumerate(rewards):
        one = Episode(
            np.zeros(0, np.int64),
            np.zeros(tokens, np.int64),
            np.ones(tokens, bool),
            np.zeros(tokens, np.float32),
            "",
            "eos",
        )
        verdicts = tuple(Verdict.abstain("?") if r is None else Verdict(r, r >= 1) for r in row)
        groups.append(Group(Ask(Task(str(i), "?"), len(row)), (one,) * len(row), verdicts))
    return Batch.from_groups(groups, torch.float64)


def found(credit: MixedValueAtRisk, rewards: list[list[float | None]]) -> torch.Tensor:
    return make("S069").__class__(credit=credit).value(batch_of(rewards)).advantages[:, 0]


@pytest.mark.parametrize(
    ("shifted", "want"),
    [(False, [-3, 0, 0.6667, 1.3333, 1.3333, 1.3333]), (True, [-4.3333, -1.3333, -0.6667, 0, 0, 0])],
)
def test_the_risk_measure_by_hand(shifted: bool, want: list[float]) -> None:
    credit = MixedValueAtRisk(normalise=False, shifted=shifted)
    assert credit.advantages(double(0, 1, 2, 3, 4, 5), [1, 3]).tolist() == pytest.approx(want, abs=5e-5)


def test_the_tail_sought_instead_of_avoided() -> None:
    credit = MixedValueAtRisk(normalise=False, seek_risk=True)
    # (1.5 (X - 3)^+ / 0.2 + RV) / 2.5 with RV 0, 0, 1/0.6, 2/0.6, ...
    want = [0, 0, 0.666667, 1.333333, 4.333333, 7.333333]
    assert credit.advantages(double(0, 1, 2, 3, 4, 5), [1, 3]).tolist() == pytest.approx(want, abs=1e-6)


def test_division_by_the_spread_of_the_papers() -> None:
    scores = double(0, 1, 2, 3, 4, 5)
    plain, scaled = (MixedValueAtRisk(normalise=n).advantages(scores, [1, 3]) for n in (False, True))
    assert torch.allclose(scaled * 1.8708286933869707, plain, atol=1e-5)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.floats(0.5, 2), st.floats(2.5, 4))
def test_nothing_is_gained_above_the_upper_quantile(scores: list[int], low: float, high: float) -> None:
    values = MixedValueAtRisk(normalise=False).advantages(double(*map(float, scores)), [low, high])
    top = [v for v, x in zip(values.tolist(), scores, strict=True) if x >= high]
    assert all(v == pytest.approx(top[0]) for v in top)
    order = sorted(zip(scores, values.tolist(), strict=True))
    assert all(a[1] <= b[1] + 1e-12 for a, b in itertools.pairwise(order))


def test_a_quantile_takes_a_step() -> None:
    credit = MixedValueAtRisk(low=0.2, high=0.8)
    credit.load_state_dict({"quantiles": [2.0, 3.5]})
    credit.follow(double(1, 1, 3, 4))
    assert credit.state_dict()["quantiles"] == pytest.approx([1.97, 3.505])


def test_quantiles_settle_where_they_should() -> None:
    rng = np.random.default_rng(0)
    credit = MixedValueAtRisk(low=0.2, high=0.8, lr=0.02)
    for _ in range(4000):
        credit.follow(torch.from_numpy(rng.uniform(0, 5, 10)))
    assert credit.state_dict()["quantiles"] == pytest.approx([1, 4], abs=0.15)


def test_the_share_of_a_response_by_hand() -> None:
    credit = MixedValueAtRisk(bundle=3)
    shares = credit.shares(double(0.8), double(1, 0, 1)[:, None], double(0.5, 0.25, 0.9), double(1, 1, 1))
    assert shares[:, 0].tolist() == pytest.approx([1.142857, -0.571429, 0.228571], abs=1e-6)
    assert shares.sum().item() == pytest.approx(0.8)
    even = credit.shares(double(0.8), double(1, 0, 1)[:, None], double(1, 0, 1), double(1, 1, 1))
    assert even[:, 0].tolist() == pytest.approx([0.8 / 3] * 3)


def test_a_bad_response_is_praised_where_its_paper_is_below_the_mean_and_still_worth_something() -> None:
    """The quirk that the docstring tells of."""
    shares = MixedValueAtRisk(bundle=2).shares(double(0.5), double(0, 1)[:, None], double(0.6, 0.9), double(1, 1))
    assert shares[0].item() > 0 > shares[1].item()


def test_the_other_ways_to_share() -> None:
    rewards, stds = double(1, 0)[:, None], double(0.5, 1)
    uniform = MixedValueAtRisk(bundle=2, share="uniform").shares(double(0.8), rewards, double(0, 0), stds)
    assert uniform[:, 0].tolist() == pytest.approx([0.8, 0.8])
    std = MixedValueAtRisk(bundle=2, share="std").shares(double(0.8), rewards, double(0, 0), stds)
    assert std[:, 0].tolist() == pytest.approx([1.6, 0.8], abs=1e-5)


REWARDS: list[list[float | None]] = [[1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]]


def test_the_first_batch_uses_each_bundles_own_quantiles_and_the_next_those_before_it() -> None:
    credit = MixedValueAtRisk(bundle=2, share="uniform", normalise=False)
    first = found(credit, REWARDS)
    papers = [[1, 0, 1, 2], [1, 2, 0, 0]]
    want = []
    for scores in papers:
        own = [float(np.quantile(scores, level)) for level in (0.2, 0.8)]
        want += credit.advantages(double(*map(float, scores)), own).tolist() * 2
    assert first.tolist() == pytest.approx(want)
    pooled = [float(np.quantile([*papers[0], *papers[1]], level)) for level in (0.2, 0.8)]
    assert credit.state_dict()["quantiles"] == pytest.approx(pooled)
    second = found(credit, REWARDS)
    want = [v for s in papers for v in credit.advantages(double(*map(float, s)), pooled).tolist() * 2]
    assert second.tolist() == pytest.approx(want)
    assert credit.state_dict()["quantiles"] != pytest.approx(pooled)


def test_the_quantiles_survive_a_resume() -> None:
    one, two = MixedValueAtRisk(bundle=2), MixedValueAtRisk(bundle=2)
    found(one, REWARDS)
    assert one == two and "quantiles" not in repr(one), "what was followed is state, no option"
    assert [f.name for f in fields(one) if not f.init] == ["_quantiles"]
    two.load_state_dict(one.state_dict())
    assert torch.equal(found(one, REWARDS[::-1]), found(two, REWARDS[::-1]))


def test_a_rest_of_questions_is_judged_by_itself_and_not_followed() -> None:
    credit = MixedValueAtRisk(bundle=3, share="uniform")
    found(credit, REWARDS[:3])
    before = credit.state_dict()
    alone = MixedValueAtRisk(bundle=3, share="uniform")
    assert torch.equal(found(credit, REWARDS[3:]), found(alone, REWARDS[3:]))
    assert credit.state_dict() == before and alone.state_dict() == {"quantiles": []}


def test_abstentions_leave_papers_and_the_longest_question_has_some_left_over() -> None:
    credit = MixedValueAtRisk(bundle=3, share="uniform", normalise=False)
    values = found(credit, [[1, None, 0, 1], [None, 0, 1, None], [None, None, None, None]])
    # Papers (1, 0) and (0, 1): the third response of the first question is in none, the last question leaves.
    assert values[[1, 3, 4, 7]].tolist() == [0, 0, 0, 0] and not bool(values[8:].any())
    assert torch.equal(values, torch.zeros(12, dtype=torch.float64)) and credit.state_dict()["quantiles"] == []


def test_equal_papers_do_not_blow_up() -> None:
    credit = MixedValueAtRisk(bundle=2)
    credit.load_state_dict({"quantiles": [0.5, 1.5]})
    values = found(credit, [[1, 1, 1], [1, 1, 1]])
    assert values.tolist() == pytest.approx([1 / 0.6 / 2.5 / 2] * 6, abs=1e-5)


def test_a_question_with_equal_rewards_still_teaches_when_shared_uniformly() -> None:
    credit = MixedValueAtRisk(bundle=2, share="uniform", normalise=False)
    credit.load_state_dict({"quantiles": [0.5, 1.5]})
    values = found(credit, [[0, 0], [0, 1]])
    assert values[:2].tolist() == pytest.approx([-1.5 * 0.5 / 0.2 / 2.5, 0.5 / 0.6 / 2.5])


def test_uniform_shares_estimate_the_gradient_of_the_expected_measure() -> None:
    """By enumeration over two questions with one response each, quantiles held."""
    policy = TabularPolicy.random(Tree.of([[1, 0], [0, 1]]), 1)
    logits = policy.logits
    credit = MixedValueAtRisk(bundle=2, share="uniform", normalise=False, lr=0.0)
    credit.load_state_dict({"quantiles": [0.5, 1.5]})
    # Question q is node q + 1; its answer a earns REWARD[q][a].
    reward = [[1.0, 0.0], [0.0, 1.0]]
    logp = policy.log_policy()[1:]
    objective = torch.zeros((), dtype=torch.float64)
    estimate = torch.zeros((), dtype=torch.float64)
    for a, b in itertools.product(range(2), repeat=2):
        chance = (logp[0, a] + logp[1, b]).exp()
        value = credit.advantages(double(reward[0][a] + reward[1][b]), [0.5, 1.5])[0]
        objective = objective + chance * value
        advantages = found(credit, [[reward[0][a]], [reward[1][b]]])
        estimate = estimate + chance.detach() * (advantages[0] * logp[0, a] + advantages[1] * logp[1, b])
    true, got = (torch.autograd.grad(x, logits, retain_graph=True)[0] for x in (objective, estimate))
    assert torch.allclose(true, got, atol=1e-12) and bool(true.abs().sum() > 0.1)


@pytest.mark.parametrize("bad", [{"bundle": 0}, {"low": 0.9}, {"high": 1.0}, {"tail_weight": -1.0}, {"lr": -0.1}])
def test_options_out_of_range(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"bundle >= 1|lr = -0\.1 must not be negative"):
        make("S069", **bad)


def test_advantages_are_the_same_on_every_token() -> None:
    batch = make("S069", bundle=2).value(batch_of(REWARDS, tokens=3))
    assert torch.equal(batch.advantages, batch.advantages[:, :1].expand(-1, 3))


def test_papers_are_the_kth_responses_of_consecutive_questions() -> None:
    """Bundles of two: rows 0-1 with 2-3, rows 4-6 with 7-8 (of which the third response is left over), row 9 alone."""
    credit = MixedValueAtRisk(bundle=2)
    found = credit.papers(batch_of([[1, 0], [0, 1], [1, 1, 0], [0, 0], [1]]))
    assert [rows.tolist() for rows in found] == [[[0, 1], [2, 3]], [[4, 5], [7, 8]], [[9]]]


def test_the_defaults_are_those_of_the_released_scripts() -> None:
    assert make("S069").credit == MixedValueAtRisk() == MixedValueAtRisk(5, 0.2, 0.8, 1.5, 0.1, "deviation")
    method = make("S069", normalise=False)
    scores = double(0, 1, 2, 3, 4, 5)
    assert method.credit.advantages(scores, [1, 3]).tolist() == pytest.approx(
        [-3, 0, 0.666667, 1.333333, 1.333333, 1.333333], abs=1e-6
    )
    assert not method.credit.shifted and not method.credit.seek_risk and make("S069").credit.normalise
    method.credit.load_state_dict({"quantiles": [2.0, 3.5]})
    method.credit.follow(double(1, 1, 3, 4))
    assert method.credit.state_dict()["quantiles"] == pytest.approx([1.97, 3.505])
    assert [make("S069", normalise=n).credit.summary["normalisation"] for n in (True, False)] == ["bundle std", "none"]
    assert make("S069", bundle=1, tail_weight=0.0, lr=0.0, low=0.01, high=0.99).credit.bundle == 1
    for bad in ({"low": 0.8}, {"low": 0.0}, {"lr": -1e-3}, {"tail_weight": -1e-3}):
        with pytest.raises(UsageError, match="bundle >= 1"):
            MixedValueAtRisk(**bad)


def test_a_question_is_compared_with_all_its_responses_of_its_own() -> None:
    """By hand, of two questions with three and two responses, quantiles 0.5 and 1.5, no division by the deviation.

    Papers (1, 0) and (0, 1) score 1 both: RV = 0.5 / 0.6, A = 0.8333 / 2.5 = 0.3333. Means 2/3 and 1/2: deviations
    of the first paper 1/3 and -1/2, sum -1/6: shares -2 and 3 times A; of the second -2/3 and 1/2: 4 and -3.
    """
    credit = MixedValueAtRisk(bundle=2, normalise=False)
    credit.load_state_dict({"quantiles": [0.5, 1.5]})
    values = found(credit, [[1, 0, 1], [0, 1]])
    assert values.tolist() == pytest.approx([-2 / 3, 4 / 3, 0, 1, -1])
    # Divided by each question's own deviation instead, 0.57735 and 0.70711.
    credit = MixedValueAtRisk(bundle=2, normalise=False, share="std")
    credit.load_state_dict({"quantiles": [0.5, 1.5]})
    values = found(credit, [[1, 0, 1], [0, 1]])
    assert values.tolist() == pytest.approx([0.577350, 0.577350, 0, 0.471405, 0.471405], abs=2e-6)


def test_where_a_deviation_counts_as_none() -> None:
    """Deviations of 1.2e-3 and 0.9e-3 about the bound of 1e-3; of one paper there is none."""
    credit = MixedValueAtRisk()
    for deviation, scale in ((1.2e-3, 1 / (1.2e-3 + 1e-6)), (0.9e-3, 1.0)):
        scores = double(2.0, 2.0 + deviation * 2**0.5)
        plain = MixedValueAtRisk(normalise=False).advantages(scores, [1.0, 4.0])
        assert (credit.advantages(scores, [1.0, 4.0]) / plain).tolist() == pytest.approx([scale] * 2, rel=1e-5)
    assert credit.advantages(double(0), [1.0, 3.0]).tolist() == pytest.approx([-3], abs=1e-5)
    even = credit.shares(double(0.6), double(1, 0)[:, None], double(1 - 3e-7, -6e-7), double(1, 1))
    assert even[:, 0].tolist() == pytest.approx([0.3, 0.3]), "a sum of 9e-7 tells nothing"
    told = credit.shares(double(0.6), double(1, 0)[:, None], double(1 - 6e-7, -6e-7), double(1, 1))
    assert told[:, 0].tolist() == pytest.approx([0.3, 0.3])
    told = credit.shares(double(0.6), double(1, 0)[:, None], double(1 - 1.6e-6, 4e-7), double(1, 1))
    assert told[:, 0].tolist() == pytest.approx([0.8, -0.2], rel=1e-6)
