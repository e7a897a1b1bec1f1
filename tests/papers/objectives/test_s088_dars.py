"""DARS: the schedule by its table, what the second round adds and merges, and what it weighs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.lab.settings import load
from assay.learning.step import learn
from assay.method import make_method
from assay.papers.objectives.s088_dars import SecondRound, extra
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.signals.base import Models
from assay.types import Ask, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_schedules() -> None:
    """Responses added after k right ones of eight, at most 32 and 64 in all."""
    assert [extra(k / 8, 8, 32, "equal") for k in range(9)] == [24, 11, 3, 1, 0, 0, 0, 0, 0]
    assert [extra(k / 8, 8, 64, "hardness") for k in range(9)] == [56, 24, 8, 3, 0, 0, 0, 0, 0]


def test_a_group_of_accuracy_a_weighs_2_a_1_minus_a(make_batch) -> None:
    """The sum over |A| that the schedule is made from: 0, 1.75, 3, 3.75, 4, ... for eight responses."""
    got = []
    for k in range(9):
        batch = make_batch([1] * 8, rewards=[1.0] * k + [0.0] * (8 - k))
        got.append(GRPO(normalise=False)(batch).abs().sum().item())
    assert got == pytest.approx([0, 1.75, 3, 3.75, 4, 3.75, 3, 1.75, 0])


def arms(*p: float) -> TabularPolicy:
    """Bandits side by side whose right arms have these probabilities."""
    logits = torch.zeros(1 + len(p), max(2, len(p)), dtype=torch.float64)
    for i, x in enumerate(p):
        logits[1 + i, :2] = torch.tensor([np.log(x), np.log1p(-x)])
    return TabularPolicy(Tree.of([[1.0, 0.0] for _ in p]), logits)


class Counting(TabularEngine):
    calls: list[list[int]]

    def generate(self, requests):
        self.calls = [*getattr(self, "calls", []), [r.n for r in requests]]
        return super().generate(requests)


def collected(policy: TabularPolicy, n: int = 8, judge=None, **options):
    judge = judge or partial(judge_groups, TabularVerifier(policy.tree))
    rollout = build("rollout", {"name": "dars", **options}, sampling=Sampling(4), judge=judge)
    engine = Counting(policy)
    asks = [Ask(Task(str(i), str(i)), n) for i in range(len(policy.tree) // 2)]
    return rollout.collect(asks, engine, np.random.default_rng(0)), engine, rollout


def test_hard_problems_get_more_responses_of_the_same_policy_in_one_group() -> None:
    catalogue.find("S088")
    groups, engine, rollout = collected(arms(0.02, 0.3, 0.95))
    assert engine.calls[0] == [8, 8, 8] and len(engine.calls) == 2
    wanted = []
    for group in groups:
        right = sum(bool(v.passed) for v in group.verdicts[:8])
        wanted.append(extra(right / 8, 8, 64))
        assert len(group.episodes) == len(group.verdicts) == group.ask.n == 8 + wanted[-1]
        verifier = TabularVerifier(engine.policy.tree)
        assert [verifier(group.task, e.text) for e in group.episodes] == list(group.verdicts)
    assert engine.calls[1] == [n for n in wanted if n] and wanted[0] > wanted[2] == 0
    # New draws, not the first ones again.
    again = [e.text for e in groups[1].episodes]
    assert len(again) < 16 or again[:8] != again[8:16]
    assert rollout.metrics() == {
        "dars/again": len(engine.calls[1]) / 3,
        "dars/extra": pytest.approx(sum(wanted) / 24),
    }


def test_easy_problems_cost_no_second_call() -> None:
    groups, engine, rollout = collected(arms(1 - 1e-12, 1 - 1e-12))
    assert len(engine.calls) == 1 and [len(g.episodes) for g in groups] == [8, 8]
    assert rollout.metrics() == {"dars/again": 0.0, "dars/extra": 0.0}


def test_abstentions_are_no_wrong_answers() -> None:
    """Accuracy is of the judged ones; a task without a verdict is not asked again."""

    def judge(groups):
        out = []
        for group in groups:
            known = [Verdict.right(), Verdict.wrong()] if group.task.id == "1" else []
            verdicts = [*known, *[Verdict.abstain("timed out")] * len(group.episodes)][: len(group.episodes)]
            out.append(group.judged(verdicts))
        return out

    groups, engine, _ = collected(arms(0.5, 0.5), judge=judge)
    assert len(engine.calls) == 1 and [len(g.episodes) for g in groups] == [8, 8]


def test_advantages_are_over_the_merged_group() -> None:
    groups, _, _ = collected(arms(0.1))
    batch = make_method("S088").value(Batch.from_groups(groups, torch.float64))
    rewards = torch.tensor([v.score for v in groups[0].verdicts], dtype=torch.float64)
    assert len(rewards) > 8
    assert torch.allclose(batch.advantages[:, 0], rewards - rewards.mean())


def test_groups_of_equal_rewards_are_left_out() -> None:
    groups, _, _ = collected(arms(1e-12, 0.5))
    batch = make_method("S088").value(Batch.from_groups(groups, torch.float64))
    assert len(groups[0].episodes) == 64 and not batch.weights[:64].any() and batch.weights[64:].all()
    assert batch.totals.groups == 1


def test_options() -> None:
    method = catalogue.make("S088")
    assert method.rollout == {"name": "dars", "schedule": "hardness", "most": None, "standardised": False}
    assert method.credit == GRPO(normalise=False) and not method.objective.kl_weight
    assert catalogue.make("S088", max_length=100).objective.max_length == 100
    assert make_method("S088").objective.aggregation == "sequence_sum"
    assert catalogue.make("S088", max_length=100).objective.aggregation == "constant"
    assert catalogue.make("S088", standardised=True).credit == GRPO()
    with pytest.raises(UsageError, match="most = 0"):
        collected(arms(0.5), most=0)


def test_the_standardised_schedule() -> None:
    """S = 2 sqrt(a (1 - a)), 0.661438 at 1/8 and 0.866025 at 1/4: 8 / S - 8 = 4.09 and 1.24; x 7/4 and 3/2 first."""
    assert [extra(k / 8, 8, 99, "equal", True) for k in (1, 2, 4)] == [5, 2, 0]
    assert [extra(k / 8, 8, 99, "hardness", True) for k in (1, 2, 4)] == [14, 6, 0]
    # a = 0 counts as 1/16: S = 0.484123, 8 / S - 8 = 8.52.
    assert extra(0.0, 8, 99, "equal", True) == 9
    # S = 15/128 by 2a(1 - a): (4 - 15/16) / S = 26.1 and (7.5 - 15/16) / S = 56.
    assert [extra(0.0, 8, 999, s) for s in ("equal", "hardness")] == [27, 56]
    # 2 (1 - a) / (4 a (1 - a)) = 1 / (2a) is whole for a = 1/4: 16 responses, not one more for a rounding error.
    assert [extra(1 / 4, n, 999) for n in (4, 12, 20, 100)] == [4, 12, 20, 100]
    assert extra(1 / 4, 8, 8) == extra(1 / 4, 8, 3) == 0, "there is no room for more"


def test_a_group_may_be_asked_up_to_four_or_eight_times_its_size() -> None:
    """32 and 64 of the paper's 8; at an accuracy of 0 hardness wants 56 more, equal treatment 27."""
    for schedule, most in (("hardness", 64), ("equal", 32)):
        (group,), _, _ = collected(arms(1e-12), schedule=schedule)
        assert len(group.episodes) == most
    (group,), _, rollout = collected(arms(1e-12), n=16)
    assert len(group.episodes) == 8 * 16, "it wants 240 more"
    assert rollout.metrics() == {"dars/again": 1.0, "dars/extra": 7.0}
    assert len(collected(arms(1e-12), most=9)[0][0].episodes) == 9
    assert len(collected(arms(1e-12), most=1)[0][0].episodes) == 8
    (group,), _, _ = collected(arms(1e-12), n=2, most=100, schedule="equal", standardised=True)
    assert len(group.episodes) == 2 + 1, "2 / 0.866 - 2 = 0.3"


def test_problems_without_a_response_are_left_alone() -> None:
    rollout = collected(arms(0.5), judge=lambda groups: [])[2]
    assert rollout.metrics() == {"dars/again": 0.0, "dars/extra": 0.0}
    for name in ("_inner", "_metrics"):
        with pytest.raises(TypeError):
            SecondRound(Sampling(4), list, **{name: {}})


def test_breadth_is_one_mini_batch_of_the_whole_step() -> None:
    groups, _, _ = collected(arms(0.3, 0.4, 0.5))
    method, policy = make_method("S088"), arms(0.5)
    batch = method.value(Batch.from_groups(groups, torch.float64))
    seen: list[int] = []

    def apply(objective: object, part: Batch) -> dict[str, float]:
        seen.append(len(part))
        return {}

    learn(batch, method, Models(policy), np.random.default_rng(0), apply, epochs=2, parts=1)
    assert seen == [len(batch)] * 2


def learned(schedule: str | None, n: int, most: int, seed: int) -> tuple[float, float]:
    """Pass rate of 20 hard problems after 60 steps of z += 0.05 sum A dlog p, and responses per problem and step.

    Forty independent problems, of pass rates 0.02, 0.5 and 0.8 at the start.
    """
    rng = np.random.default_rng(seed)
    z = np.log(np.repeat([0.02, 0.5, 0.8], [20, 10, 10]) / (1 - np.repeat([0.02, 0.5, 0.8], [20, 10, 10])))
    table = np.array([0 if schedule is None else extra(k / n, n, most, schedule) for k in range(n + 1)])
    spent = 0
    for _ in range(60):
        p = 1 / (1 + np.exp(-z))
        right = rng.binomial(n, p)
        more = table[right]
        right, size = right + rng.binomial(more, p), n + more
        mean = right / size
        # sum over the group of (R - mean) (R - p), the slope of a Bernoulli's log-probability in its logit.
        z = z + 0.05 * (right * (1 - mean) * (1 - p) + (size - right) * mean * p)
        spent += size.sum()
    return float((1 / (1 + np.exp(-z)))[:20].mean()), spent / 40 / 60


def test_hard_problems_are_learned_soonest_by_the_hardness_schedule() -> None:
    """With the loss summed over responses, and no more of them than the same number for every problem takes."""
    runs = {
        "uniform": [learned(None, 17, 17, s) for s in range(8)],
        "equal": [learned("equal", 8, 32, s) for s in range(8)],
        "hardness": [learned("hardness", 8, 64, s) for s in range(8)],
    }
    hard, cost = ({k: float(np.mean([r[i] for r in v])) for k, v in runs.items()} for i in (0, 1))
    assert [hard[k] for k in ("uniform", "equal", "hardness")] == pytest.approx([0.21, 0.65, 0.88], abs=0.08)
    assert [cost[k] for k in ("uniform", "equal", "hardness")] == pytest.approx([17, 14.8, 16.5], abs=1)


@pytest.mark.slow
@given(st.integers(2, 64), st.data())
def test_the_second_round_makes_up_for_the_missing_weight(n: int, data: st.DataObject) -> None:
    """With n + dn responses of the same accuracy the advantages weigh at least what they should, with one less not."""
    k = data.draw(st.integers(1, n - 1))
    for schedule in ("equal", "hardness"):
        for standardised in (False, True):
            a = k / n
            dn = extra(a, n, 10**9, schedule, standardised)
            if 2 * k >= n:
                assert dn == 0
                continue
            each = 2 * (a * (1 - a)) ** (0.5 if standardised else 1)
            wanted = n * (1 if standardised else 0.5) * (2 * (1 - a) if schedule == "hardness" else 1)
            assert (n + dn) * each >= wanted - 1e-6
            assert dn == 0 or (n + dn - 1) * each < wanted + 1e-6
            assert extra(a, n, n + 2, schedule, standardised) == min(dn, 2)


def test_in_training_a_second_round_turns_learning_to_what_is_hard(tmp_path) -> None:
    """Pass rates of 0.5 and 0.1, by a run's own loop: what hard problems gain, against what easy ones do."""
    kinds = [[8, 1.0, 0.0, 0.0], [8, 1.0, 0.0, -2.197225]]
    setting = load("problems", {"kinds": kinds, "spread": 0.0, "steps": 8, "lr": 10.0})
    arms_ = ({"name": "S088"}, {"name": "S088", "rollout": "single_turn"})
    both, once = (setting.run(arm, 0, tmp_path) for arm in arms_)
    assert both["hard"] > once["hard"] > once["hard/start"] == pytest.approx(0.1)
    gains = [(found["hard"] - 0.1) / (found["easy"] - 0.5) for found in (both, once)]
    assert gains[0] > 0.7 > 2 * gains[1] > 0
