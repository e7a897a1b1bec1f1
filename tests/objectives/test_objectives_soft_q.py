"""Soft Q-learning: its fixed point on a tree, its gradient by hand, and that it gets there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.method import make_method
from assay.objectives.soft_q import SoftQ
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Group, Task, Verdict

TREE = Tree.of([[0.0, 1.0], 0.5, [1.0, [0.0, 0.5]]])


def batch_of(policy: TabularPolicy, leaves: list[int], temperature: float = 1.0) -> Batch:
    episodes = policy.leaf_episodes(torch.tensor(leaves), temperature)
    verdicts = [Verdict(float(r := policy.tree.rewards[leaf]), float(r) >= 1) for leaf in leaves]
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(leaves)), tuple(episodes), tuple(verdicts))], torch.float64)
    return make_method(objective="soft_q").value(batch)


def loss(policy: TabularPolicy, batch: Batch, objective: SoftQ) -> torch.Tensor:
    out = policy.forward(batch, objective.live, objective.temperature)
    batch.live = out.live
    return objective(out.logprobs, batch).value


def optimal(tree: Tree, tau: float, discount: float) -> TabularPolicy:
    """Q* by backward induction over the nodes, written without the objective."""
    q = torch.zeros(tree.children.shape, dtype=torch.float64)

    def value(code: int) -> float:
        if code < 0:
            return float(tree.rewards[-1 - code])
        legal = [a for a, c in enumerate(tree.children[code].tolist()) if c]
        for a in legal:
            child = int(tree.children[code, a])
            q[code, a] = value(child) * (1 if child < 0 else discount)
        return tau * float(np.log(sum(np.exp(float(q[code, a]) / tau) for a in legal)))

    value(0)
    return TabularPolicy(tree, q)


@pytest.mark.parametrize(("tau", "discount"), [(1.0, 1.0), (0.3, 1.0), (0.5, 0.9)])
def test_the_fixed_point_is_the_soft_optimal_policy(tau: float, discount: float) -> None:
    """No error at Q*; without discount pi(leaf) is proportional to exp(R / tau)."""
    policy = optimal(TREE, tau, discount)
    leaves = list(range(len(TREE)))
    found = loss(policy, batch_of(policy, leaves, tau), SoftQ(tau, discount))
    assert found.item() == pytest.approx(0, abs=1e-20)
    if discount == 1:
        expected = (TREE.rewards / tau).softmax(-1)
        assert policy.leaf_logprobs(tau).exp().detach().numpy() == pytest.approx(expected.numpy())
    moved = TabularPolicy(TREE, policy.logits.detach() + 0.1)
    assert loss(moved, batch_of(moved, leaves, tau), SoftQ(tau, discount)).item() > 1e-4


def test_the_gradient_by_hand() -> None:
    """One path of two tokens: 2 (Q - target) / 2 on its logits alone; targets are constants."""
    policy = TabularPolicy.random(TREE, 0)
    batch = batch_of(policy, [1])
    loss(policy, batch, SoftQ()).backward()
    z, first = policy.logits.detach(), int(TREE.children[0, 0])
    value = float(z[first, :2].logsumexp(-1))
    expected = torch.zeros_like(z)
    expected[0, 0] = z[0, 0] - value
    expected[first, 1] = z[first, 1] - 1.0
    assert policy.logits.grad is not None
    assert torch.allclose(policy.logits.grad, expected)


@pytest.mark.slow
def test_it_learns() -> None:
    """On-policy from nothing, through the real step: near the soft optimum of every leaf."""
    policy = TabularPolicy(TREE)
    training = Training(60, 1, 64, 0.5, "sgd")
    task = Task("t", "", kind="tabular")
    train(policy, [task], TabularVerifier(TREE), {"objective": "soft_q"}, training, 0)
    expected = TREE.rewards.softmax(-1)
    assert policy.leaf_logprobs().exp().detach().numpy() == pytest.approx(expected.numpy(), abs=0.02)


def test_options_out_of_range() -> None:
    for bad in ({"temperature": 0.0}, {"discount": 1.1}):
        with pytest.raises(UsageError, match="above 0 and discount"):
            SoftQ(**bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs max_length"):
        SoftQ(aggregation="constant")
    with pytest.raises(UsageError, match="reads no advantages"):
        make_method(credit="rloo", objective="soft_q")
