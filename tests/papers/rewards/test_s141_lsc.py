"""S141: log-sigmoids by hand, conjunctions, where levels come from, and that only differences count."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch, Reward
from assay.catalogue import make
from assay.catalogue.claim import claim_of
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.papers.rewards.s141_lsc import CentredRewards, level, with_levels
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")


class Fixed:
    def __init__(self, values: Any, valid: list[bool] | None = None):
        self.values, self.valid = values, valid

    def __call__(self, batch: Batch) -> Reward:
        values = torch.as_tensor(self.values, dtype=batch.rewards.dtype)
        return Reward(values, valid=None if self.valid is None else torch.tensor(self.valid), terms={"x": values})


def test_by_hand(make_batch: Callable[..., Any]) -> None:
    r = [-2.0, 0.0, 2.0, 6.0]
    batch = make_batch([1] * 4)
    got = make("S141", terms={"a": Fixed(r)}, references={"a": 1.0}).reward(batch)
    assert got.values.tolist() == pytest.approx([-3.048587, -1.313262, -0.313262, -0.006715], abs=1e-6)
    assert set(got.terms) == {"a", "a/centred"}
    # In units of 3: log sigmoid of -1, -1/3, 1/3 and 5/3.
    scaled = make("S141", terms={"a": Fixed(r)}, references={"a": 1.0}, scale=3.0).reward(batch)
    assert scaled.values.tolist() == pytest.approx([-math.log1p(math.exp(-x / 3)) for x in (-3, -1, 1, 5)])
    x = torch.tensor(r, dtype=torch.float64, requires_grad=True)
    part = CentredRewards({"a": lambda batch: Reward(x)}, {"a": 1.0})
    (slopes,) = torch.autograd.grad(part(batch).values.sum(), x)
    assert slopes.tolist() == pytest.approx([0.952574, 0.731059, 0.268941, 0.006693], abs=1e-6)


def test_a_prompt_below_its_level_pulls_harder_than_one_above(make_batch: Callable[..., Any]) -> None:
    """Both prompts gain 2: log sigmoid from -3 to -1 is 1.735326, from 1 to 3 it is 0.264674; halves of these."""
    tasks = [Task("hard", "")] * 2 + [Task("easy", "")] * 2
    batch = make_batch([1] * 4, tasks=tasks, groups=[0, 0, 1, 1])
    method = make("S141", terms={"a": Fixed([-3.0, -1.0, 1.0, 3.0])}, references={"a": 0.0})
    batch.rewards = method.reward(batch).values
    assert method.credit(batch)[:, 0].tolist() == pytest.approx([-0.867663, 0.867663, -0.132337, 0.132337], abs=1e-6)


def test_two_properties_are_a_conjunction(make_batch: Callable[..., Any]) -> None:
    terms = {"a": Fixed([2.0, 6.0]), "b": Fixed([2.0, -2.0])}
    values = make("S141", terms=terms, references={"a": 0.0, "b": 0.0}).reward(make_batch([1, 1])).values
    assert values.tolist() == pytest.approx([-0.253856, -2.129404], abs=1e-6)
    good = torch.sigmoid(torch.tensor([[2.0, 2.0], [6.0, -2.0]], dtype=torch.float64)).prod(1)
    assert torch.allclose(values.exp(), good), "the probability of being better in both"


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=6), st.floats(-5, 5), st.floats(-50, 50))
def test_shifting_reward_and_reference_together_changes_nothing(
    make_batch: Callable[..., Any], r: list[float], c: float, shift: float
) -> None:
    batch = make_batch([1] * len(r))
    plain = CentredRewards({"a": Fixed(r)}, {"a": c})(batch).values
    shifted = CentredRewards({"a": Fixed([x + shift for x in r])}, {"a": c + shift})(batch).values
    assert torch.allclose(plain, shifted, atol=1e-9)
    # The same holds for a level taken from the group itself.
    own = CentredRewards({"a": Fixed(r)})(batch).values
    moved = CentredRewards({"a": Fixed([x + shift for x in r])})(batch).values
    assert torch.allclose(own, moved, atol=1e-9)


def test_where_levels_come_from(make_batch: Callable[..., Any]) -> None:
    first = [float(i) for i in range(21)]
    assert level(first) == pytest.approx(17)
    assert level([3.0]) == 3
    stored = with_levels(Task("s", "", meta={"x": 1}), {"a": first})
    assert stored.meta == {"x": 1, "reward_reference": {"a": pytest.approx(17)}}
    tasks = [Task("t", "")] * 21 + [stored]
    batch = make_batch([1] * 22, tasks=tasks)
    batch.prompt_group = torch.tensor([0] * 21 + [1])
    part = CentredRewards({"a": Fixed([*first, 17.0])}, scale=2.0)
    values = part(batch).values
    half = -torch.log(torch.tensor(2.0, dtype=torch.float64))
    assert torch.isclose(values[17], half) and torch.isclose(values[21], half)
    # The level stays that of the first group, also after a checkpoint, when rewards have risen.
    again = CentredRewards({"a": Fixed([100.0])}, scale=2.0)
    again.load_state_dict(part.state_dict())
    later = again(make_batch([1], tasks=tasks[:1])).values.item()
    assert later == pytest.approx(torch.nn.functional.logsigmoid(torch.tensor((100.0 - 17) / 2)).item(), abs=1e-9)
    numbered = make_batch([1], tasks=[Task("n", "", meta={"reward_reference": 1.0})])
    assert CentredRewards({"a": Fixed([1.0])}, {"a": 5.0})(numbered).values.item() == pytest.approx(half.item())


def test_a_canned_refusal_is_the_level_of_its_property(make_batch: Callable[..., Any]) -> None:
    """Harmlessness is better than a refusal's, helpfulness better than the task's own level: sigmoids by hand."""
    stored = Task("t", "", meta={"reward_reference": {"helpful": 2.0}})
    terms = {"helpful": Fixed([2.0, 4.0, 0.0]), "harmless": Fixed([0.5, -1.5, 0.5])}
    batch = make_batch([1] * 3, tasks=[stored] * 3)
    found = make("S141", terms=terms, references={"harmless": 0.5, "helpful": 9.0}).reward(batch)
    # log sigmoid of 0, 2 and -2: -0.693147, -0.126928, -2.126928; a task's own level goes before that of all.
    assert found.terms["helpful/centred"].tolist() == pytest.approx([-0.693147, -0.126928, -2.126928], abs=1e-6)
    assert found.terms["harmless/centred"].tolist() == pytest.approx([-0.693147, -2.126928, -0.693147], abs=1e-6)
    assert found.values.tolist() == pytest.approx([-1.386294, -2.253856, -2.820075], abs=1e-6)


def test_a_level_is_a_quantile_between_ranks() -> None:
    """As NumPy's linear quantiles; the ends are the least and the greatest."""
    rewards = [3.0, -1.0, 0.5, 2.0]
    assert [level(rewards, q) for q in (0.0, 0.3, 0.85, 1.0)] == pytest.approx(
        np.quantile(rewards, [0.0, 0.3, 0.85, 1.0]).tolist()
    )
    for bad in (-0.1, 1.1):
        with pytest.raises(UsageError, match="quantile"):
            level(rewards, bad)
    made = make("S141", quantile=0.0).reward
    assert isinstance(made, CentredRewards) and made.quantile == 0


def test_so_many_levels_are_remembered_the_latest_seen(make_batch: Callable[..., Any]) -> None:
    """65,536: levels of prompts seen longest ago go first, one that is seen again stays."""
    part = CentredRewards({"a": Fixed([5.0, 5.0])})
    part.first = {str(i): {"a": 0.0} for i in range(65_536)}
    batch = make_batch([1, 1], tasks=[Task("0", ""), Task("new", "")])
    batch.prompt_group = torch.tensor([0, 1])
    part(batch)
    assert len(part.first) == 65_536 and "1" not in part.first and {"0", "2", "new"} <= set(part.first)
    assert part.first["0"] == {"a": 0.0} and part.first["new"] == {"a": 5.0}


def test_the_objective_has_its_divergence() -> None:
    assert make("S141").objective.kl_weight == 0 and make("S141").needs == frozenset()
    method = make("S141", kl_weight=0.3)
    assert method.objective.kl_weight == 0.3 and "reference_logprobs" in method.needs


def test_an_abstention_sets_no_level(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([1, 1, 1], tasks=[Task("t", "")] * 3)
    batch.prompt_group = torch.zeros(3, dtype=torch.int64)
    part = CentredRewards({"a": Fixed([0.0, 1.0, 99.0], [True, True, False])}, quantile=1.0)
    reward = part(batch)
    assert part.first == {"t": {"a": 1.0}}
    assert reward.valid is not None and reward.valid.tolist() == [True, True, False]
    nothing = CentredRewards({"a": Fixed([9.0] * 3, [False] * 3)})
    assert nothing(batch).values.tolist() == pytest.approx([-math.log1p(math.exp(-9))] * 3), "a level of 0"
    assert nothing.first == {}


def test_what_cannot_be(make_batch: Callable[..., Any]) -> None:
    bad: list[dict[str, Any]] = [{"terms": {}}, {"references": {"x": 1.0}}, {"quantile": 1.1}, {"scale": 0.0}]
    for options in bad:
        with pytest.raises(UsageError):
            make("S141", **options)
    with pytest.raises(UsageError, match="needs rewards"):
        level([])
    broken = make_batch([1], tasks=[Task("t", "", meta={"reward_reference": float("nan")})])
    with pytest.raises(RunError, match="task t"):
        make("S141").reward(broken)


@pytest.mark.slow
def test_it_learns_what_is_good_in_both_where_a_sum_learns_what_is_very_good_in_one(tmp_path: Path) -> None:
    """Raw sums are 4, 5 and 5; the log-sigmoids' sums -0.25, -2.13 and -2.13."""
    claim = claim_of("S141")
    setting = load(claim.setting, {**claim.options, "steps": 25, "lr": 1.0})
    right = {name: setting.run(arm, 0, tmp_path)["right"] for name, arm in claim.arms.items()}
    assert right["centred"] > 0.7 and right["raw"] < 0.2
