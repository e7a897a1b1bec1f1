"""Conditional advantages: worked numbers, Dr. GRPO as a special case, the presumed direction, and the schedules."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.catalogue import make
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.lab.settings import load
from assay.method import Method
from assay.papers.objectives.s096_canon import ConditionalAdvantage, restarting_cosine
from assay.types import Ask, Episode, Group, Task, Verdict

R = [1.0, 1, 0, 1, 0, 0, 0, 1]
INTER = [0.75, 0.75, -0.25, 0.75, -0.75, -0.75, -0.75, 0.25]
INTRA = [0.25, 0.25, -0.75, 0.25, -0.25, -0.25, -0.25, 0.75]


def batch_of(rewards: list[float | None], metric: list[float] | None = None, lengths: list[int] | None = None) -> Batch:
    """One group, with the entropy of every token of a response; ``None`` abstains."""
    sizes = lengths or [1] * len(rewards)
    episodes = tuple(
        Episode(np.zeros(0, np.int64), np.zeros(n, np.int64), np.ones(n, bool), np.zeros(n, np.float32), "", "eos")
        for n in sizes
    )
    verdicts = tuple(Verdict.abstain("?") if r is None else Verdict(r, r > 0) for r in rewards)
    batch = Batch.from_groups([Group(Ask(Task("t", "?"), len(rewards)), episodes, verdicts)], torch.float64)
    values = torch.tensor(metric or list(range(len(rewards))), dtype=torch.float64)
    batch.signals["policy_entropy"] = values[:, None].expand(batch.mask.shape).clone()
    return batch


def found(batch: Batch, **options: Any) -> list[float]:
    return make("S096", **options).value(batch).advantages[:, 0].tolist()


@pytest.mark.parametrize(
    ("mu", "want"), [(1.0, INTER), (0.0, INTRA), (0.7, [0.6, 0.6, -0.4, 0.6, -0.6, -0.6, -0.6, 0.4])]
)
def test_the_two_comparisons_by_hand(mu: float, want: list[float]) -> None:
    assert found(batch_of([*R]), mu=mu) == pytest.approx(want, abs=1e-12)


def test_a_presumed_direction_by_hand() -> None:
    high = found(batch_of([*R]), alpha=0.8)
    assert high == pytest.approx([0.55, 0.55, -0.25, 0.55, -0.6, -0.6, -0.6, 0.4], abs=1e-12)
    lengths = list(range(1, 9))
    short = found(batch_of([*R], lengths=lengths), metric="length", alpha=0.8)
    assert short == pytest.approx([0.8, 0.8, -0.2, 0.8, -0.75, -0.75, -0.75, 0.05], abs=1e-12)
    assert found(batch_of([*R]), alpha=0.8, favour="low") == pytest.approx(short, abs=1e-12)


def test_the_odd_one_is_in_the_upper_half() -> None:
    assert found(batch_of([1.0, 0.0, 1.0])) == pytest.approx([0.5, -1.0, 0.0])


def test_the_mean_over_all_splits_is_proportional_to_dr_grpo() -> None:
    """R_i - mean of a random other half: E = R_i - mean of the siblings = G / (G - 1) (R_i - mean)."""
    rewards = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    exact = np.zeros(6)
    halves = list(itertools.combinations(range(6), 3))
    for low in halves:
        exact += found(batch_of([*rewards], [0.0 if i in low else 1.0 for i in range(6)]))
    assert exact / len(halves) == pytest.approx(6 / 5 * (np.array(rewards) - 4 / 6), abs=1e-12)


def test_random_halves_differ_between_steps_and_go_on_after_a_resume() -> None:
    one, two = (ConditionalAdvantage(metric="random") for _ in range(2))
    batch = batch_of([*R])
    drawn = [Method(credit=one).value(batch).advantages[:, 0].tolist() for _ in range(6)]
    assert len({tuple(d) for d in drawn}) > 1
    two.load_state_dict({"steps": 5})
    assert Method(credit=two).value(batch).advantages[:, 0].tolist() == drawn[5]
    assert two.state_dict() == one.state_dict() == {"steps": 6}


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_group_of_equal_rewards_says_nothing_unless_a_direction_is_presumed(reward: float) -> None:
    batch = batch_of([reward] * 5, [0.1, 0.5, 0.2, 0.9, 0.9])
    assert found(batch, mu=0.6) == [0.0] * 5
    presumed = found(batch, alpha=0.8)
    assert presumed == pytest.approx([reward * x for x in (-0.2, 0.2, -0.2, 0.2, 0.2)])


def test_abstentions_are_in_neither_half_and_one_alone_has_nothing_to_be_compared_with() -> None:
    with_it = found(batch_of([1.0, None, 0.0, 0.0, 1.0], [0, 9, 1, 2, 3]), mu=0.7)
    assert [with_it[i] for i in (0, 2, 3, 4)] == pytest.approx(found(batch_of([1.0, 0.0, 0.0, 1.0]), mu=0.7))
    assert with_it[1] == 0 and found(batch_of([1.0, None])) == [0, 0] and found(batch_of([1.0])) == [0]


def test_schedules_by_the_mean_reward() -> None:
    first_inter = found(batch_of([*R]), mixing="inter_first")
    assert first_inter == pytest.approx([(a + b) / 2 for a, b in zip(INTER, INTRA, strict=True)])
    rewards = [1.0, 1.0, 1.0, 0.0]
    inter, intra = (np.array(found(batch_of([*rewards]), mu=mu)) for mu in (1.0, 0.0))
    assert found(batch_of([*rewards]), mixing="inter_first") == pytest.approx(0.25 * inter + 0.75 * intra)
    assert found(batch_of([*rewards]), mixing="intra_first") == pytest.approx(0.75 * inter + 0.25 * intra)


def test_schedules_by_cosine() -> None:
    share = [restarting_cosine(t, 0.6, 0.0) for t in (0, 14, 29, 30, 50, 70, 110, 190)]
    assert share == pytest.approx([0.02, 0.3, 0.6, 0.6, 0.3, 0.6, 0.6, 0.6])
    assert restarting_cosine(69, 0.6, 0.0) == pytest.approx(0.0, abs=1e-3)
    later = ConditionalAdvantage(mixing="cosine_intra_first")
    assert later.weight(29, 0.0) == pytest.approx(0.4) and later.weight(69, 0.0) == pytest.approx(1, abs=1e-3)
    first = ConditionalAdvantage(mixing="cosine_inter_first")
    assert first.weight(29, 0.0) == pytest.approx(1) and first.weight(69, 0.0) == pytest.approx(0.4, abs=1e-3)


def test_schedules_count_steps_and_keep_the_count() -> None:
    credit = ConditionalAdvantage(mixing="cosine_intra_first")
    credit.load_state_dict({"steps": 29})
    value = Method(credit=credit).value(batch_of([*R])).advantages[:, 0].tolist()
    assert value == pytest.approx([0.4 * a + 0.6 * b for a, b in zip(INTER, INTRA, strict=True)])
    assert credit.state_dict() == {"steps": 30}


def test_the_entropy_of_a_response_is_a_mean_over_its_tokens_and_its_length_their_number() -> None:
    """Entropies of 3 tokens at 0.2 and 1 token at 0.4: the sum would order them the other way round."""
    batch = batch_of([1.0, 0.0], [0.2, 0.4], lengths=[3, 1])
    assert ConditionalAdvantage().measure(batch, 0).tolist() == pytest.approx([0.2, 0.4])
    assert ConditionalAdvantage(metric="length").measure(batch, 0).tolist() == [3, 1]
    assert ConditionalAdvantage.halves(torch.tensor([0.2, 0.4]), batch).tolist() == [False, True]


def test_groups_are_cut_each_by_itself() -> None:
    """Metrics 1, 2 and 8, 9: a cut of the whole batch would put each group in one half."""
    episodes = batch_of([0.0] * 4).episodes
    verdicts = [Verdict(r, r > 0) for r in (1.0, 0.0, 0.0, 1.0)]
    groups = [
        Group(Ask(Task(str(g), "?"), 2), tuple(episodes[:2]), tuple(verdicts[2 * g : 2 * g + 2])) for g in range(2)
    ]
    batch = Batch.from_groups(groups, torch.float64)
    batch.signals["policy_entropy"] = torch.tensor([[1.0], [2.0], [8.0], [9.0]]).double()
    assert found(batch) == [1, -1, -1, 1]


def test_random_halves_are_the_seeds() -> None:
    drawn = [ConditionalAdvantage(metric="random", seed=s).measure(batch_of([*R]), 0).tolist() for s in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert ConditionalAdvantage(metric="random").measure(batch_of([*R]), 0).tolist() == drawn[0]


def test_what_it_has_seen_is_no_option() -> None:
    used, fresh = ConditionalAdvantage(), ConditionalAdvantage()
    used.load_state_dict({"steps": 3})
    assert used == fresh and repr(used) == repr(fresh) and used.state_dict() != fresh.state_dict()
    assert used.group_relative, "its baseline is of siblings"
    with pytest.raises(TypeError):
        ConditionalAdvantage(_steps=[1])  # type: ignore[call-arg]


def test_defaults() -> None:
    """Those of the authors' script."""
    for credit in (make("S096").credit, ConditionalAdvantage()):
        assert (credit.metric, credit.mu, credit.mixing, credit.alpha, credit.favour) == (
            "entropy",
            1,
            "fixed",
            1,
            None,
        )
        assert credit.weight(7, 0.3) == 1
    assert make("S096").objective.clip_low == 0.2 and not make("S096").objective.kl_weight
    for good in ({"mu": 0.0}, {"mu": 1.0}, {"alpha": 1.0}):
        make("S096", **good)
    with pytest.raises(UsageError, match="mu in"):
        make("S096", mu=-0.1)


def test_aggregation_and_clip() -> None:
    plain, dr = make("S096").objective, make("S096", max_length=8192).objective
    assert (plain.aggregation, plain.clip_high) == ("sequence_sum", 0.28)
    assert (dr.aggregation, dr.max_length) == ("constant", 8192)


def test_options() -> None:
    assert make("S096").needs == {"policy_entropy"} and not make("S096", metric="length").needs
    for bad in ({"mu": 1.5}, {"alpha": 0.0}, {"alpha": 1.2}):
        with pytest.raises(UsageError, match="mu in"):
            make("S096", **bad)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.floats(0, 3)), min_size=2, max_size=10).filter(
        lambda s: len(s) % 2 == 0
    )
)
def test_equal_halves_mixed_evenly_are_dr_grpo(samples: list[tuple[float, float]]) -> None:
    batch = batch_of([s[0] for s in samples], [s[1] for s in samples])
    plain = Method(credit=GRPO(normalise=False)).value(batch).advantages[:, 0].tolist()
    assert found(batch, mu=0.5) == pytest.approx(plain, abs=1e-12)


@pytest.mark.slow
@given(st.permutations(range(6)))
def test_the_metric_counts_not_the_order(order: list[int]) -> None:
    rewards, metric = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0], [0.3, 0.1, 0.9, 0.5, 0.2, 0.7]
    plain = found(batch_of([*rewards], metric), mu=0.8)
    mixed = found(batch_of([rewards[i] for i in order], [metric[i] for i in order]), mu=0.8)
    assert mixed == pytest.approx([plain[i] for i in order], abs=1e-12)


def test_in_training_the_length_that_pays_is_found_sooner_than_by_dr_grpo(tmp_path: Path) -> None:
    """Lengths 1 to 6, right more often the longer: 0.408 of answers are at first."""
    chances = (0.05, 0.1, 0.2, 0.6, 0.7, 0.8)
    setting = load("lengths", {"easy": chances, "hard": chances, "steps": 12, "prompts": 4, "lr": 0.5})
    plain = {"name": "grpo", "credit": {"normalise": False}, "objective": {"aggregation": "sequence_sum"}}
    canon, dr_grpo = (
        setting.run(arm, 0, tmp_path) for arm in ({"name": "S096", "credit": {"metric": "length"}}, plain)
    )
    assert canon["hard"] > dr_grpo["hard"] + 0.02 > 0.45 and canon["length"] > dr_grpo["length"] > 3.5
