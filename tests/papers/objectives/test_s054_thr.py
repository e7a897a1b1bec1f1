"""THR: the worked example, the first-order change it predicts, its gate, and what it leaves alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.learning.signals import compute_signals
from assay.learning.update import update
from assay.method import make_method
from assay.papers.objectives.s054_thr import HiddenReward, Influence, influence
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models
from assay.types import Ask, Group, Task, Verdict

TOKENS = [[0, 1], [0, 2], [1]]
HIDDEN = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0]]]
CHANCES = [[[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], [[0.5, 0.3, 0.2]]]
RIGHT = [True, False, True]


def padded(rows, inner: int) -> torch.Tensor:
    out = torch.zeros(3, 2, inner, dtype=torch.float64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row, dtype=torch.float64)
    return out


def example() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    mask = torch.tensor([[True, True], [True, True], [True, False]])
    chosen = padded([[[float(v == t) for v in range(3)] for t in row] for row in TOKENS], 3)
    error = torch.where(mask[..., None], chosen - padded(CHANCES, 3), 0)
    return error, padded(HIDDEN, 2), mask, torch.tensor(RIGHT)


def example_batch(make_batch) -> Batch:
    batch = make_batch([2, 2, 1], [1.0, 0.0, 1.0], [0, 0, 0], RIGHT)
    batch.signals["hidden_influence"] = influence(*example())
    return batch


def test_the_worked_example(make_batch):
    found = influence(*example())
    assert found[0].tolist() == pytest.approx([-0.23, 0.19])
    assert (-found[1]).tolist() == pytest.approx([0.23, 0.13])
    assert found[2].tolist() == pytest.approx([0.57, 0.0])
    batch = example_batch(make_batch)
    sharpen, open_up = (HiddenReward(p, threshold=0.2)(batch) for p in (0.1, -0.1))
    want = [[0.5196, 0.0], [-1.2702, 0.0], [0.6351, 0.0]]
    assert np.allclose(sharpen, want, atol=5e-5)
    assert np.allclose(open_up, [[0.6351, 0.0], [-1.0392, 0.0], [0.5196, 0.0]], atol=5e-5)
    assert np.allclose(HiddenReward(0.0, threshold=0.2)(batch), [[0.5774, 0], [-1.1547, 0], [0.5774, 0]], atol=5e-5)


def test_the_default_threshold_is_the_least_mean_influence_of_a_right_response(make_batch):
    """Means (-0.23 + 0.19) / 2 < 0 and 0.57: the least is negative, so the gate is at 0 and every token passes."""
    batch = example_batch(make_batch)
    assert (HiddenReward(0.0)(batch)[batch.mask] != 0).all()
    batch.signals["hidden_influence"][0] = torch.tensor([0.4, 0.2])
    kept = HiddenReward(0.0, beta=1.0)(batch) != 0
    assert kept.tolist() == [[True, False], [False, False], [True, False]], "the bound is (0.4 + 0.2) / 2"
    assert (HiddenReward(0.0, beta=0.5)(batch) != 0).tolist() == [[True, True], [True, False], [True, False]]


def test_it_predicts_how_the_likelihood_of_right_responses_changes():
    """For logits W h: a step along one token's (2R - 1) g h^T changes sum_i mean_t log pi by THR times its size."""
    rng = np.random.default_rng(0)
    size, width, lengths, right = 7, 5, [4, 3, 5, 2], torch.tensor([True, False, True, False])
    weights = torch.tensor(rng.standard_normal((size, width)))
    hidden = torch.tensor(rng.standard_normal((4, 5, width)))
    tokens = torch.tensor(rng.integers(0, size, (4, 5)))
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    hidden = torch.where(mask[..., None], hidden, 0)

    def likelihood(w: torch.Tensor) -> float:
        logp = (hidden @ w.T).log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        means = torch.where(mask, logp, 0).sum(-1) / torch.tensor(lengths)
        return float(means[right].sum())

    error = torch.nn.functional.one_hot(tokens, size) - (hidden @ weights.T).softmax(-1)
    error = torch.where(mask[..., None], error, 0)
    found, step = influence(error, hidden, mask, right), 1e-5
    for j in range(4):
        for k in range(lengths[j]):
            sign = 1 if right[j] else -1
            move = sign * torch.outer(error[j, k], hidden[j, k])
            slope = (likelihood(weights + step * move) - likelihood(weights - step * move)) / (2 * step)
            assert slope == pytest.approx(sign * float(found[j, k]), abs=1e-6)


def tree_batch(policy: TabularPolicy, leaves: list[list[int]], right: list[list[bool | None]]) -> Batch:
    groups = []
    for i, (mine, passed) in enumerate(zip(leaves, right, strict=True)):
        episodes = tuple(policy.leaf_episodes(torch.tensor(mine)))
        verdicts = tuple(Verdict(float(p is True), p) for p in passed)
        groups.append(Group(Ask(Task(str(i), ""), len(mine)), episodes, verdicts))
    return Batch.from_groups(groups, torch.float64)


def test_the_signal_is_the_first_order_change_in_a_tree():
    """Its hidden state is the node, so W is the table of logits, and nothing is missing from the vocabulary."""
    policy = TabularPolicy.random(Tree.uniform(3, 2, [0] * 9), 1)
    leaves, right = [[0, 4, 8, 4]], [[True, False, True, False]]
    batch = tree_batch(policy, leaves, right)
    found = Influence()(batch, Models(policy))

    def likelihood() -> torch.Tensor:
        logp = policy.forward(batch).logprobs
        return logp[0].mean() + logp[2].mean()

    (slope,) = torch.autograd.grad(likelihood(), policy.logits)
    nodes, p = policy.tree.nodes, policy.log_policy().exp().detach()
    for j, leaf in enumerate(leaves[0]):
        for k in range(2):
            node, token = int(nodes[leaf, k]), int(batch.tokens[j, k])
            direction = -p[node]
            direction[token] += 1
            assert float(found[j, k]) == pytest.approx(float((slope[node] * direction).sum()), abs=1e-6)


def test_the_vocabulary_is_that_of_the_group():
    """Tokens that no response of the group contains are dropped: here token 2 at the root and below it."""
    policy = TabularPolicy.random(Tree.uniform(3, 1, [0] * 3), 3)
    batch = tree_batch(policy, [[0, 1]], [[True, False]])
    p = policy.log_policy()[0].exp().detach()
    g = [torch.tensor([1 - p[0], -p[1]]), torch.tensor([-p[0], 1 - p[1]])]
    found = Influence()(batch, Models(policy))[:, 0]
    assert found.tolist() == pytest.approx([float(g[0] @ g[0]), float(g[0] @ g[1])], abs=1e-6)


def test_groups_do_not_mix_and_one_sided_ones_are_left_to_grpo():
    policy = TabularPolicy.random(Tree.uniform(3, 2, [0] * 9), 1)
    both = tree_batch(policy, [[0, 4], [8, 5, 2]], [[True, False], [True, False, None]])
    alone = tree_batch(policy, [[0, 4]], [[True, False]])
    models = Models(policy)
    assert torch.equal(Influence()(both, models)[:2], Influence()(alone, models))
    empty = tree_batch(policy, [[1, 3], [0, 4]], [[True, True], [True, False]])
    empty.mask[:2] = False
    assert torch.equal(Influence()(empty, models)[2:], Influence()(alone, models)), "a group without tokens ends it"
    sided = tree_batch(policy, [[0, 1], [2, 3], [4, 5]], [[True, True], [False, False], [None, False]])
    sided.signals["hidden_influence"] = Influence()(sided, models)
    assert not sided.signals["hidden_influence"][2:].any()
    sided.rewards = torch.tensor([1.0, 0.5, 0.2, 0.4, 0.0, 0.3], dtype=torch.float64)
    assert torch.equal(HiddenReward(0.1)(sided), GRPO()(sided))


def test_the_factor_is_of_the_sign_of_thr_not_of_the_advantage(make_batch):
    """The second response is wrong: influences 0.3 and -0.4 are THR -0.3 and 0.4; the bound 0.25 drops 0.2."""
    batch = make_batch([2, 2], [1.0, 0.0], [0, 0], [True, False])
    batch.signals["hidden_influence"] = torch.tensor([[0.2, -0.3], [0.3, -0.4]], dtype=torch.float64)
    found = HiddenReward(0.5, threshold=0.25)(batch)
    assert found.flatten().tolist() == pytest.approx([0, 0.5 * 0.707107, -0.5 * 0.707107, -1.5 * 0.707107], abs=1e-5)
    assert HiddenReward() == make_method("S054").credit and HiddenReward.group_relative
    batch.signals["hidden_influence"] = torch.tensor([[0.5, -0.1], [0.3, -0.1]], dtype=torch.float64)
    # By default tau is (0.5 - 0.1) / 2 = 0.2 and p 0.1: of the wrong response a THR of -0.3 passes.
    assert HiddenReward()(batch).flatten().tolist() == pytest.approx([1.1 * 0.707107, 0, -0.9 * 0.707107, 0], abs=1e-5)


def test_a_bound_is_of_each_group_and_of_responses_that_count(make_batch):
    """Groups of means 0.2 and 0.4; in the second an empty right response and one left out have no say."""
    passed = [True, False, True, False, True, True]
    batch = make_batch([1, 1, 1, 1, 0, 1], [1.0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 1], passed)
    batch.weights = torch.tensor([1.0] * 5 + [0.0], dtype=torch.float64)
    influence = [[0.2], [-0.3], [0.4], [-0.3], [0.0], [0.0]]
    batch.signals["hidden_influence"] = torch.tensor(influence, dtype=torch.float64)
    kept = HiddenReward(0.0)(batch)[:, 0] != 0
    assert kept.tolist() == [False, True, False, False, False, False]
    assert HiddenReward(0.0).needs == {Influence()}
    # An all-right group beside wrong ones that were left out is no mixed group: GRPO's advantages stay.
    batch.weights[:2] = torch.tensor([1.0, 0.0])
    assert torch.equal(HiddenReward(0.0)(batch)[:2], GRPO()(batch)[:2])


def test_an_update_moves_the_logits_by_the_scaled_advantages():
    """Chances 0.5, 0.3, 0.2; the first arm right, the second wrong: influences 0.34 and -0.46, both THR positive.

    Advantages of -+0.7071 times 1.1, and the mean over two tokens, make dz 0.388909 times the difference of the errors
    (0.5, -0.3, -0.2) and (-0.5, 0.7, -0.2).
    """
    logits = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    policy = TabularPolicy(Tree.uniform(3, 1, [0] * 3), logits.clone())
    batch, method = tree_batch(policy, [[0, 1]], [[True, False]]), make_method("S054", credit={"threshold": 0.2})
    batch.rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    compute_signals(batch, method.needs, Models(policy))
    assert batch.signals["hidden_influence"][:, 0].tolist() == pytest.approx([0.34, -0.46], abs=1e-6)
    method.value(batch)
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
    update(policy, method.objective, batch, optimizer, max_grad_norm=math.inf)
    moved = (policy.logits.detach() - logits)[0].tolist()
    assert moved == pytest.approx([0.388909, -0.388909, 0.0], abs=5e-6)


def test_options():
    method = make_method("S054", credit={"p": -0.2}, objective="gspo_token")
    assert method.credit.p == -0.2 and method.credit.level == "token"
    with pytest.raises(UsageError, match="gspo_token"):
        make_method("S054", objective="gspo")
    for bad in ({"p": 2.0}, {"p": -1.5}, {"beta": -1.0}, {"threshold": -0.1}):
        with pytest.raises(UsageError, match="S054"):
            make_method("S054", credit=bad)
    for edge in ({"p": 1.0}, {"p": -1.0}, {"beta": 0.0}, {"threshold": 0.0}):
        assert make_method("S054", credit=edge).credit.summary["baseline"] == "group mean"
