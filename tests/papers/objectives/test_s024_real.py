"""REAL: loss and gradients by hand-computed numbers, its bound, and the groups that say nothing."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.errors import UsageError
from assay.learning.update import update, whole_groups
from assay.method import make_method
from assay.papers.objectives.s024_real import RewardsAsLabels
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Group, Task, Verdict

SCORES = [0.1, -0.2, 0.3, 0.0]
RIGHT = [1.0, 1, 0, 0]


def pull(objective, batch, scores, lengths=None):
    """Loss and its gradient with respect to mean log-ratios ``scores``, which every token of a response has."""
    s = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    logprobs = torch.where(batch.mask, s[:, None].expand(batch.mask.shape), 0)
    loss = objective(logprobs, batch)
    (found,) = torch.autograd.grad(loss.value, s)
    return loss, found.tolist()


def test_the_worked_example(make_batch):
    loss, found = pull(RewardsAsLabels(), make_batch([3, 1, 2, 5], RIGHT), SCORES)
    assert loss.value.item() == pytest.approx(2.537921, abs=1e-6)
    assert found == pytest.approx([-0.494618, -0.901253, 0.953460, 0.523270], abs=1e-6)
    assert loss.metrics["real/margin"] == pytest.approx(-0.05 - 0.15)


def test_the_pointwise_form(make_batch):
    loss, found = pull(RewardsAsLabels(form="pointwise"), make_batch([3, 1, 2, 5], RIGHT), SCORES)
    assert loss.value.item() == pytest.approx(0.810447, abs=1e-6)
    assert found == pytest.approx([-0.225083, -0.299344, 0.322828, 0.25], abs=1e-6)


def test_the_first_update_of_a_lopsided_group(make_batch):
    loss, found = pull(RewardsAsLabels(), make_batch([2] * 8, [1.0] + [0.0] * 7), [0.0] * 8)
    assert loss.value.item() == pytest.approx(2.772589, abs=1e-6)
    assert found == pytest.approx([-1.0] + [0.25] * 7)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=6), st.floats(0.05, 5))
def test_no_response_is_pulled_harder_than_the_inverse_temperature(make_batch, scores, temperature):
    rewards = [float(i % 2) for i in range(len(scores))]
    loss, found = pull(RewardsAsLabels(temperature), make_batch([1] * len(scores), rewards), scores)
    assert math.isfinite(loss.value.item())
    for slope, reward in zip(found, rewards, strict=True):
        assert abs(slope) <= 1 / temperature + 1e-9
        assert (slope <= 0) if reward else (slope >= 0)


def test_the_pull_weakens_as_a_response_is_placed_better(make_batch):
    pulls = [pull(RewardsAsLabels(), make_batch([1, 1], [1.0, 0]), [s, 0.0])[1][0] for s in (-2.0, 0, 2, 4)]
    assert pulls == sorted(pulls) and pulls[0] < -1 and pulls[-1] > -0.001


def test_groups_of_one_class_add_nothing_but_count(make_batch):
    alone, slopes = pull(RewardsAsLabels(), make_batch([3, 1, 2, 5], RIGHT), SCORES)
    batch = make_batch([3, 1, 2, 5, 2, 2], [*RIGHT, 1.0, 1.0], groups=[0, 0, 0, 0, 1, 1])
    loss, found = pull(RewardsAsLabels(), batch, [*SCORES, 0.7, -0.7])
    assert loss.value.item() == pytest.approx(alone.value.item() / 2)
    assert found == pytest.approx([x / 2 for x in slopes] + [0, 0])
    assert loss.metrics["real/mixed"] == 0.5
    batch = make_batch([3, 1, 2, 5, 2, 2], [*RIGHT, 0.0, 0.0], groups=[0, 0, 0, 0, 1, 1])
    loss, found = pull(RewardsAsLabels(), batch, [*SCORES, 0.7, -0.7])
    assert loss.value.item() == pytest.approx(alone.value.item() / 2) and found[4:] == [0, 0]
    only, zero = pull(RewardsAsLabels(), make_batch([2, 2], [1.0, 1.0]), [0.5, -0.5])
    assert only.value.item() == 0 and zero == [0, 0] and "real/margin" not in only.metrics
    single, slope = pull(RewardsAsLabels(form="pointwise"), make_batch([2], [1.0]), [0.0])
    assert single.value.item() == 0 and slope == [0]


def test_single_labels_are_averaged_over_the_responses_of_mixed_groups(make_batch):
    """Of three responses two are of a mixed group: ln 2 and pulls of (1/2) / tau / 2, whatever the third says."""
    batch = make_batch([2, 1, 3], [1.0, 0.0, 1.0], groups=[0, 0, 1])
    objective = RewardsAsLabels(form="pointwise")
    loss, found = pull(objective, batch, [0.0, 0.0, 0.7])
    assert loss.value.item() == pytest.approx(math.log(2)) and found == pytest.approx([-0.5, 0.5, 0])
    objective.prepare(batch)
    parts = [batch.rows(torch.tensor(rows)) for rows in ([0, 1], [2])]
    apart = [objective(torch.zeros(part.tokens.shape, dtype=torch.float64), part).value.item() for part in parts]
    assert apart == pytest.approx([math.log(2), 0])


def test_the_mean_is_over_tokens_and_a_response_without_any_is_left_out(make_batch):
    batch = make_batch([3, 1, 2, 5, 0], [*RIGHT, 1.0])
    loss, found = pull(RewardsAsLabels(), batch, [*SCORES, 9.0])
    assert loss.value.item() == pytest.approx(2.537921, abs=1e-6) and found[-1] == 0


def test_groups_split_over_micro_batches_add_up(make_batch):
    batch = make_batch([3, 1, 2, 5, 2, 2], [*RIGHT, 1.0, 0.0], groups=[0, 1, 0, 1, 2, 2])
    batch.rewards = torch.tensor([1.0, 1, 0, 0, 1, 0], dtype=torch.float64)
    batch.totals = batch.count()
    scores = torch.tensor([*SCORES, 0.7, -0.7], dtype=torch.float64)
    logprobs = torch.where(batch.mask, scores[:, None], 0)
    objective = RewardsAsLabels()
    parts = whole_groups([torch.tensor([0, 1]), torch.tensor([2, 3, 4, 5])], batch)
    total = sum(
        objective(logprobs[rows][:, : batch.rows(rows).tokens.shape[1]], batch.rows(rows)).value for rows in parts
    )
    assert len(parts) == 2 and float(total) == pytest.approx(objective(logprobs, batch).value.item())


def test_labels_are_rewards_above_the_threshold_or_verdicts(make_batch):
    batch = make_batch([1, 1], [0.4, 0.3], passed=[False, True])
    by_reward = pull(RewardsAsLabels(threshold=0.35), batch, [0.0, 0.0])[1]
    by_verdict = pull(RewardsAsLabels(by="verdict"), batch, [0.0, 0.0])[1]
    assert by_reward[0] < 0 < by_reward[1] and by_verdict[1] < 0 < by_verdict[0]


def test_an_unknown_past_has_log_ratio_zero_with_a_gradient(make_batch):
    batch = make_batch([2, 2], [1.0, 0.0])
    batch.logprobs[0] = torch.nan
    loss, found = pull(RewardsAsLabels(), batch, [-3.0, 0.0])
    assert loss.value.item() == pytest.approx(2 * math.log(2)) and found == pytest.approx([-1.0, 1.0])


def test_it_reads_no_advantages_and_checks_its_temperature():
    with pytest.raises(UsageError, match="reads no advantages"):
        make_method("S024", credit="rloo")
    with pytest.raises(UsageError, match="above 0"):
        make_method("S024", objective={"temperature": 0.0})


def test_rewards_above_one_half_are_right(make_batch):
    found = pull(make_method("S024").objective, make_batch([1, 1, 1], [0.7, 0.5, 0.4]), [0.0] * 3)[1]
    assert found == pytest.approx([-1.0, 2 / 3, 2 / 3])
    assert RewardsAsLabels() == make_method("S024").objective
    assert RewardsAsLabels.whole_groups, "a group cut over two passes has two losses"
    assert RewardsAsLabels().summary["ratio"] == "sequence, mean log-ratio"


def test_a_weight_is_as_many_copies(make_batch):
    copies, weighed = make_batch([1, 1, 1], [1.0, 0.0, 0.0]), make_batch([1, 1], [1.0, 0.0])
    weighed.weights = torch.tensor([1.0, 2.0], dtype=torch.float64)
    for form in ("relational", "pointwise"):
        loss, found = pull(RewardsAsLabels(form=form), copies, [0.3, 0.1, 0.1])
        both, pulled = pull(RewardsAsLabels(form=form), weighed, [0.3, 0.1])
        assert both.value.item() == pytest.approx(loss.value.item())
        assert pulled == pytest.approx([found[0], found[1] + found[2]])


def test_abstentions_and_no_responses_at_all(make_batch):
    batch = make_batch([3, 1, 2, 5, 2], [*RIGHT, 1.0])
    batch.valid = torch.tensor([True] * 4 + [False])
    loss, found = pull(RewardsAsLabels(), batch, [*SCORES, 0.6])
    assert loss.value.item() == pytest.approx(2.537921, abs=1e-6) and found[-1] == 0
    batch.valid[:] = False
    for form in ("relational", "pointwise"):
        loss, found = pull(RewardsAsLabels(form=form), batch, [0.1] * 5)
        assert loss.value.item() == 0 and found == [0] * 5
        assert loss.metrics.get("real/mixed", 0) == 0 and "real/margin" not in loss.metrics


def test_the_first_and_the_second_update_of_a_policy():
    """Two arms of chance 1/2, the first right, both sampled; steps of size 1.

    First, both pulls are 1 / (tau 2) = 1: the logits move by (1, -1). Then s = log(0.880797 / 0.5) and
    log(0.119203 / 0.5), the pulls 2 / (1 + exp(2 * 0.566219)) and 2 / (1 + exp(2 * 1.433781)).
    """
    policy, method = TabularPolicy(Tree.bandit(2)), make_method("S024")
    episodes = tuple(policy.leaf_episodes(torch.arange(2)))
    group = Group(Ask(Task("t", ""), 2), episodes, (Verdict.right(), Verdict.wrong()))
    batch = method.value(Batch.from_groups([group], torch.float64))
    optimizer, seen = torch.optim.SGD(policy.module.parameters(), lr=1.0), []
    for _ in range(2):
        update(policy, method.objective, batch, optimizer, max_grad_norm=math.inf)
        seen += policy.logits.detach()[0].tolist()
    assert seen == pytest.approx([1, -1, 1.152843, -1.152843], abs=5e-6)
