"""BroRL: the mass balance by finite differences and by simulation, budgets of rollouts, gradients in pieces."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from choices import RIGHT, WRONG, Choices, response
from hypothesis import given
from hypothesis import strategies as st

from assay import catalogue
from assay.batch import Batch
from assay.curriculum.uniform import Uniform
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.learning.update import update
from assay.method import make_method
from assay.papers.objectives.s064_brorl import Broad, covered_mass, mass_balance
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.types import Ask, Group, Task
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")


def member(k: int, *indices: int) -> torch.Tensor:
    out = torch.zeros(k, dtype=torch.bool)
    out[list(indices)] = True
    return out


def test_the_worked_example() -> None:
    p = torch.tensor([0.3, 0.2, 0.1, 0.25, 0.15], dtype=torch.float64)
    found = mass_balance(p, member(5, 0, 1), member(5, 0, 2, 4))
    # A2 = 0.09, B2 = 0.0325, U2+ = 0.04, U2- = 0.0625, SR = 0.05, Q+ = Q- = 0.5.
    assert found.right == pytest.approx(0.95 * 0.5 * 0.09)
    assert found.wrong == pytest.approx(1.05 * 0.5 * 0.0325)
    assert found.unsampled == pytest.approx(0.05 * (0.5 * 0.0625 - 0.5 * 0.04))
    assert found.total == pytest.approx(0.060375)
    with pytest.raises(UsageError, match="reward >= 0 >= penalty"):
        mass_balance(p, member(5, 0), member(5, 0), reward=-1.0)


@given(st.integers(0, 2**31), st.integers(2, 12))
def test_it_is_the_change_of_the_right_mass_along_the_gradient(seed: int, k: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(k, generator=generator, dtype=torch.float64).requires_grad_()
    correct, sampled = torch.rand(2, k, generator=generator) < 0.5
    reward, penalty = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
    p = z.softmax(-1)
    values = torch.where(correct, torch.full_like(p, reward), -penalty) * sampled
    [step] = torch.autograd.grad((values * p).sum(), z, retain_graph=True)
    [slope] = torch.autograd.grad(p[correct].sum(), z) if correct.any() else [torch.zeros_like(z)]
    found = mass_balance(p.detach(), correct, sampled, reward, -penalty)
    assert found.total == pytest.approx(float(slope @ step), abs=1e-12)
    assert found.right >= 0 and found.wrong >= 0
    assert sampled.all().item() is False or found.unsampled == 0


def shrinking(n: int, runs: int) -> float:
    """Share of runs in which one step on n responses, 8 of 64 answers being right, lowers the right mass."""
    start = 2 * np.random.default_rng([0, n]).standard_normal((runs, 64))
    answers = Choices(torch.from_numpy(start), [response()] * 64, seed=n)
    before = answers.chances[:, :8].sum(-1)
    # Advantages of 1 and -1, as in the analysis.
    method = make_method("S064", credit="S074", select="all")
    answers.step(method, method.value(answers.batch(n, lambda _, k: RIGHT if k < 8 else WRONG)), 2.0)
    return float((answers.chances[:, :8].sum(-1) < before).double().mean())


class Names:
    """A stream of numbered tasks."""

    def __init__(self) -> None:
        self.given = 0

    def next(self, n: int) -> list[Task]:
        self.given += n
        return [Task(str(i), "") for i in range(self.given - n, self.given)]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 600))
def test_the_budget_of_a_step_is_kept(prompts: int, group: int, rollouts: int) -> None:
    asks = Broad(Names(), prompts, group, rollouts).next(0)
    plain = Uniform(Names(), prompts, group).next(0)
    sizes = [a.n for a in asks]
    assert sum(sizes) == sum(a.n for a in plain) and max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(rollouts, prompts * group)
    assert max(sizes) < 2 * rollouts + 1
    grown = Broad(Names(), prompts, group, rollouts, "grow").next(0)
    assert [a.n for a in grown] == [rollouts] * prompts
    with pytest.raises(UsageError, match="rollouts = 0"):
        Broad(Names(), prompts, group, 0)


def bandit() -> TabularPolicy:
    return TabularPolicy.random(Tree.bandit(6, [1, 0, 0, 1, 0, 0]), seed=0)


def sampled(policy: TabularPolicy, n: int) -> Group:
    [episodes] = TabularEngine(policy).generate([Request("", n, Sampling(1), 0)])
    [group] = judge_groups(TabularVerifier(policy.tree), [Group(Ask(Task("t", ""), n), tuple(episodes))])
    return group


def test_the_mass_that_responses_cover() -> None:
    policy = bandit()
    p = policy.leaf_logprobs().exp().tolist()
    for n in (1, 3, 500):
        group = sampled(policy, n)
        seen = {int(e.tokens[0]) for e in group.episodes}
        assert covered_mass(group) == pytest.approx(sum(p[i] for i in seen), abs=1e-6)
    assert covered_mass(sampled(policy, 500)) == pytest.approx(1, abs=1e-5)
    catalogue.find("S064")
    judge = partial(judge_groups, TabularVerifier(policy.tree))
    inner = {"name": "dynamic", "rounds": 1}
    rollout = build("rollout", {"name": "broad", "inner": inner}, sampling=Sampling(1), judge=judge)
    [group] = rollout.collect([Ask(Task("t", ""), 64)], TabularEngine(policy), np.random.default_rng(0))
    assert rollout.metrics() == {
        "dynamic/rounds": 1,
        "dynamic/kept": 1.0,
        "broad/covered": pytest.approx(covered_mass(group)),
    }


def test_the_recipe_that_it_extends() -> None:
    """Clip range [0.8, 1.28], groups of equal rewards replaced; 512 responses within the budget of a step."""
    method = make_method("S064")
    assert (method.objective.clip_low, method.objective.clip_high) == (0.2, 0.28)
    assert method.curriculum == {"name": "broad", "rollouts": 512, "budget": "keep"}
    assert method.rollout == {"name": "broad", "inner": {"name": "dynamic", "rounds": 10}}
    plain = Broad(Names(), 64, 16)
    assert [a.n for a in plain.next(0)] == [512, 512] and plain.state_dict() == {}
    assert [a.n for a in Broad(Names(), 3, 5, 4).next(0)] == [5, 5, 5]
    assert [a.n for a in Broad(Names(), 1, 17, 8).next(0)] == [9, 8] and Broad(Names(), 2, 1, 1).next(0)[0].n == 1
    policy = TabularPolicy(Tree.bandit(2, [1, 0]))
    made = [sampled(policy, 6), sampled(policy, 1)]
    batch = method.value(Batch.from_groups(made, torch.float64))
    assert {v.passed for v in made[0].verdicts} == {True, False}
    assert batch.active.tolist() == [True] * 6 + [False], "one response is all right or all wrong"


def test_advantages_are_normalised_over_the_batch(make_batch) -> None:
    """Deviations from the prompts' means of 3/4, 1/4, 1/4, 1/4 and four of 1/2: a variance of 1/4 over the batch."""
    batch = make_batch([1] * 8, rewards=[1, 0, 0, 0, 1, 1, 0, 0], groups=[0] * 4 + [1] * 4)
    found = make_method("S064").credit(batch)[:, 0].tolist()
    assert found == pytest.approx([1.5, -0.5, -0.5, -0.5, 1, 1, -1, -1], abs=1e-6)


def test_a_step_along_512_responses_is_the_exact_gradients() -> None:
    """Two arms of chance 1/2: each response adds A (e - p), so dz = p (1 - p) / std R times the gap of the shares."""
    policy, method = TabularPolicy(Tree.bandit(2, [1, 0])), make_method("S064")
    group = sampled(policy, 512)
    batch = method.value(Batch.from_groups([group], torch.float64))
    share = np.mean([v.score for v in group.verdicts])
    spread = np.std([v.score for v in group.verdicts], ddof=1)
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
    update(policy, method.objective, batch, optimizer, max_grad_norm=float("inf"))
    want = share * (1 - share) / spread
    assert policy.logits.detach()[0].tolist() == pytest.approx([want, -want], abs=1e-5)


def test_mass_that_is_not_known_is_not_told() -> None:
    policy = bandit()
    group = sampled(policy, 3)
    for logprobs in (None, np.array([np.nan], dtype=np.float32)):
        unknown = replace(group.episodes[0], logprobs=logprobs)
        assert covered_mass(replace(group, episodes=(unknown, *group.episodes[1:]))) is None

    class Silent:
        def collect(self, asks, engine, rng):
            return [replace(group, episodes=(unknown, *group.episodes[1:]))]

    rollout = build("rollout", {"name": "broad", "inner": Silent()}, sampling=Sampling(1))
    assert len(rollout.collect([], TabularEngine(policy), np.random.default_rng(0))) == 1
    assert rollout.metrics() == {}
    assert [f.name for f in fields(rollout) if not f.init] == ["_inner", "_metrics"]
    assert type(build("rollout", "broad", sampling=Sampling(1), judge=list)._inner).__name__ == "Dynamic"


def test_rewards_of_nothing_and_of_either_sign() -> None:
    """The bounds of the balance: rewards of 0 move nothing, and a reward below 0 or a penalty above it is refused."""
    p = torch.tensor([0.5, 0.5], dtype=torch.float64)
    assert mass_balance(p, member(2, 0), member(2, 0), 0.0, 0.0).total == 0
    with pytest.raises(UsageError, match=r"not 1 and 0\.5"):
        mass_balance(p, member(2, 0), member(2, 0), penalty=0.5)


def test_the_more_are_sampled_the_less_often_the_right_mass_shrinks() -> None:
    """Over so many runs a fresh seed is off by 0.08 less than once in ten thousand times."""
    got = [shrinking(n, runs) for n, runs in ((1, 600), (4, 600), (16, 600), (64, 300))]
    assert got == pytest.approx([0.445, 0.228, 0.083, 0.038], abs=0.08)
    assert all(a > b for a, b in pairwise(got))


def test_the_gradient_of_512_is_that_of_32_passes_of_16() -> None:
    """Advantages are over all responses of a prompt, however the pass over them is split."""
    found = []
    for budget in (10**6, 16):
        policy, method = bandit(), make_method("S064")
        batch = method.value(Batch.from_groups([sampled(policy, 512)], torch.float64))
        assert len(policy.micro_batches(batch, budget)) == (1 if budget > 16 else 32)
        rewards = batch.rewards
        assert torch.allclose(batch.advantages[:, 0], (rewards - rewards.mean()) / (rewards.std() + 1e-6))
        optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
        update(policy, method.objective, batch, optimizer, token_budget=budget, max_grad_norm=float("inf"))
        found.append(policy.logits.detach().clone())
    assert torch.allclose(*found, atol=1e-12) and not torch.equal(found[0], bandit().logits)
