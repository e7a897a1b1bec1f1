"""The lab's world of questions that share parameters: its tree, its exact measures, and what training does to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.lab.settings.bandits.unseen import Setting, Shape
from assay.policies.tabular import TabularPolicy, text_of
from assay.types import Task

SMALL = Setting(
    questions=6, unseen=5, read=40, branching=3, depth=2, right=2, features=6, hidden=12, warmup=40, steps=3
)


@pytest.mark.parametrize(("branching", "depth", "count"), [(2, 1, 3), (3, 2, 4), (4, 3, 5), (2, 3, 2)])
def test_the_forest_is_a_tree_below_each_questions_number(branching: int, depth: int, count: int) -> None:
    correct = np.arange(count * branching**depth, dtype=float).reshape(count, -1)
    tree, paths = Shape(branching, depth).forest(correct)
    assert len(tree) == correct.size and len(set(paths)) == count
    for i, path in enumerate(paths):
        for j, leaf in enumerate(np.ndindex(*[branching] * depth)):
            whole = (*path, *(int(t) for t in leaf))
            assert tree.paths[i * correct.shape[1] + j] == whole
            assert float(tree.rewards[i * correct.shape[1] + j]) == correct[i, j]


def test_probabilities_are_those_of_the_tree() -> None:
    policy, _ = SMALL.world(3)
    # The tree's own enumeration, given each question.
    table = TabularPolicy(policy.tree, policy.logits)
    leaves = table.leaf_logprobs().reshape(policy.correct.shape).softmax(-1).detach().numpy()
    np.testing.assert_allclose(policy.answers(), leaves, atol=1e-12)
    np.testing.assert_allclose(policy.chances(), (leaves * policy.correct).sum(-1), atol=1e-12)


def test_sampled_answers_are_right_as_often_as_is_said() -> None:
    policy, _ = SMALL.world(3)
    engine, verifier = TabularEngine(policy), TabularVerifier(policy.tree)
    task = Task("2", text_of(policy.paths[2]), kind="tabular")
    (episodes,) = engine.generate([Request(task.prompt, 2000, Sampling(), 1)])
    share = np.mean([verifier(task, e.text).passed is True for e in episodes])
    # Five standard errors of 2000 draws: fails by chance about once in a million.
    p = policy.chances()[2]
    assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / 2000)


@pytest.mark.slow
def test_the_policy_knows_the_fields_it_read_right_answers_to() -> None:
    gaps = []
    for seed in range(4):
        policy, known = Setting(read=256, warmup=150).world(seed)
        p = policy.chances()
        gaps.append(p[known].mean() - p[~known].mean())
    assert np.mean(gaps) > 0.03


@pytest.mark.slow
def test_arms_start_alike_and_learning_carries_over_to_unseen_questions() -> None:
    setting = Setting(questions=32, unseen=32, read=128, warmup=80, steps=15, lr=0.01)
    learned = setting.run({"name": "grpo"}, 0, Path())
    again = setting.run({"name": "grpo"}, 0, Path())
    assert learned == again
    assert learned["final"] > learned["start"] + 0.05 and learned["train"] > learned["start"]
    assert learned["rollouts"] == 15 * 64


def test_training_leaves_the_kept_world_alone() -> None:
    first = SMALL.world(1)[0].chances()
    SMALL.run({"name": "grpo"}, 1, Path())
    np.testing.assert_array_equal(first, SMALL.world(1)[0].chances())


def test_hidden_states_are_the_networks() -> None:
    policy, _ = SMALL.world(3)
    assert policy.width == 12
    states = torch.tanh(policy.inputs @ policy.inner.mT)
    node = policy.tree.node(policy.paths[1])
    assert node is not None
    torch.testing.assert_close(policy.logits[node], policy.out @ states[1, 0])


def test_errors() -> None:
    with pytest.raises(UsageError, match="leaves nothing to learn"):
        Setting(right=64)
    with pytest.raises(UsageError, match="of its setting alone"):
        SMALL.run({"name": "grpo", "setting": {"lr": 1.0}}, 0, Path())
