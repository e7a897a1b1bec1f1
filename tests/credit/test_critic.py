"""The learned critic: its loss by hand, its values against the exact ones of a tree, its place in a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics, recipe, run

import assay
from assay.batch import Batch
from assay.credit.gae import GAE
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import RunError, UsageError
from assay.learning.signals import compute_signals
from assay.method import Method, make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models
from assay.signals.critic import Critic
from assay.types import Ask, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")

TASK = Task("tree", "")


def test_the_clipped_loss_by_hand() -> None:
    """V = [.5, 1], old = [.4, .5], returns = [1, 0], clip .2: errors max(.25, .25) and max(1, .49); half their mean."""
    policy = TabularPolicy(Tree.uniform(2, 2))
    batch = Batch.from_groups([Group(Ask(TASK, 1), tuple(policy.leaf_episodes(torch.tensor([0]))))], torch.float64)
    batch.signals |= {
        "values": torch.tensor([[0.4, 0.5]], dtype=torch.float64),
        "returns": torch.tensor([[1.0, 0.0]], dtype=torch.float64),
    }
    values = torch.tensor([[0.5, 1.0]], dtype=torch.float64)
    assert Critic(clip=0.2).loss(values, batch).item() == pytest.approx((0.25 + 1.0) / 4)
    # Moving from .4 to .9 counts as a move to .6 only: (.6 - 1)^2 > (.9 - 1)^2.
    values = torch.tensor([[0.9, 0.5]], dtype=torch.float64)
    assert Critic(clip=0.2).loss(values, batch).item() == pytest.approx((0.16 + 0.25) / 4)
    assert Critic(clip=0).loss(values, batch).item() == pytest.approx((0.01 + 0.25) / 4)


def exact_values(policy: TabularPolicy) -> list[float]:
    probability, children = policy.log_policy().exp().detach(), policy.tree.children

    def value(node: int) -> float:
        found = 0.0
        for p, child in zip(probability[node].tolist(), children[node].tolist(), strict=True):
            if child:
                found += p * (float(policy.tree.rewards[-1 - child]) if child < 0 else value(child))
        return found

    return [value(k) for k in range(len(children))]


@pytest.mark.slow
@pytest.mark.parametrize("trunk", ["policy", "own"])
def test_it_learns_the_values_of_a_fixed_policy(trunk: str) -> None:
    """With the policy left as it is, V at every node comes within 0.06 of the exact value (seed fixed)."""
    policy = TabularPolicy.random(Tree.of([[1.0, 0.0], [0.25, [0.5, 0.0]]]), seed=3)
    engine, verifier = TabularEngine(policy), TabularVerifier(policy.tree)
    critic = Critic(trunk, lr=0.05, clip=0)  # type: ignore[arg-type]
    credit = GAE(decay=1.0, critic=critic)
    method, models = Method(credit=credit), Models(policy)
    critic.start(models)
    assert method.learners == [critic]
    before = policy.logits.detach().clone()
    for step in range(300):
        [episodes] = engine.generate([Request("", 64, Sampling(8), step)])
        group = Group(Ask(TASK, 64), tuple(episodes)).judged([verifier(TASK, e.text) for e in episodes])
        batch = Batch.from_groups([group], torch.float64)
        compute_signals(batch, method.needs, models)
        method.value(batch)
        found = critic.learn(batch, models)
    assert torch.equal(policy.logits, before)
    assert found["critic/explained"] > 0
    nodes = policy.tree.nodes
    inside = torch.arange(nodes.shape[1]) < policy.tree.lengths[:, None]
    whole = Batch.from_groups(
        [Group(Ask(TASK, len(nodes)), tuple(policy.leaf_episodes(torch.arange(len(policy.tree)))))], torch.float64
    )
    learned = critic(whole, models)[inside].tolist()
    np.testing.assert_allclose(learned, [exact_values(policy)[n] for n in nodes[inside].tolist()], atol=0.06)


@pytest.mark.slow
def test_a_run_with_a_critic_resumes_bit_for_bit(tmp_path: Path) -> None:
    method = {"credit": {"name": "gae", "critic": {"name": "critic", "trunk": "own", "lr": 1e-3}}}
    whole = run(tmp_path / "whole", method={**recipe("")["method"], **method})
    rows = [row for row in metrics(whole) if row["stage"] == "rl"]
    assert all("critic/loss" in row for row in rows)
    part = tmp_path / "part"
    shorter = recipe(part, method={**recipe("")["method"], **method})
    shorter["train"] = {**shorter["train"], "steps": 2}
    assay.train(shorter, quiet=True)
    assay.train(resume=part, overrides=["train.steps=4"], quiet=True)
    again = [row for row in metrics(part) if row["stage"] == "rl"]
    assert [r["critic/loss"] for r in again] == [r["critic/loss"] for r in rows]


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(UsageError, match="clip >= 0"):
        Critic(clip=-1)
    policy = TabularPolicy(Tree.uniform(2, 1))
    critic, models = Critic(), Models(policy)
    critic.start(models)
    batch = Batch.from_groups([Group(Ask(TASK, 1), tuple(policy.leaf_episodes(torch.tensor([0]))))], torch.float64)
    with pytest.raises(RunError, match="use a credit that leaves returns"):
        critic.learn(batch, models)
    with pytest.raises(UsageError, match="each token its own advantage"):
        make_method("grpo", credit="gae", objective="gspo")
    with pytest.raises(UsageError, match="reads no advantages"):
        make_method("grpo", credit="rloo", objective="dpo")
    assert make_method("grpo", objective="dpo").credit is not None
    assert make_method("grpo", credit="remax").rollout == "greedy_baseline"
    assert make_method("grpo", credit="remax", rollout="single_turn").rollout == "single_turn"
