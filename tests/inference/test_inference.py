"""Strategies at test time, on the tabular policy."""

from __future__ import annotations

import numpy as np

from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.inference.base import Strategy
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.types import Task


def test_one_sample_is_drawn_and_counted() -> None:
    engine = TabularEngine(TabularPolicy.random(Tree.uniform(3, 4), seed=0))
    tasks = [Task(str(i), "") for i in range(50)]
    strategy = build("inference", "sample")
    assert isinstance(strategy, Strategy)
    answers = strategy(tasks, engine, 8, np.random.default_rng(0))
    assert [a.tokens for a in answers] == [4] * 50
    assert len({a.text for a in answers}) > 10
    again = strategy(tasks, engine, 1, np.random.default_rng(0))
    assert [a.text for a in again] == [a.text for a in answers]


def test_temperature_zero_is_greedy() -> None:
    policy = TabularPolicy.random(Tree.uniform(3, 4), seed=0)
    strategy = build("inference", {"name": "sample", "sampling": Sampling(temperature=0.0)})
    answers = strategy([Task(str(i), "") for i in range(5)], TabularEngine(policy), 1, np.random.default_rng(0))
    logits = next(policy.module.parameters())
    node, path = 0, []
    for _ in range(4):
        path.append(int(logits[node].argmax()))
        node = int(policy.tree.children[node, path[-1]])
    assert {a.text for a in answers} == {"/".join(map(str, path))}
