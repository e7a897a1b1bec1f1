"""Lite PPO: advantages by hand-computed numbers, its bound, and switches that move one thing each."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.credit.grpo import GRPO
from assay.credit.standardised import Standardised
from assay.errors import UsageError
from assay.lab.settings import load
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.objectives.s200_tricks_or_traps import SWITCHES, ablations, lite_ppo
from assay.select.overlong import OverlongFilter

EASY = [1.0] * 7 + [0.0]


def advantages(make_batch, rewards, groups, **switches):
    batch = make_batch([1] * len(rewards), rewards, groups)
    return lite_ppo(**switches).credit(batch)[:, 0].tolist()


def test_the_worked_example(make_batch):
    found = advantages(make_batch, [1.0, 0, 0, 0, 1, 1, 1, 0], [0] * 4 + [1] * 4)
    assert found == pytest.approx([1.403122] + [-0.467707] * 3 + [0.467707] * 3 + [-1.403122], abs=1e-6)


def test_a_batch_of_one_group_is_grpo(make_batch):
    batch = make_batch([1] * 4, [1.0, 0, 0.5, 0])
    np.testing.assert_allclose(lite_ppo().credit(batch), GRPO()(batch), rtol=1e-5)


def test_an_easy_group_is_not_blown_up(make_batch):
    rewards, groups = [*EASY, 1.0, 0, 1, 0, 1, 0, 1, 0], [0] * 8 + [1] * 8
    assert advantages(make_batch, rewards, groups, std="group")[7] == pytest.approx(-2.4749, abs=1e-4)
    assert -1.9 < advantages(make_batch, rewards, groups)[7] < -1.6


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=4, max_size=4), min_size=1, max_size=5))
def test_advantages_are_bounded_by_the_batch(make_batch, rows):
    rewards = [r for row in rows for r in row]
    found = advantages(make_batch, rewards, [i for i in range(len(rows)) for _ in range(4)])
    deviation = np.std(rewards, ddof=1)
    if deviation == 0:
        assert found == [0.0] * len(found)
    else:
        assert max(map(abs, found)) <= 0.75 / deviation + 1e-9


def test_the_deviation_is_of_the_raw_rewards(make_batch):
    # Groups of different means and little spread: after centring the deviation would be 0.1 instead of about 1.
    found = advantages(make_batch, [2.1, 1.9, 0.1, -0.1], [0, 0, 1, 1])
    assert found[0] == pytest.approx(0.1 / np.std([2.1, 1.9, 0.1, -0.1], ddof=1))


def test_the_bound_is_off_unless_asked_for(make_batch):
    rewards, groups = [*EASY, *[1.0] * 24], [0] * 8 + [1] * 24
    free = advantages(make_batch, rewards, groups)
    assert free[7] < -2
    assert advantages(make_batch, rewards, groups, bound=2.0) == pytest.approx([max(x, -2.0) for x in free])
    assert lite_ppo(bound=1e-9).credit.bound == 1e-9
    with pytest.raises(UsageError, match="above 0"):
        lite_ppo(bound=0.0)


def test_the_token_loss_weighs_tokens_and_the_sequence_loss_responses(make_batch):
    """Responses of 2 and 4 tokens with A = -1 and -2 at rho = 1: 10 / 6, and (1 + 2) / 2; then the clip."""
    batch = make_batch([2, 4], advantages=torch.tensor([[-1.0] * 2 + [0.0] * 2, [-2.0] * 4], dtype=torch.float64))
    zero = torch.zeros(2, 4, dtype=torch.float64)
    for loss, want in (("token", 10 / 6), ("sequence", 1.5)):
        assert lite_ppo(loss=loss).objective(zero, batch).value.item() == pytest.approx(want)
    one = make_batch([1], advantages=torch.tensor([[1.0]], dtype=torch.float64))
    moved = torch.full((1, 1), np.log(2.0), dtype=torch.float64)
    for high in (0.2, 0.32):
        assert lite_ppo(clip_high=high).objective(moved, one).value.item() == pytest.approx(-1 - high)
    one.advantages *= -1
    for low in (0.2, 0.1):
        assert lite_ppo(clip_low=low).objective(-moved, one).value.item() == pytest.approx(1 - low)


def test_truncated_responses_are_left_out_where_that_is_switched_on(make_batch):
    """A response of 3 tokens that was cut off: its siblings' baseline is what it was, and 5 tokens are left of 8."""
    for switch, tokens in ((False, 8.0), (True, 5.0)):
        batch = make_batch([3, 5], [0.0, 1.0])
        object.__setattr__(batch.episodes[0], "stop", "length")
        method = lite_ppo(overlong_filter=switch)
        batch.weights = method.select(batch)
        assert batch.count().tokens == tokens
        assert method.credit(batch)[1, 0].item() == pytest.approx(0.5 / np.sqrt(0.5))


def kind(part):
    """A part's type and options."""
    return type(part), asdict(part) if is_dataclass(part) else {}


def test_every_switch_moves_one_thing():
    plain = lite_ppo()
    assert isinstance(plain.objective, ClippedSurrogate) and plain.objective.kl_weight == 0
    assert plain.objective.aggregation == "token_mean"
    assert plain.objective.clip_low == plain.objective.clip_high == 0.2
    changed = {
        "credit": [{"mean": "batch"}, {"std": "none"}, {"bound": 2.0}],
        "objective": [{"clip_high": 0.28}, {"loss": "sequence"}],
        "select": [{"overlong_filter": True}],
    }
    for seam, settings in changed.items():
        for setting in settings:
            other = lite_ppo(**setting)
            for one in ("reward", "credit", "select", "objective"):
                same = kind(getattr(other, one)) == kind(getattr(plain, one))
                assert same == (one != seam), (setting, one)
    assert isinstance(lite_ppo(overlong_filter=True).select, OverlongFilter)


def test_the_matrix_of_ablations():
    methods = ablations()
    assert len(methods) == np.prod([len(v) for v in SWITCHES.values()]) == 96
    named = methods["mean=batch std=none clip_high=0.28 loss=sequence overlong_filter=True"]
    assert (named.credit.mean, named.credit.scale) == ("batch", "none")
    assert (named.objective.clip_high, named.objective.aggregation) == (0.28, "sequence_mean")
    # The upper bounds that the paper tries.
    assert {m.objective.clip_high for m in methods.values()} == {0.2, 0.24, 0.28, 0.32}
    few = ablations({"std": ("group", "batch")})
    assert list(few) == ["std=group", "std=batch"]
    with pytest.raises(UsageError, match="did you mean 'clip_high'"):
        ablations({"clip_hihg": (0.2,)})
    with pytest.raises(UsageError, match="std"):
        ablations({"std": ("token",)})


def test_the_credit_is_the_shared_one_with_a_bound(make_batch):
    credit = make_method("S200").credit
    assert isinstance(credit, Standardised) and credit.group_relative
    batch = make_batch([2, 1], [1.0, 0.0])
    assert torch.equal(credit(batch), Standardised()(batch))


def test_in_training_lite_ppo_learns(tmp_path):
    setting = load("tree", {"tasks": 4, "depth": 2, "right": 4, "prompts": 4, "steps": 15, "epochs": 2, "lr": 30.0})
    found = setting.run({"name": "S200"}, 0, tmp_path)
    assert found["start"] < 0.4 and found["final"] > 0.85
