"""Positive and negative sample reinforcement: what a step does to a softmax, what is kept, and the equalities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.catalogue import make
from assay.credit.reinforce import Reinforce
from assay.errors import UsageError
from assay.learning.update import update
from assay.method import Method
from assay.papers.objectives.s074_nsr import SignedVerdict
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Episode, Group, Task, Verdict

P = [0.5, 0.3, 0.15, 0.05]


def bandit() -> TabularPolicy:
    return TabularPolicy(Tree.bandit(4), torch.tensor([[math.log(p) for p in P]], dtype=torch.float64))


def batch_of(policy: TabularPolicy, arms: Sequence[int], passed: Sequence[bool | None]) -> Batch:
    verdicts = tuple(Verdict(float(bool(p)), p) for p in passed)
    episodes = tuple(policy.leaf_episodes(torch.tensor(list(arms))))
    return Batch.from_groups([Group(Ask(Task("t", "?"), len(arms)), episodes, verdicts)], torch.float64)


def step(arms: Sequence[int], passed: Sequence[bool | None], **options: Any) -> list[float]:
    """The change of the logits by one step of gradient descent at rate 1."""
    policy, method = bandit(), make("S074", **options)
    before = policy.logits.detach().clone()
    batch = method.value(batch_of(policy, arms, passed))
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
    update(policy, method.objective, batch, optimizer, max_grad_norm=math.inf)
    return (policy.logits - before)[0].tolist()


def test_one_right_response_takes_from_all_others_and_one_wrong_hands_out() -> None:
    want = [0.5, -0.3, -0.15, -0.05]
    assert step([0], [True], variant="psr") == pytest.approx(want, abs=1e-7)
    assert step([0], [False], variant="nsr") == pytest.approx([-x for x in want], abs=1e-7)
    assert step([0], [True], variant="w-reinforce") == pytest.approx([x / 10 for x in want], abs=1e-7)


def test_both_sides_at_once_in_w_reinforce() -> None:
    """Two tokens: (0.1 (e_0 - p) - (e_1 - p)) / 2 with p = (0.5, 0.3, 0.15, 0.05)."""
    want = [(0.1 * 0.5 + 0.5) / 2, (-0.1 * 0.3 - 0.7) / 2, (-0.1 * 0.15 + 0.15) / 2, (-0.1 * 0.05 + 0.05) / 2]
    assert step([0, 1], [True, False], variant="w-reinforce") == pytest.approx(want, abs=1e-7)
    # The weight says nothing where right responses are all that there is, or none.
    assert step([0], [True], variant="psr", weight=0.7) == step([0], [True], variant="psr")
    damped = [x / 2 for x in step([0], [False], variant="nsr")]
    assert step([0, 1], [False, True], variant="w-reinforce", weight=0.0) == pytest.approx(damped, abs=1e-7)


def test_the_credit_by_itself_is_the_sign_of_the_verdict() -> None:
    batch = batch_of(bandit(), [0, 1, 2], [True, False, None])
    for credit in (SignedVerdict(), make("S074").credit):
        assert credit(batch)[:, 0].tolist() == [1, -1, 0]
        assert credit.summary == {"baseline": "none", "normalisation": "none"}
    assert SignedVerdict(0.0, 0.0)(batch)[:, 0].tolist() == [0, 0, 0]
    for bad in ({"right": -0.1}, {"wrong": -0.1}):
        with pytest.raises(UsageError, match="negative"):
            SignedVerdict(**bad)


def test_what_a_wrong_response_loses_goes_to_the_others_in_proportion() -> None:
    """Prior-preserving: to first order, ratios among all other tokens change only by their own share."""
    change = step([0], [False], variant="nsr")
    assert [c / p for c, p in zip(change[1:], P[1:], strict=True)] == pytest.approx([1.0] * 3, abs=1e-6)


def test_the_denominator_is_that_of_what_is_kept() -> None:
    assert step([0, 1, 1], [False, True, True], variant="nsr") == pytest.approx(step([0], [False], variant="nsr"))
    assert step([0, 1, 1], [True, False, None], variant="psr") == pytest.approx(step([0], [True], variant="psr"))


@pytest.mark.parametrize(("variant", "passed"), [("nsr", True), ("psr", False)])
def test_nothing_left_to_learn_from_changes_nothing(variant: str, passed: bool) -> None:
    assert step([0, 1, 2], [passed] * 3, variant=variant) == [0.0] * 4


def test_a_right_response_of_weight_one_is_reinforce_with_plus_and_minus_one() -> None:
    policy = bandit()
    arms, passed = [0, 1, 2, 3, 1], [True, False, True, False, None]
    ours = make("S074", variant="w-reinforce", weight=1.0).value(batch_of(policy, arms, passed))
    plain = batch_of(policy, arms, passed)
    Method(credit=Reinforce("constant", constant=0.5)).value(plain)
    assert torch.equal(ours.advantages, 2 * plain.advantages)
    assert ours.advantages[:, 0].tolist() == [1, -1, 1, -1, 0]


def test_the_sides_add_up_to_reinforce() -> None:
    """By enumeration: E[psr] + E[nsr] = 2 grad J, because constants have no expected gradient."""
    policy, right = bandit(), [True, False, False, True]
    credit = make("S074", variant="w-reinforce", weight=1.0).credit
    batch = batch_of(policy, range(4), right)
    p = torch.tensor(P, dtype=torch.float64)
    score = torch.eye(4, dtype=torch.float64) - p
    estimate = (p[:, None] * credit(batch) * score).sum(0)
    true = policy.exact_gradient(torch.tensor([1.0, 0, 0, 1.0], dtype=torch.float64))[0]
    assert torch.allclose(estimate, 2 * true, atol=1e-12)


def test_siblings_do_not_matter() -> None:
    policy = bandit()
    alone = make("S074").value(batch_of(policy, [1], [False])).advantages
    among = make("S074").value(batch_of(policy, [1, 0, 2], [False, False, False])).advantages
    assert alone.tolist() == [[-1.0]] and among[0].tolist() == [-1.0]
    assert not make("S074").group_relative


def test_many_tokens_share_the_sign() -> None:
    policy = TabularPolicy(Tree.uniform(2, 3))
    batch = make("S074").value(batch_of(policy, [0, 5], [False, True]))
    assert batch.advantages.tolist() == [[-1.0] * 3, [0.0] * 3]
    assert batch.totals is not None and batch.totals.tokens == 3


def test_negative_weights_are_refused() -> None:
    with pytest.raises(UsageError, match="negative"):
        make("S074", variant="w-reinforce", weight=-0.1)


def test_a_failed_generation_is_not_a_wrong_answer() -> None:
    empty = Episode(
        np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, np.float32), "", "error"
    )
    group = Group(Ask(Task("t", "?"), 1), (empty,), (Verdict.abstain("generation failed"),))
    batch = make("S074").value(Batch.from_groups([group]))
    assert not bool(batch.active.any())


@pytest.mark.slow
def test_over_many_updates_nsr_keeps_every_right_answer_and_psr_does_not() -> None:
    """Ten arms, five right, with 0.8 of the mass between them: NSR never tells the right ones apart.

    Right arms start alike and NSR only takes from wrong ones, so their entropy stays ln 5 to the last digit.
    """
    start = torch.tensor([[math.log(0.16)] * 5 + [math.log(0.04)] * 5], dtype=torch.float64)
    found = {}
    for variant in ("nsr", "psr"):
        policy, method = TabularPolicy(Tree.bandit(10), start.clone()), make("S074", variant=variant)
        optimizer = torch.optim.SGD(policy.module.parameters(), lr=2.0)
        generator = torch.Generator().manual_seed(0)
        for _ in range(30):
            arms = policy.leaf_logprobs().detach().exp().multinomial(4, True, generator=generator).tolist()
            batch = method.value(batch_of(policy, arms, [a < 5 for a in arms]))
            update(policy, method.objective, batch, optimizer, max_grad_norm=math.inf)
        right = policy.leaf_logprobs().detach().exp()[:5]
        share = right / right.sum()
        found[variant] = float(right.sum()), float(-(share * share.log()).sum())
    assert found["nsr"][0] > 0.9 and found["nsr"][1] == pytest.approx(math.log(5), abs=1e-9)
    assert found["psr"][0] > 0.9 and found["psr"][1] < 1.2
