"""VeriFree: its numbers, that it is exact, and that it varies less than a verifier of sampled answers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from running import metrics, run
from spelled import all_groups, alone, loss_gradient, nano, responses, tree, valued

from assay import catalogue
from assay.credit.rloo import RLOO
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.ops import group_sum
from assay.signals.base import Models

pytestmark = pytest.mark.usefixtures("one_thread")


def made(**options):
    return catalogue.make("S037", open="=", close="", closed=False, **options)


def test_the_worked_rewards(make_batch) -> None:
    rewards = torch.tensor([-0.6, -3.5, -1.0, -2.0]).double().exp().tolist()
    assert rewards == pytest.approx([0.548812, 0.030197, 0.367879, 0.135335], abs=1e-6)
    got = RLOO()(make_batch([1] * 4, rewards))[:, 0].tolist()
    assert got == pytest.approx([0.371008, -0.320478, 0.129765, -0.180294], abs=1e-6)


@pytest.mark.slow
def test_the_gradient_is_that_of_the_probability_of_the_reference() -> None:
    """E over every group of two equals the gradient of sum_z pi(z) pi(y* | z), the tree's own expected reward."""
    policy = tree(3, thoughts=3, answers=4)
    batch, _ = all_groups(policy, 2)
    got = -loss_gradient(made(), policy, valued(made(), policy, batch)) / 2
    torch.testing.assert_close(got, policy.exact_gradient(), atol=1e-10, rtol=1e-8)


@pytest.mark.slow
def test_it_varies_less_than_a_verifier_of_sampled_answers() -> None:
    """The same expectation, and a smaller total variance over groups."""
    policy = tree(3, thoughts=3, answers=4)
    verifier = make_method("grpo", credit="rloo", objective={"name": "reinforce", "aggregation": "sequence_sum"})
    spread = {}
    for name, method in {"verifree": made(), "verifier": verifier}.items():
        batch, weights = all_groups(policy, 2)
        batch = valued(method, policy, batch)
        chance = weights[::2]
        rows, mean, square = len(chance), 0.0, 0.0
        pick = torch.multinomial(chance, 300, generator=torch.Generator().manual_seed(0), replacement=True)
        batch.weights = torch.ones_like(weights)
        found = []
        for group in pick.unique().tolist():
            part = batch.rows(torch.tensor([2 * group, 2 * group + 1]))
            part.totals = part.count()
            found.append((float((pick == group).sum()) / 300, -loss_gradient(method, policy, part) / 2))
        mean = sum(p * g for p, g in found)
        square = sum(p * float((g**2).sum()) for p, g in found)
        spread[name] = square - float((mean**2).sum())
        assert rows == len(policy.tree) ** 2
    assert spread["verifree"] < 0.5 * spread["verifier"]


def test_the_second_terms_coefficient() -> None:
    policy = tree()
    batch, _ = all_groups(policy, 2)
    rewards = valued(made(), policy, batch).rewards
    slopes = {c: made(coefficient=c).objective.slopes(batch)[:, 0] for c in ("gradient", "advantage", "one")}
    torch.testing.assert_close(slopes["gradient"], rewards)
    assert slopes["one"].eq(1).all()
    torch.testing.assert_close(slopes["advantage"], batch.advantages[:, 0])
    siblings = group_sum(rewards, batch.group, batch.active) - rewards
    torch.testing.assert_close(batch.advantages[:, 0], rewards - siblings)
    plain = made(weight=0.0)
    assert not plain.live and loss_gradient(plain, policy, batch).any()


def test_the_reward_is_the_probability_of_the_reference_after_the_reasoning() -> None:
    """Each response's thought, the reference and the closing tag, read as one text by themselves."""
    policy = nano()
    method = catalogue.make("S037", open="<answer>")
    batch = responses(policy, ["1<answer>2</answer>", "9", "12<answer>5"])
    compute_signals(batch, method.needs, Models(policy, encode=policy.encode))
    got = method.reward(batch).values.tolist()
    want = [math.exp(sum(alone(policy, z + "<answer>", "42</answer>"))) for z in ("1", "12")]
    assert got == pytest.approx([want[0], 0.0, want[1]], rel=1e-5)
    bare = catalogue.make("S037", open="<answer>", closed=False)
    batch.signals.clear()
    compute_signals(batch, bare.needs, Models(policy, encode=policy.encode))
    want = [math.exp(sum(alone(policy, z + "<answer>", "42"))) for z in ("1", "12")]
    assert bare.reward(batch).values.tolist() == pytest.approx([want[0], 0.0, want[1]], rel=1e-5)


@pytest.mark.parametrize("open_", ["<answer>", None])
def test_a_response_that_is_cut_off_is_worth_nothing(open_: str | None) -> None:
    """Unless its answer is closed; without a likelihood there is no second term, and the reasoning is pushed down."""
    policy = nano()
    method = catalogue.make("S037", open=open_)
    for stop, worth in (("length", [True, False, False]), ("eos", [True, open_ is None, True])):
        batch = responses(policy, ["1<answer>2</answer>", "9", "12<answer>5"], stop=stop)
        compute_signals(batch, method.needs, Models(policy, encode=policy.encode))
        method.value(batch)
        assert batch.valid.all() and (batch.rewards > 0).tolist() == worth
        assert (method.objective.slopes(batch) > 0).any(-1).tolist() == worth
        assert stop == "eos" or (batch.advantages[1:, 0] < 0).all()


def test_nothing_is_learned_from_the_answer_a_response_gives() -> None:
    policy = nano()
    method = catalogue.make("S037", open="<answer>")
    batch = responses(policy, ["1<answer>2</answer>", "9", "12<answer>5"])
    compute_signals(batch, method.needs, Models(policy, encode=policy.encode))
    method.value(batch)
    assert batch.rewards[1] == 0 and batch.rewards[0] > 0
    nonzero = (batch.advantages != 0).sum(-1).tolist()
    # Reasoning and "<answer>"; a response without an answer is reasoning throughout, its end included.
    assert nonzero == [1 + 8, 2, 2 + 8]


def test_samples_without_a_likelihood_add_no_second_term() -> None:
    policy = nano()
    method = catalogue.make("S037", open="<answer>")
    batch = responses(policy, ["9", "12"])
    compute_signals(batch, method.needs, Models(policy, encode=policy.encode))
    method.value(batch)
    method.objective.prepare(batch)
    batch.live = policy.forward(batch, method.live).live
    assert not batch.signals["reference_slopes"].any() and not batch.rewards.any()
    assert method.objective(policy.forward(batch).logprobs, batch).value.item() == 0


@pytest.mark.slow
def test_a_run_makes_the_reference_likelier(tmp_path: Path) -> None:
    """After a short warm-up hardly any response is right; the mean probability of the reference grows all the same."""
    folder = run(
        tmp_path / "run",
        method={"name": "S037", "reward": None},
        warmup={"steps": 10, "batch": 16, "lr": 1e-2},
        rollout={"prompts": 32, "group": 4, "max_tokens": 4},
        train={"steps": 16, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    chance = [row["reward/prob"] for row in metrics(folder) if row["stage"] == "rl"]
    assert sum(chance[-4:]) > 2 * sum(chance[:4])
