"""PACS: loss and gradients by hand-computed numbers, its first update and its end."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.credit.rloo import RLOO
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.learning.update import update
from assay.method import make_method
from assay.papers.objectives.s053_pacs import ImplicitActorCritic
from assay.policies.tabular import TabularPolicy, Tree, enumerate_groups
from assay.types import Ask, Group, Task, Verdict

PSI, REWARDS = [0.2, -0.1, 0.0, 0.3], [1.0, 0, 0, 1]


def pull(objective, batch, scores):
    """Loss and its gradient with respect to the responses' summed log-ratios, spread evenly over their tokens."""
    psi = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    logprobs = torch.where(batch.mask, (psi / batch.lengths.clamp(min=1))[:, None], 0)
    loss = objective(logprobs, batch)
    (found,) = torch.autograd.grad(loss.value, psi)
    return loss, found.tolist()


def test_the_worked_example(make_batch):
    loss, found = pull(ImplicitActorCritic(balanced=False), make_batch([1, 3, 2, 4], REWARDS), PSI)
    assert loss.value.item() == pytest.approx(0.598689, abs=1e-6)
    assert found == pytest.approx([-0.155572, 0.144575, 0.155572, -0.144575], abs=1e-6)
    assert loss.metrics["pacs/accuracy"] == 1.0


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=8))
def test_the_first_update_is_rloo(make_batch, rewards):
    batch = make_batch([2] * len(rewards), rewards)
    _, found = pull(ImplicitActorCritic(balanced=False), batch, [0.0] * len(rewards))
    want = -RLOO()(batch)[:, 0] / len(rewards)
    assert found == pytest.approx(want.tolist(), abs=1e-12)


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_the_expected_first_update_is_the_policy_gradient(beta):
    policy = TabularPolicy.random(Tree.of([0.0, [1.0, 0.0], [[1.0], [0.0, 1.0]]]), seed=4)
    groups, chances = enumerate_groups(policy, 2)
    task, total = Task("t", "", kind="tabular"), torch.zeros((), dtype=torch.float64)
    verifier = TabularVerifier(policy.tree)
    for leaves, chance in zip(groups, chances.detach(), strict=True):
        episodes = tuple(policy.leaf_episodes(leaves))
        verdicts = tuple(verifier(task, e.text) for e in episodes)
        batch = Batch.from_groups([Group(Ask(task, 2), episodes, verdicts)], torch.float64)
        batch.rewards = torch.tensor([v.score for v in verdicts], dtype=torch.float64)
        logprobs = policy.forward(batch).logprobs
        batch.logprobs = logprobs.detach()
        total = total + chance * ImplicitActorCritic(beta, balanced=False)(logprobs, batch).value
    (found,) = torch.autograd.grad(total, policy.logits)
    np.testing.assert_allclose(found.numpy(), -beta * policy.exact_gradient().numpy(), atol=1e-12)


def test_the_first_update_with_class_weights(make_batch):
    batch = make_batch([2] * 4, [1.0, 0, 0, 0])
    assert pull(ImplicitActorCritic(balanced=False), batch, [0.0] * 4)[1] == pytest.approx([-0.25] + [1 / 12] * 3)
    assert pull(ImplicitActorCritic(), batch, [0.0] * 4)[1] == pytest.approx([-1 / 3] + [1 / 9] * 3)


@pytest.mark.parametrize("right", [1.0, 0.0])
def test_a_prompt_of_one_class_has_weights_of_one(make_batch, right):
    """Scores 0.4 and 0: a = 0.4 and -0.4, pulls on a of 0.401312 / 2 and 0.598688 / 2 either way; by hand."""
    _, found = pull(ImplicitActorCritic(), make_batch([1, 1], [right, right]), [0.4, 0.0])
    assert found == pytest.approx([0.098688, -0.098688], abs=1e-6)


def test_beta_scales_the_score(make_batch):
    batch = make_batch([1, 3, 2, 4], REWARDS)
    once = pull(ImplicitActorCritic(), batch, [2 * x for x in PSI])
    twice = pull(ImplicitActorCritic(beta=2.0), batch, PSI)
    assert twice[0].value.item() == pytest.approx(once[0].value.item())
    assert twice[1] == pytest.approx([2 * x for x in once[1]])


def test_the_loss_stops_by_itself(make_batch):
    batch = make_batch([1, 1], [1.0, 0.0])
    slopes = [abs(pull(ImplicitActorCritic(), batch, [x, -x])[1][0]) for x in (0.0, 1.0, 3.0, 10.0)]
    assert slopes == sorted(slopes, reverse=True) and slopes[-1] < 1e-8
    assert abs(pull(ImplicitActorCritic(), batch, [-10.0, 10.0])[1][0]) > 0.99


def test_gradients_flow_through_the_siblings(make_batch):
    _, found = pull(ImplicitActorCritic(balanced=False), make_batch([1, 1, 1], [1.0, 1.0, 1.0]), [1.0, 0.0, 0.0])
    # All right and unequal: nothing would point downwards if the baseline were a constant.
    assert found[0] > 0 > found[1]
    assert sum(found) == pytest.approx(0)


def test_tokens_outside_the_mask_do_not_count(make_batch):
    batch = make_batch([2, 2], [1.0, 0.0])
    batch.mask[0, 1] = False
    logprobs = torch.tensor([[0.5, 100.0], [0.0, 0.0]], dtype=torch.float64)
    short = make_batch([1, 1], [1.0, 0.0])
    want = ImplicitActorCritic()(torch.tensor([[0.5], [0.0]], dtype=torch.float64), short).value
    assert ImplicitActorCritic()(logprobs, batch).value.item() == pytest.approx(want.item())


def test_a_response_without_siblings_or_tokens_has_no_pull(make_batch):
    batch = make_batch([2, 0, 2], [1.0, 0.0, 0.0], groups=[0, 0, 1])
    loss, found = pull(ImplicitActorCritic(), batch, [0.3, 0.0, 0.4])
    assert found == [0, 0, 0] and torch.isfinite(loss.value)


def test_other_baselines_and_scores(make_batch):
    batch = make_batch([1, 3, 2, 4], REWARDS)
    plain = pull(ImplicitActorCritic(baseline="none", balanced=False), batch, PSI)[1]
    want = (torch.sigmoid(torch.tensor(PSI)) - torch.tensor(REWARDS)) / 4
    assert plain == pytest.approx(want.tolist())
    siblings = pull(ImplicitActorCritic(), batch, [0.75 * x for x in PSI])[0].value
    group = pull(ImplicitActorCritic(baseline="group"), batch, PSI)[0].value
    assert group.item() == pytest.approx(siblings.item())
    # The mean log-probability does not look at the past.
    batch.logprobs += 5
    mean = ImplicitActorCritic(score="mean_logprob")(torch.full(batch.mask.shape, -1.0, dtype=torch.float64), batch)
    assert mean.value.item() == pytest.approx(torch.log(torch.tensor(2.0)).item())
    # Tokens outside the mask are not in the mean: 0.5 of one token, less the sibling's 0.
    masked, logprobs = make_batch([2, 2], [1.0, 0.0]), torch.tensor([[0.5, -9.0], [0.0, 0.0]], dtype=torch.float64)
    masked.mask[0, 1] = False
    found = ImplicitActorCritic(score="mean_logprob")(logprobs, masked).value.item()
    assert found == pytest.approx(math.log(1 + math.exp(-0.5)))


def test_options():
    assert make_method("S053", objective={"beta": 2.0}).objective.beta == 2
    with pytest.raises(UsageError, match="above 0"):
        make_method("S053", objective={"beta": 0.0})
    with pytest.raises(UsageError, match="reads no advantages"):
        make_method("S053", credit="opo")


def test_rewards_above_one_half_are_the_label_and_verdicts_if_asked(make_batch):
    batch = make_batch([1, 1], [0.7, 0.5], passed=[False, True])
    assert pull(make_method("S053").objective, batch, [0.0, 0.0])[1] == pytest.approx([-0.5, 0.5])
    assert pull(ImplicitActorCritic(by="verdict"), batch, [0.0, 0.0])[1] == pytest.approx([0.5, -0.5])
    assert pull(ImplicitActorCritic(threshold=0.8), batch, [0.0, 0.0])[1] == pytest.approx([0, 0], abs=1e-12)
    assert ImplicitActorCritic() == make_method("S053").objective
    assert ImplicitActorCritic.whole_groups, "siblings in another pass are none"
    assert ImplicitActorCritic().summary["ratio"] == "sequence, log-ratio"
    assert ImplicitActorCritic(score="mean_logprob").summary["ratio"] == "none"


def test_what_is_told_of_a_step(make_batch):
    """Leave-one-out scores of (0.2, -0.1, 0, 0.3) are above 0 for the first and last; labelled right are 1 and 3."""
    loss, _ = pull(ImplicitActorCritic(beta=2.0), make_batch([1, 3, 2, 4], [1.0, 0, 1.0, 0]), [x / 2 for x in PSI])
    assert loss.metrics == {"pacs/accuracy": 0.5, "pacs/score": pytest.approx(0.1)}
    # A score of 0 predicts neither and counts as a prediction of wrong.
    loss, _ = pull(ImplicitActorCritic(), make_batch([1, 1, 1], [1.0, 1.0, 0.0]), [0.0] * 3)
    assert loss.metrics["pacs/accuracy"] == pytest.approx(1 / 3)
    alone, _ = pull(ImplicitActorCritic(baseline="none"), make_batch([1], [1.0]), [0.0])
    assert alone.value.item() == pytest.approx(math.log(2))
    nothing = make_batch([1, 1], [1.0, 0.0])
    nothing.valid = torch.tensor([False, False])
    loss, found = pull(ImplicitActorCritic(), nothing, [0.4, 0.3])
    assert loss.value.item() == 0 and found == [0, 0] and loss.metrics == {}


def test_the_first_and_the_second_update_of_a_policy():
    """Two arms of chance 1/2, the first right, both sampled; steps of size 1.

    First the pulls are -+1/2. Then psi = log(0.731059 / 0.5), log(0.268941 / 0.5), their difference 1, and the pulls
    -+(1 - sigmoid(1)) = -+0.268941.
    """
    policy, method = TabularPolicy(Tree.bandit(2)), make_method("S053")
    episodes = tuple(policy.leaf_episodes(torch.arange(2)))
    group = Group(Ask(Task("t", ""), 2), episodes, (Verdict.right(), Verdict.wrong()))
    batch = method.value(Batch.from_groups([group], torch.float64))
    optimizer, seen = torch.optim.SGD(policy.module.parameters(), lr=1.0), []
    for _ in range(2):
        update(policy, method.objective, batch, optimizer, max_grad_norm=math.inf)
        seen += policy.logits.detach()[0].tolist()
    assert seen == pytest.approx([0.5, -0.5, 0.768941, -0.768941], abs=5e-6)
