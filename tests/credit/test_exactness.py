"""The default method against exact gradients: enumerated over all groups, in closed form, and sampled.

The gradient of the loss at the policy that sampled (rho = 1), in expectation over groups of G responses, is

- with ``normalise=False`` and ``sequence_sum``: -(G - 1) / G grad J, the baseline being the mean that includes oneself;
- with ``normalise=True``, ``sequence_sum`` and rewards in {0, 1}: -(a1 - a0) grad J, with a_r the mean advantage of a
  response of reward r over Binomial(G - 1, J) right siblings;
- with the defaults (``token_mean``): no simple multiple of grad J; it is enumerated here in plain NumPy.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.method import Method, make_method
from assay.objectives.clip import ClippedSurrogate
from assay.policies.tabular import TabularPolicy, Tree, enumerate_groups
from assay.rollout.single_turn import SingleTurn
from assay.types import Ask, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")

TASK = Task("tree", "", kind="tabular")
TREES = {
    "bandit": [1.0, 0.0, 0.0, 0.5],
    "chain": [0.0, [0.0, [0.0, 1.0]]],
    "ragged": [0.0, [1.0, 0.0], [[1.0], [0.0, 0.75]]],
}
BINARY = [0.0, [1.0, 0.0], [[1.0], [0.0, 1.0, 0.0]]]


def judge(policy: TabularPolicy, groups: list[Group]) -> Batch:
    """Return a judged float64 batch whose behaviour log-probabilities are the policy's to the last bit: rho = 1."""
    verifier = TabularVerifier(policy.tree)
    judged = [g.judged([verifier(g.task, e.text) for e in g.episodes]) for g in groups]
    batch = Batch.from_groups(judged, dtype=torch.float64)
    batch.logprobs = policy.forward(batch).logprobs.detach()
    return batch


def expected_gradient(policy: TabularPolicy, method: Method, size: int) -> np.ndarray:
    """Expectation over all groups of the gradient of each group's own loss, the groups judged and valued together."""
    leaves, probability = enumerate_groups(policy, size)
    episodes = policy.leaf_episodes(leaves.flatten())
    groups = [Group(Ask(TASK, size), tuple(episodes[i : i + size])) for i in range(0, len(episodes), size)]
    batch = method.value(judge(policy, groups))
    logprobs = policy.forward(batch).logprobs
    total = torch.zeros((), dtype=torch.float64)
    for i, weight in enumerate(probability.detach()):
        index = torch.arange(i * size, (i + 1) * size)
        own = batch.rows(index)
        own.totals = None
        total = total + weight * method.objective(logprobs[index][:, : own.mask.shape[1]], own).value
    (gradient,) = torch.autograd.grad(total, policy.logits)
    return gradient.numpy()


def unnormalised() -> Method:
    return Method(credit=GRPO(normalise=False), objective=ClippedSurrogate(aggregation="sequence_sum"))


# The oracle, in plain NumPy


def numpy_leaves(nested: list, logits: np.ndarray) -> list[tuple[float, float, int, np.ndarray]]:
    """Probability, reward, length and score function (gradient of the log-probability) of each leaf, by recursion."""
    count = 0
    leaves = []

    def visit(item, probability: float, length: int, score: np.ndarray) -> None:
        nonlocal count
        if not isinstance(item, list):
            leaves.append((probability, item, length, score))
            return
        node, count = count, count + 1
        pi = np.exp(logits[node, : len(item)]) / np.exp(logits[node, : len(item)]).sum()
        for a, child in enumerate(item):
            below = score.copy()
            below[node, : len(item)] -= pi
            below[node, a] += 1
            visit(child, probability * pi[a], length + 1, below)

    visit(nested, 1.0, 0, np.zeros_like(logits))
    return leaves


def numpy_grpo_gradient(nested: list, logits: np.ndarray, size: int, aggregation: str, ddof: int) -> np.ndarray:
    """Expected gradient of the GRPO loss over all groups."""
    leaves = numpy_leaves(nested, logits)
    gradient = np.zeros_like(logits)
    for group in product(leaves, repeat=size):
        probabilities, rewards, lengths, scores = zip(*group, strict=True)
        advantages = (np.array(rewards) - np.mean(rewards)) / (np.std(rewards, ddof=ddof) + 1e-6)
        weights = {
            "token_mean": np.ones(size) / sum(lengths),
            "sequence_mean": 1 / (size * np.array(lengths)),
            "sequence_sum": np.ones(size) / size,
            "constant": np.ones(size) / (size * 10),
        }[aggregation]
        gradient -= np.prod(probabilities) * np.tensordot(weights * advantages, np.stack(scores), 1)
    return gradient


# Expectations over all groups


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", TREES)
def test_without_normalisation_it_is_the_policy_gradient(name, size):
    policy = TabularPolicy.random(Tree.of(TREES[name]), seed=size)
    expected = -(size - 1) / size * policy.exact_gradient().numpy()
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(expected_gradient(policy, unnormalised(), size), expected, atol=1e-12)


@pytest.mark.parametrize("ddof", [pytest.param(0, marks=pytest.mark.slow), 1])
@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "sequence_sum", "constant"])
@pytest.mark.parametrize("name", TREES)
def test_with_normalisation_it_is_what_numpy_enumerates(name, aggregation, ddof):
    policy = TabularPolicy.random(Tree.of(TREES[name]), seed=1)
    method = Method(credit=GRPO(ddof=ddof), objective=ClippedSurrogate(aggregation=aggregation, max_length=10))
    expected = numpy_grpo_gradient(TREES[name], policy.logits.detach().numpy(), 3, aggregation, ddof)
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(expected_gradient(policy, method, 3), expected, atol=1e-12)


@pytest.mark.slow
def test_the_default_method_is_what_numpy_enumerates():
    policy = TabularPolicy.random(Tree.of(TREES["chain"]), seed=4)
    expected = numpy_grpo_gradient(TREES["chain"], policy.logits.detach().numpy(), 4, "token_mean", 1)
    np.testing.assert_allclose(expected_gradient(policy, make_method(), 4), expected, atol=1e-12)


def slope(p: float, size: int, ddof: int = 1) -> float:
    """a1 - a0: mean advantage of a right response less that of a wrong one, the siblings right with probability p."""

    def advantage(reward: int, right: int) -> float:
        rewards = np.array([1.0] * right + [0.0] * (size - right))
        return (reward - rewards.mean()) / (rewards.std(ddof=ddof) + 1e-6)

    siblings = stats.binom(size - 1, p)
    return sum(siblings.pmf(k) * (advantage(1, k + 1) - advantage(0, k)) for k in range(size))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_with_binary_rewards_it_is_the_policy_gradient_times_a_slope(size):
    nested = [0.0, [1.0, 0.0], [1.0, [0.0]]]
    policy = TabularPolicy.random(Tree.of(nested), seed=2)
    method = Method(objective=ClippedSurrogate(aggregation="sequence_sum"))
    expected = -slope(policy.expected_reward().item(), size) * policy.exact_gradient().numpy()
    np.testing.assert_allclose(expected_gradient(policy, method, size), expected, atol=1e-12)


@pytest.mark.slow
def test_small_steps_along_the_expected_gradient_always_improve():
    policy = TabularPolicy.random(Tree.of([0.0, [0.0, 1.0], [0.0, 0.0]]), seed=3)
    method = Method(objective=ClippedSurrogate(aggregation="sequence_sum"))
    values = [policy.expected_reward().item()]
    for _ in range(30):
        gradient = torch.from_numpy(expected_gradient(policy, method, 2))
        with torch.no_grad():
            policy.logits -= 0.5 * gradient
        values.append(policy.expected_reward().item())
    assert np.all(np.diff(values) > 0)
    assert values[-1] > values[0] + 0.1


# Sampled


def decisions(policy: TabularPolicy) -> torch.Tensor:
    """Logits of nodes with a choice; the gradient of an only child is zero, sampled or not."""
    there = policy.tree.children != 0
    return there & (there.sum(-1, keepdim=True) > 1)


def sampled_gradients(policy: TabularPolicy, method: Method, batches: int, groups: int, size: int) -> np.ndarray:
    """Return ``(batches, parameters)`` gradients of batches drawn by the engine, over the logits of real decisions."""
    rollout, engine, rng = SingleTurn(Sampling(max_tokens=8)), TabularEngine(policy), np.random.default_rng(0)
    drawn = []
    for _ in range(batches):
        batch = method.value(judge(policy, rollout.collect([Ask(TASK, size)] * groups, engine, rng)))
        loss = method.objective(policy.forward(batch).logprobs, batch)
        (gradient,) = torch.autograd.grad(loss.value, policy.logits)
        drawn.append(gradient[decisions(policy)].numpy())
    return np.stack(drawn)


def least_p_value(drawn: np.ndarray, expected: np.ndarray) -> float:
    """Two-sided t-test of every coordinate's mean, Bonferroni-corrected."""
    return float(stats.ttest_1samp(drawn, expected).pvalue.min() * drawn.shape[1])


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [False, True])
def test_the_sampled_gradient_agrees_with_the_exact_one(normalise):
    """100 batches of 25 groups of 4: a right implementation fails with probability 1e-3 for a fresh seed (it is fixed).

    The Monte-Carlo error of each coordinate is below 5 % of the gradient's norm, so the test refuses even a factor
    of G / (G - 1).
    """
    policy, size = TabularPolicy.random(Tree.of(BINARY), seed=5), 4
    method = Method(credit=GRPO(normalise=normalise), objective=ClippedSurrogate(aggregation="sequence_sum"))
    factor = slope(policy.expected_reward().item(), size) if normalise else (size - 1) / size
    exact = -policy.exact_gradient()[decisions(policy)].numpy()
    drawn = sampled_gradients(policy, method, 100, 25, size)
    assert (drawn.std(0, ddof=1) / np.sqrt(len(drawn))).max() < 0.05 * np.linalg.norm(factor * exact)
    assert least_p_value(drawn, factor * exact) > 1e-3
    assert least_p_value(drawn, factor * exact * size / (size - 1)) < 1e-3
    assert least_p_value(drawn, -factor * exact) < 1e-3


@pytest.mark.parametrize("name", TREES)
def test_the_default_method_learns(name):
    """80 steps of 8 groups of 8: from the uniform policy to within reach of the best leaf, with nothing but samples."""
    policy, method = TabularPolicy(Tree.of(TREES[name])), make_method()
    rollout, engine, rng = SingleTurn(Sampling(max_tokens=8)), TabularEngine(policy), np.random.default_rng(1)
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=0.5)
    values = [policy.expected_reward().item()]
    for _ in range(80):
        batch = method.value(judge(policy, rollout.collect([Ask(TASK, 8)] * 8, engine, rng)))
        optimizer.zero_grad()
        method.objective(policy.forward(batch).logprobs, batch).value.backward()
        optimizer.step()
        values.append(policy.expected_reward().item())
    assert values[0] < 0.5
    assert values[-1] > 0.9
    assert np.mean(np.diff(values) >= 0) > 0.9
