"""ROVER: the Bellman error by hand-computed numbers, what has a gradient, and what follows a decision."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.learning.signals import compute_signals
from assay.method import Method, make_method
from assay.objectives.policy_gradient import PolicyGradient
from assay.papers.objectives.s095_rover import UniformBellman, following
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models
from assay.types import Ask, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = {"policy_logprobs", "policy_mean_logprob"}


def example() -> tuple[TabularPolicy, TabularPolicy, Batch]:
    """Three children, two decisions: policy and old policy of the worked example, and the path 0/1 of advantage 0.5."""
    tree = Tree.of([[0, 0, 0], 0, 0])
    now = TabularPolicy(tree, torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]]).double().log())
    old = TabularPolicy(tree, torch.tensor([[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]]).double().log())
    batch = valued(old, [1], 0.5)
    return now, old, batch


def valued(policy: TabularPolicy, leaves: list[int], advantage: float) -> Batch:
    """Paths to ``leaves`` with the signals that ``policy``, as it stands, gives."""
    episodes = policy.leaf_episodes(torch.tensor(leaves))
    verifier = TabularVerifier(policy.tree)
    task = Task("t", "", kind="tabular")
    verdicts = tuple(verifier(task, e.text) for e in episodes)
    batch = Batch.from_groups([Group(Ask(task, len(leaves)), tuple(episodes), verdicts)], torch.float64)
    compute_signals(batch, NAMES, Models(policy))
    batch.advantages = torch.where(batch.mask, advantage, 0.0).double()
    batch.totals = batch.count()
    return batch


def loss_of(objective, policy, batch):
    output = policy.forward(batch, objective.live)
    batch.live = output.live
    return objective(output.logprobs, batch)


def test_the_worked_example():
    now, _, batch = example()
    loss = loss_of(UniformBellman(), now, batch)
    assert loss.metrics["rover/q"] == pytest.approx((0.223144 - 0.405465) / 2, abs=1e-6)
    assert loss.metrics["rover/target"] == pytest.approx((0.425619 + 0.5) / 2, abs=1e-6)
    assert loss.value.item() == pytest.approx(0.430432, abs=1e-6)


def test_only_the_prediction_has_a_gradient():
    now, _, batch = example()
    (found,) = torch.autograd.grad(loss_of(UniformBellman(), now, batch).value, now.logits)
    # 2 (Q - target) / 2 tokens, times the gradient of the token's log-probability.
    errors = np.array([0.223144 - 0.425619, -0.405465 - 0.5])
    p = np.array([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]])
    want = errors[:, None] * (np.eye(3)[[0, 1]] - p)
    np.testing.assert_allclose(found.numpy(), want, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_the_first_update_is_reinforce(scale):
    policy = TabularPolicy.random(Tree.of([0.0, [1.0, 0.0], [[1.0], [0.0, 1.0]]]), seed=3)
    batch = valued(policy, [0, 2, 3, 5], 0.0)
    batch.advantages = torch.where(batch.mask, torch.tensor([[0.3], [-1.0], [0.7], [0.0]]), 0).double()
    (found,) = torch.autograd.grad(loss_of(UniformBellman(scale), policy, batch).value, policy.logits)
    plain = PolicyGradient()(policy.forward(batch).logprobs, batch).value
    (want,) = torch.autograd.grad(plain, policy.logits)
    np.testing.assert_allclose(found.numpy(), 2 * scale * want.numpy(), atol=1e-12)


def test_an_advantage_of_zero_still_teaches_once_the_policy_has_moved():
    now, _, batch = example()
    batch.advantages.zero_()
    objective = UniformBellman()
    (found,) = torch.autograd.grad(loss_of(objective, now, batch).value, now.logits)
    assert found.abs().max() > 0.05
    assert not getattr(objective, "zero_advantage_is_idle", False)


def test_the_scale_multiplies_prediction_and_next_value():
    now, _, batch = example()
    scaled = loss_of(UniformBellman(2.0), now, batch).metrics
    assert scaled["rover/q"] == pytest.approx(0.223144 - 0.405465, abs=1e-6)
    assert scaled["rover/target"] == pytest.approx((0.5 - 2 * 0.074381 + 0.5) / 2, abs=1e-6)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=3))
def test_what_follows_is_the_next_learnable_token(rows):
    mask = torch.tensor(rows)
    x = torch.arange(1.0, mask.numel() + 1).reshape(mask.shape).double()
    found = following(x, mask)
    for i, row in enumerate(rows):
        kept = [j for j, on in enumerate(row) if on]
        want = [0.0] * 4
        for a, b in pairwise(kept):
            want[a] = float(x[i, b])
        assert found[i].tolist() == want


def test_no_tokens_at_all():
    empty = torch.zeros(2, 0)
    assert following(empty, empty.bool()).shape == (2, 0)


def test_the_vocabulary_mean_counts_all_tokens_whatever_was_sampled():
    tree = Tree.of([[0, 0, 0], 0, 0])
    old, now = TabularPolicy(tree), TabularPolicy.random(tree, seed=1)
    losses = []
    for leaf in (0, 1, 2):
        batch = valued(old, [leaf], 0.0)
        losses.append(loss_of(UniformBellman(), now, batch).metrics["rover/target"])
    assert losses == pytest.approx([losses[0]] * 3)
    value = now.log_policy()[1].mean() - np.log(1 / 3)
    assert losses[0] == pytest.approx(float(value.detach()) / 2)


def every_leaf(rewards: list[float]) -> tuple[TabularPolicy, Batch, Method]:
    """The uniform policy on a tree of three children, and all that it can say, each once: its exact expectation."""
    depth = {27: 3, 81: 4}[len(rewards)]
    policy = TabularPolicy(Tree.uniform(3, depth, rewards))
    method = make_method("S095", credit={"normalise": False})
    batch = valued(policy, list(range(len(rewards))), 0.0)
    return policy, method.value(batch), method


def test_greedy_after_one_step_finds_an_answer_wherever_there_is_one():
    """From the uniform policy, a step along the loss raises a choice by the uniform policy's value of it."""
    rng = np.random.default_rng(0)
    for _ in range(25):
        rewards = (rng.random(81) < 0.05).astype(float).tolist()
        policy, batch, method = every_leaf(rewards)
        (slope,) = torch.autograd.grad(loss_of(method.objective, policy, batch).value, policy.logits)
        path: list[int] = []
        while len(path) < 4:
            path.append(int(slope[policy.tree.node(path)].argmin()))
        assert rewards[policy.tree.paths.index(tuple(path))] == max(rewards)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sampling_from_the_fitted_values_keeps_every_answer_in_play(seed):
    """Every right leaf ends above, every wrong one below the uniform 1/27; the optimum of the reward keeps few."""
    rewards = (np.random.default_rng(seed).random(27) < 0.2).astype(float)
    right = torch.from_numpy(rewards > 0)
    policy, batch, method = every_leaf(rewards.tolist())
    greedy = policy.twin()
    for _ in range(150):
        (slope,) = torch.autograd.grad(loss_of(method.objective, policy, batch).value, policy.logits)
        (climb,) = torch.autograd.grad((greedy.leaf_logprobs().exp() @ torch.from_numpy(rewards)), greedy.logits)
        with torch.no_grad():
            policy.logits -= 5 * slope
            greedy.logits += 5 * climb
    fitted, best = (p.leaf_logprobs().detach().exp() for p in (policy, greedy))
    assert 27 * float(fitted[right].min()) > 1.5 and 27 * float(fitted[~right].max()) < 1
    assert float(fitted[right].min() / fitted[right].max()) > 0.9
    assert float(best[right].sum()) > 0.99 and float(best[right].min() / best[right].max()) < 0.05


def test_every_token_has_the_groups_centred_reward():
    """Rewards 1, 0, 0 are 2/3 and -1/3 from their mean, 2/sqrt 3 and -1/sqrt 3 of their deviation."""
    policy = TabularPolicy(Tree.of([[0.0, 1.0], 0.0, 0.0]))
    for normalise, unit in ((False, 1 / 3), (True, 3**-0.5)):
        batch = valued(policy, [1, 2, 3], 0.0)
        batch = catalogue.make("S095", normalise=normalise).value(batch)
        want = [[2 * unit, 2 * unit], [-unit, 0], [-unit, 0]]
        np.testing.assert_allclose(batch.advantages.numpy(), want, atol=1e-5)


def test_samples_and_tokens_that_are_left_out_count_nowhere():
    """A sample without weight, and a token that a tool wrote, between whose neighbours there is then one step."""
    now, old, batch = example()
    both = valued(old, [1, 0], 0.5)
    both.weights = torch.tensor([1.0, 0.0]).double()
    both.totals = both.count()
    with_it, alone = (loss_of(UniformBellman(), now, b) for b in (both, batch))
    assert with_it.value.item() == pytest.approx(alone.value.item()) and with_it.metrics == pytest.approx(alone.metrics)
    batch.mask[0, 0] = False
    batch.totals = batch.count()
    last = loss_of(UniformBellman(), now, batch)
    assert last.value.item() == pytest.approx(0.905465**2, abs=1e-5), "ln 0.2 - ln 0.3 against 0.5"


def test_the_constant_aggregation():
    """Squares 0.041 and 0.820 over one response of at most eight tokens."""
    now, _, batch = example()
    found = loss_of(UniformBellman(aggregation="constant", max_length=8), now, batch).value.item()
    assert found == pytest.approx(2 * 0.430432 / 8, abs=1e-6)
    assert UniformBellman(aggregation="constant", max_length=1).max_length == 1


def test_defaults():
    """Temperature 1, rewards standardised, the mean over tokens."""
    for objective in (catalogue.make("S095").objective, UniformBellman()):
        assert (objective.scale, objective.aggregation) == (1.0, "token_mean")
        assert objective.summary["aggregation"] == "token mean"
    assert catalogue.make("S095").credit == GRPO(normalise=True)


def test_the_reward_is_standardised_or_only_centred():
    assert (
        make_method("S095").credit.normalise and not make_method("S095", credit={"normalise": False}).credit.normalise
    )
    with pytest.raises(UsageError, match="above 0"):
        make_method("S095", objective={"scale": 0.0})
    for none in (None, 0):
        with pytest.raises(UsageError, match="max_length"):
            UniformBellman(aggregation="constant", max_length=none)
