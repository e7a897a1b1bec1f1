"""GRPO-VPS: segments by entropy, the worked advantages, and the probes against sequences by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from spelled import all_groups, alone, nano, responses, tree, valued

from assay import catalogue
from assay.credit.grpo import GRPO
from assay.credit.segment_gain import SegmentGain, spread_gains
from assay.errors import RunError, UsageError
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.registry import build
from assay.signals.base import Models
from assay.signals.entropy_steps import EntropySteps
from assay.signals.steps import Steps

pytestmark = pytest.mark.usefixtures("one_thread")


def credited(batch, chance, at, **options):
    """Advantages for given probabilities of the reference after given numbers of tokens."""
    credit = catalogue.make("S165", **options).credit
    batch.signals["segment_likelihood"] = torch.tensor(chance, dtype=torch.float64).log()[..., None]
    batch.signals["segment_likelihood_at"] = torch.tensor(at)
    return credit(batch)


def test_the_worked_example(make_batch) -> None:
    """Five of eight are right: 0.375 and -0.625, and 1.2 times what each segment adds."""
    right = [1.0] * 5 + [0.0] * 3
    batch = make_batch([8] * 8, right)
    c, at = [0.05, 0.10, 0.60, 0.55, 0.90], [0, 2, 4, 6, 8]
    got = credited(batch, [c] * 8, [at] * 8)
    assert got[0, ::2].tolist() == pytest.approx([0.435, 0.975, 0.315, 0.795])
    assert got[7, ::2].tolist() == pytest.approx([-0.565, -0.025, -0.685, -0.205])
    assert torch.equal(got[:, ::2], got[:, 1::2])
    torch.testing.assert_close(credited(batch, [c] * 8, [at] * 8, alpha=0.0), GRPO(normalise=False)(batch))
    same = make_batch([8] * 8, [1.0] * 8)
    assert credited(same, [c] * 8, [at] * 8)[0, ::2].tolist() == pytest.approx([0.06, 0.6, -0.06, 0.42])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_the_differences_add_up_to_what_the_reasoning_adds(chance) -> None:
    k = len(chance)
    got = spread_gains(torch.tensor([chance], dtype=torch.float64), torch.arange(k)[None], k - 1)
    assert got.sum().item() == pytest.approx(chance[-1] - chance[0])


def test_what_is_not_known_is_no_difference(make_batch) -> None:
    chance = torch.tensor([[0.1, torch.nan, 0.5], [0.2, 0.6, torch.nan], [torch.nan] * 3]).double()
    at = torch.tensor([[0, 1, 3], [0, 2, -1], [-1, -1, -1]])
    got = spread_gains(chance, at, 4)
    assert got[0].tolist() == [0, 0, 0, 0] and got[2].tolist() == [0, 0, 0, 0]
    assert got[1].tolist() == pytest.approx([0.4, 0.4, 0, 0])
    batch = make_batch([4, 2], [1.0, 0.0])
    batch.valid = torch.tensor([True, False])
    assert not credited(batch, [[0.1, 0.9]] * 2, [[0, 4]] * 2)[1].any()


def test_segments_begin_where_the_policy_was_unsure() -> None:
    steps = EntropySteps(share=0.4, per_step=2)
    entropies = np.zeros(10, dtype=np.float32)
    entropies[[2, 3, 6, 8]] = 1
    assert steps.borders(entropies) == [0, 6]
    entropies[[4, 9]] = 1
    assert steps.borders(entropies) == [0, 4, 8]  # six candidates that are equal: all of them count
    assert EntropySteps(0.4, 1).borders(np.array([5, 0, 0, 3, 0.0])) == [0, 3]
    assert EntropySteps().borders(np.array([0.3])) == [0]


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60), st.floats(0.05, 1), st.integers(1, 5))
def test_segments_hold_equal_numbers_of_candidates(entropies, share, per_step) -> None:
    values = np.array(entropies)
    borders = EntropySteps(share, per_step).borders(values)
    count = max(1, round(share * len(values)))
    candidates = np.flatnonzero(values >= np.sort(values)[-count])
    held = [
        ((candidates >= a) & (candidates < b)).sum() for a, b in zip(borders, [*borders[1:], len(values)], strict=True)
    ]
    assert borders[0] == 0 and sum(held) == len(candidates) >= count and max(held) - min(held) <= 1
    assert len(borders) == max(1, round(len(candidates) / per_step))


def test_the_probes_in_a_language_model() -> None:
    policy = nano()
    texts = ["12+34=5<answer>7</answer>", "9", ""]
    batch = responses(policy, texts, passed=[True, False, False])
    method = catalogue.make("S165", steps=Steps("fixed", 4))
    compute_signals(batch, method.needs, Models(policy, encode=policy.encode))
    method.value(batch)

    def chance(prefix: str) -> float:
        return float(np.exp(sum(alone(policy, prefix + "<answer>", "42"))))

    c = [chance(p) for p in ("", "12+3", "12+34=5")]
    got = (batch.advantages - GRPO(normalise=False)(batch))[0].tolist()
    assert got[:7] == pytest.approx([1.2 * (c[1] - c[0])] * 4 + [1.2 * (c[2] - c[1])] * 3, abs=1e-6)
    assert not any(got[7:])
    one = (batch.advantages - GRPO(normalise=False)(batch))[1, 0].item()
    assert one == pytest.approx(1.2 * (chance("9") - chance("")), abs=1e-6)
    assert batch.advantages[2, 0].item() == pytest.approx(-1 / 3)


def test_engines_without_entropies_and_bad_options() -> None:
    policy = nano()
    batch = responses(policy, ["12"])
    batch.episodes = [replace(batch.episodes[0], entropies=None)]
    with pytest.raises(RunError, match="entropies"):
        compute_signals(batch, catalogue.make("S165").needs, Models(policy))
    for bad in ({"share": 0.0}, {"per_step": 0}):
        with pytest.raises(UsageError, match="entropy steps"):
            EntropySteps(**bad)
    assert catalogue.make("S165", steps={"by": "newline"}).credit.likelihood.steps == Steps("newline")
    assert catalogue.make("S165", steps={"share": 0.5}).credit.likelihood.steps == EntropySteps(0.5)
    with pytest.raises(UsageError, match="own advantage"):
        make_method("S165", objective="gspo")


def test_without_a_reference_the_outcome_alone_counts() -> None:
    policy = nano()
    batch = responses(policy, ["12+34", "9"], passed=[True, False])
    batch.tasks = [replace(task, reference=None) for task in batch.tasks]
    method = catalogue.make("S165", steps=Steps("fixed", 2))
    compute_signals(batch, method.needs, Models(policy, encode=policy.encode))
    method.value(batch)
    assert batch.advantages[0, :5].tolist() == pytest.approx([0.5] * 5) and batch.advantages[1, 0].item() == -0.5


def test_the_credit_by_itself_is_the_papers() -> None:
    made = build("credit", "segment_gain")
    assert (made.alpha, made.by, made.inner) == (1.2, "prob", GRPO(normalise=False)) and made.group_relative
    assert made.likelihood.steps == EntropySteps(0.2, 4) and not made.likelihood.required
    assert not SegmentGain(inner=Silent()).group_relative
    paper = catalogue.make("S165").credit
    assert (paper.alpha, paper.by, paper.likelihood.required) == (1.2, "prob", False)


class Silent:
    """A credit that does not say whether it needs whole groups."""

    level = "token"

    def __call__(self, batch):
        return batch.rewards[:, None]


def test_the_expected_gradient_is_that_of_outcome_and_process() -> None:
    """Over every group of two responses "=k", "a=k", "b=k": beside the outcome's, 1.2 E[C_1 - C_0] of the thoughts.

    C are read off the tree: C_0 is the chance of the reference right away, C_1 that after the thought.
    """
    policy = tree(3)
    found = []
    for alpha in (1.2, 0.0):
        method = catalogue.make("S165", alpha=alpha, open="=", close="", steps=Steps("fixed", 1))
        batch, weights = all_groups(policy, 2)
        valued(method, policy, batch)
        policy.logits.grad = None
        logprobs = policy.forward(batch).logprobs
        (weights[:, None] * batch.advantages * torch.where(batch.mask, logprobs, 0)).sum().backward()
        found.append(policy.logits.grad.clone() / 2)
    policy.logits.grad = None
    p = policy.log_policy().exp()
    root, right = policy.tree.node([0]), 1
    chance = {thought: p[policy.tree.node([0, *thought, 0]), right].detach() for thought in ((), (1,), (2,))}
    process = sum(p[root, k] * (chance[k,] - chance[()]) for k in (1, 2))
    process.backward()
    torch.testing.assert_close(found[0] - found[1], 1.2 * policy.logits.grad, atol=1e-10, rtol=1e-8)
    # The outcome's: p (1 - p) halved, for of two samples each is compared with the mean of both.
    policy.logits.grad = None
    q = policy.log_policy().exp()
    reward = q[root, 0] * q[policy.tree.node([0, 0]), right]
    (reward + sum(q[root, k] * q[policy.tree.node([0, k, 0]), right] for k in (1, 2))).backward()
    torch.testing.assert_close(found[1], policy.logits.grad / 2, atol=1e-10, rtol=1e-8)
