"""RL-PLUS: the mixture's ratio and weight by hand-computed numbers, its bound, and the solutions in the groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.policy_gradient import PolicyGradient
from assay.papers.objectives.s097_rl_plus import MixtureRatio, OwnMean, mixture_ratio
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rollout.demonstration import Demonstration
from assay.types import Ask, Episode, Group, Origin, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def batch_of(origins: list[list[int]], rewards: list[float] | None = None) -> Batch:
    """One group; a row says who wrote each token."""
    episodes = []
    for row in origins:
        zeros = np.zeros(len(row), dtype=np.int64)
        known = None if set(row) == {int(Origin.TEACHER)} else np.zeros(len(row), dtype=np.float32)
        episodes.append(Episode(zeros[:0], zeros, zeros == 0, known, "", "eos", origins=np.array(row, dtype=np.uint8)))
    rewards = rewards or [0.0] * len(origins)
    verdicts = tuple(Verdict(r, r > 0.5) for r in rewards)
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(origins)), tuple(episodes), verdicts)], torch.float64)
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    batch.totals = batch.count()
    return batch


def slope(objective, batch, probabilities):
    logprobs = torch.tensor(probabilities, dtype=torch.float64).log().requires_grad_()
    loss = objective(logprobs, batch)
    (found,) = torch.autograd.grad(loss.value, logprobs)
    return loss, found


def test_the_worked_example():
    batch = batch_of([[1]])
    batch.advantages[:] = 0.8
    batch.signals["policy_logprobs"] = torch.tensor([[0.25]], dtype=torch.float64).log()
    loss, found = slope(MixtureRatio(), batch, [[0.2]])
    assert loss.metrics["solution/ratio"] == pytest.approx(0.457143, abs=1e-6)
    assert loss.value.item() == pytest.approx(-0.327105, abs=1e-6)
    assert found.item() == pytest.approx(-0.327105, abs=1e-6)


@pytest.mark.parametrize(
    ("p", "ratio", "weight"), [(0.01, 0.03883, 0.03864), (0.5, 0.8, 0.56569), (0.95, 0.98701, 0.22070)]
)
def test_ratio_and_weight_before_the_policy_moves(p, ratio, weight):
    batch = batch_of([[1]])
    batch.advantages[:] = 1.0
    batch.signals["policy_logprobs"] = torch.tensor([[p]], dtype=torch.float64).log()
    loss, found = slope(MixtureRatio(), batch, [[p]])
    assert loss.metrics["solution/ratio"] == pytest.approx(ratio, abs=1e-5)
    assert -found.item() == pytest.approx(weight, abs=1e-5)


@given(st.floats(1e-12, 1.0), st.floats(1e-300, 1.0))
def test_the_ratio_is_bounded_where_the_old_policy_all_but_excluded_a_token(p, old):
    r = mixture_ratio(torch.tensor(p, dtype=torch.float64), torch.tensor(old, dtype=torch.float64)).item()
    assert r == pytest.approx(2 * p / (1.5 * old + 0.5)) and r <= 4 * p * (1 + 1e-9)


def test_own_tokens_are_neither_clipped_nor_focused():
    batch = batch_of([[0, 0]])
    batch.advantages[:] = torch.tensor([[1.0, -1.0]])
    batch.logprobs = torch.tensor([[0.1, 0.9]], dtype=torch.float64).log()
    batch.signals["policy_logprobs"] = batch.logprobs.clone()
    loss, found = slope(MixtureRatio(), batch, [[0.9, 0.1]])
    assert loss.value.item() == pytest.approx((-9 + 1 / 9) / 2)
    assert found[0].tolist() == pytest.approx([-9 / 2, 1 / 18])


def test_a_certain_token_of_a_solution_has_no_pull_and_no_nan():
    batch = batch_of([[1]])
    batch.advantages[:] = 1.0
    for old in (1.0, 1e-300):
        batch.signals["policy_logprobs"] = torch.tensor([[old]], dtype=torch.float64).log()
        _, found = slope(MixtureRatio(), batch, [[1.0]])
        assert found.item() == 0
    batch.signals["policy_logprobs"] = torch.tensor([[-math.inf]], dtype=torch.float64)
    assert math.isfinite(slope(MixtureRatio(), batch, [[0.5]])[0].value.item())


def test_without_solutions_it_is_unclipped_grpo_without_deviation():
    method = make_method("S097", objective={"entropy_weight": 0.0, "max_length": 7})
    policy = TabularPolicy.random(Tree.of([1.0, [0.0, 1.0], [0.0, 0.0]]), seed=0)
    episodes = policy.leaf_episodes(torch.tensor([0, 1, 2, 3]))
    verdicts = tuple(Verdict(r, r > 0.5) for r in (1.0, 0.0, 1.0, 0.0))
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 4), tuple(episodes), verdicts)], torch.float64)
    batch.logprobs = policy.forward(batch).logprobs.detach()
    batch.signals["policy_logprobs"] = batch.logprobs.clone()
    method.value(batch)
    assert torch.equal(batch.advantages, GRPO(normalise=False)(batch))
    (found,) = torch.autograd.grad(method.objective(policy.forward(batch).logprobs, batch).value, policy.logits)
    plain = PolicyGradient(aggregation="constant", max_length=7)
    (want,) = torch.autograd.grad(plain(policy.forward(batch).logprobs, batch).value, policy.logits)
    np.testing.assert_allclose(found.numpy(), want.numpy(), atol=1e-12)


def test_baselines():
    batch = batch_of([[0], [0], [0], [1]], [0.0, 0.0, 1.0, 1.0])
    assert GRPO(normalise=False)(batch)[:, 0].tolist() == pytest.approx([-0.5, -0.5, 0.5, 0.5])
    assert OwnMean()(batch)[:, 0].tolist() == pytest.approx([-1 / 3, -1 / 3, 2 / 3, 2 / 3])
    assert OwnMean()(batch_of([[1], [1]], [1.0, 0.0]))[:, 0].tolist() == [1.0, 0.0]
    # What a teacher goes on with is the policy's own response still.
    begun = batch_of([[0, 1], [0, 0], [1, 1]], [0.0, 1.0, 1.0])
    assert OwnMean()(begun)[:, 0].tolist() == [-0.5, 0.5, 0.5]


def test_without_a_single_token_nothing_is_a_teachers():
    assert OwnMean()(batch_of([[], []], [1.0, 0.0])).shape == (2, 0)
    assert OwnMean().group_relative, "siblings are its baseline"


def test_metrics_are_of_the_solutions_tokens_alone():
    """Own probabilities of 0.5 and 0.1 beside a solution's 0.2, which was 0.25: r = 0.4 / (0.25 + 0.625)."""
    batch = batch_of([[0, 0], [1]])
    batch.signals["policy_logprobs"] = torch.tensor([[0.5, 0.1], [0.25, 1.0]], dtype=torch.float64).log()
    metrics = slope(MixtureRatio(), batch, [[0.5, 0.1], [0.2, 1.0]])[0].metrics
    assert metrics["solution/tokens"] == pytest.approx(1 / 3)
    assert metrics["solution/ratio"] == pytest.approx(0.4 / 0.875)
    assert metrics["solution/probability"] == pytest.approx(0.2)
    own = batch_of([[0, 0]])
    own.signals["policy_logprobs"] = torch.full((1, 2), -1.0, dtype=torch.float64)
    assert not {"solution/ratio", "solution/probability"} & slope(MixtureRatio(), own, [[0.5, 0.1]])[0].metrics.keys()


@pytest.mark.slow
def test_in_training_a_solution_is_learned_that_own_responses_never_reach():
    """One of 64 leaves is right, of chance 4e-7; a group of own responses has no reward, with the solution it has."""
    tree = Tree.uniform(4, 3, [0.0] * 63 + [1.0])
    found = {}
    for name in ("S097", "grpo"):
        policy = TabularPolicy(tree)
        with torch.no_grad():
            policy.logits[:, 3] = -3.8
        options = {"max_length": 3} if name == "S097" else {}
        method = make_method(name, objective={**options, "entropy_weight": 0.0})
        engine, rng = TabularEngine(policy), np.random.default_rng(0)
        rollout = build("rollout", method.rollout, sampling=Sampling(4), judge=None)
        for _ in range(60):
            groups = rollout.collect([Ask(Task("t", "", solution="3/3/3"), 8)], engine, rng)
            verdicts = tuple(Verdict(float(e.text == "3/3/3"), e.text == "3/3/3") for e in groups[0].episodes)
            batch = Batch.from_groups([groups[0].judged(verdicts)], torch.float64)
            batch.signals["policy_logprobs"] = policy.forward(batch).logprobs.detach()
            method.value(batch)
            (down,) = torch.autograd.grad(method.objective(policy.forward(batch).logprobs, batch).value, policy.logits)
            with torch.no_grad():
                policy.logits -= 20.0 * down
        found[name] = float(policy.leaf_logprobs()[-1].detach().exp())
    assert found["grpo"] < 1e-5 and found["S097"] > 0.9


def rolled(asks, max_tokens=8):
    policy = TabularPolicy(Tree.of([0.0, [1.0, 0.0]]))
    return Demonstration(Sampling(max_tokens)).collect(asks, TabularEngine(policy), np.random.default_rng(0)), policy


def test_the_solution_takes_the_place_of_one_response():
    (with_one, without), policy = rolled(
        [Ask(Task("a", "", solution="1/0"), 4), Ask(Task("b", ""), 4)],
    )
    assert len(with_one.episodes) == len(without.episodes) == 4
    shown = with_one.episodes[-1]
    assert shown.text == "1/0" and shown.logprobs is None and (shown.origins == Origin.TEACHER).all()
    assert shown.mask.all() and shown.tokens.tolist() == [1, 0]
    assert all(e.origins is None and e.logprobs is not None for e in (*with_one.episodes[:-1], *without.episodes))
    batch = Batch.from_groups([with_one], torch.float64)
    # Both log-probabilities, not one: the solution is read by the policy that learns from it.
    assert policy.forward(batch).logprobs[-1, :2].tolist() == pytest.approx([math.log(0.5)] * 2)


def test_a_solution_that_does_not_fit_or_a_lone_response_is_sampled():
    (long, lone), _ = rolled([Ask(Task("a", "", solution="1/0"), 3), Ask(Task("b", "", solution="0"), 1)], 1)
    assert len(long.episodes) == 3 and len(lone.episodes) == 1
    assert all(e.origins is None for e in (*long.episodes, *lone.episodes))


def test_defaults():
    """Those of the authors' script: focus 0.5, entropy 0.001, 8192 tokens, the whole group's mean, no deviation."""
    for objective in (make_method("S097").objective, catalogue.make("S097").objective):
        assert (objective.focus, objective.entropy_weight, objective.max_length) == (0.5, 1e-3, 8192)
        assert not objective.kl_weight and objective.aggregation == "constant"
    assert catalogue.make("S097").credit == GRPO(normalise=False)
    assert catalogue.make("S097", own_baseline=True).credit == OwnMean()
    assert catalogue.make("S097", teacher="tabular").rollout == {"name": "taught", "teacher": "tabular"}


def test_options():
    assert make_method("S097", objective={"focus": 0.0}).objective.focus == 0
    method = make_method("S097")
    assert method.rollout == "demonstration" and method.objective.aggregation == "constant"
    assert "policy_logprobs" in method.needs and "entropy" in method.live
    with pytest.raises(UsageError, match="negative"):
        make_method("S097", objective={"focus": -1.0})
