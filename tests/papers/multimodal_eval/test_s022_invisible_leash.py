"""S022: the paper's table, the reweighting that cannot leave the support, and the loss of a rare right answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.evaluate.answers import answer_entropy
from assay.lab.settings._tabular import Training, train
from assay.papers.multimodal_eval.s022_invisible_leash import invisible_leash, tilted
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.statistics.support import Support, least_reachable
from assay.types import Task


def test_a_row_of_the_papers_table() -> None:
    s = Support(preserved=2388, lost=175, gained=48, out_of_reach=0)
    assert s.retention == pytest.approx(0.931721, abs=1e-6)
    assert s.discovery == pytest.approx(0.019704, abs=1e-6)
    assert s.change == pytest.approx(-0.048640, abs=1e-6)
    assert s.dynamics == pytest.approx(0.038593, abs=1e-6)


def test_what_8192_samples_reach() -> None:
    assert least_reachable(8192) == pytest.approx(3.656e-4, abs=1e-7)


@pytest.mark.parametrize(
    ("beta", "expected", "entropy"),
    [
        (1, [0.329927, 0.538102, 0.131971, 0], 0.966581),
        (5, [0.011056, 0.984521, 0.004422, 0], 0.089138),
    ],
)
def test_tilting_reweights_and_adds_nothing(beta: float, expected: list[float], entropy: float) -> None:
    q, rewards = [0.5, 0.3, 0.2, 0], [0, 1, 0, 1]
    p = tilted(q, rewards, beta)
    np.testing.assert_allclose(p, expected, atol=1e-6)
    assert float(-(p[p > 0] * np.log(p[p > 0])).sum()) == pytest.approx(entropy, abs=1e-6)
    # The optimum of E[R] - KL / beta: no other distribution on the support does better.
    rng = np.random.default_rng(0)

    def value(x: np.ndarray) -> float:
        x, at, r = x[:3], np.array(q[:3]), np.array(rewards[:3])
        return float((x * r).sum() - (x * np.log(x / at)).sum() / beta)

    assert all(value(p) >= value(np.append(rng.dirichlet(np.ones(3)), 0)) for _ in range(100))


def test_tilting_refuses_what_is_no_distribution() -> None:
    with pytest.raises(UsageError, match="probabilities"):
        tilted([0.5, -0.5], [0, 1], 1)
    with pytest.raises(UsageError, match="rewards"):
        tilted([0.5, 0.5], [0], 1)


def test_a_rare_right_answer_loses_what_it_had() -> None:
    """GRPO, 8 samples a step, on one wrong, one likely right and one rare right answer of probability 0.0001."""
    tree = Tree.of([0.0, 1.0, 1.0])
    policy = TabularPolicy(tree, torch.tensor([[0.6999, 0.3, 1e-4]], dtype=torch.float64).log())
    training = Training(steps=60, prompts=1, group=8, lr=1.0)
    train(policy, [Task("0", "", kind="tabular")], TabularVerifier(tree), {"name": "grpo"}, training, 0)
    p = policy.leaf_logprobs().exp().detach().numpy()
    assert p[1] > 0.9
    assert 0 < p[2] < 0.5e-4


@pytest.mark.parametrize("method", ["grpo", "S032"])
def test_what_has_no_probability_is_never_sampled_and_stays_at_none(method: str) -> None:
    """A policy gradient moves the logits of what was sampled: 60 steps leave a right answer of probability 0 there.

    Beside a wrong answer, one that is right and one that was out of reach, as in the tilt: q = (.5, .3, .2, 0).
    """
    tree = Tree.of([0.0, 1.0, 0.0, 1.0])
    start = torch.tensor([[0.5, 0.3, 0.2, 0.0]], dtype=torch.float64).log()
    policy = TabularPolicy(tree, start)
    training = Training(steps=60, prompts=1, group=8, lr=0.5)
    train(policy, [Task("0", "", kind="tabular")], TabularVerifier(tree), {"name": method}, training, 0)
    p = policy.leaf_logprobs().exp().detach().numpy()
    assert p[3] == 0.0 and p[:3].sum() == pytest.approx(1)
    assert p[1] > 0.9


def sample(task: str, response: str, passed: bool | None) -> Sample:
    return Sample(task, task, response, float(bool(passed)), passed, "", 1, "eos")


def test_the_metric_counts_tasks_and_right_answers() -> None:
    before = [("a", "1", True), ("a", "2", True), ("b", "5", True), ("b", "6", False), ("c", "0", False)]
    before.append(("c", "0", False))
    after = [("a", "1.0", True), ("a", "1", True), ("b", "7", False), ("b", "6", False), ("c", "3", True)]
    after.append(("c", "4", False))
    pair = [Evaluation(name, 0, tuple(sample(*row) for row in rows)) for name, rows in (("x", before), ("y", after))]
    tasks = invisible_leash()(*pair)
    assert tasks.counts == Support(1, 1, 1, 0)
    # Of a: 1 stays (1.0 is the same answer), 2 is lost; of b: 5 is lost; of c: 3 is gained.
    assert invisible_leash(answers=True)(*pair).counts == Support(1, 2, 1, 0)


def test_entropy_of_answers() -> None:
    assert answer_entropy([0, 0, 1, -1, 2]) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(4))
    assert answer_entropy([3, 3]) == 0
    assert np.isnan(answer_entropy([-1]))
