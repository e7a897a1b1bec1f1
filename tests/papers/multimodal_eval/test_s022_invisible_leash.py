"""S022: the paper's table, the reweighting that cannot leave the support, and the loss of a rare right answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.diagnose.diagnosis import diagnose
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.evaluate.answers import answer_entropy
from assay.evaluate.measures import measures
from assay.lab.settings._tabular import Training, train
from assay.papers.multimodal_eval.s022_invisible_leash import invisible_leash, tilted
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.statistics.intervals import ratio_interval, score_difference, signed_ratio_interval
from assay.statistics.pass_at_k import wilson
from assay.statistics.support import Support, least_reachable, support_intervals
from assay.types import Task


def test_a_row_of_the_papers_table() -> None:
    s = Support(preserved=2388, lost=175, gained=48, out_of_reach=0)
    assert s.retention == pytest.approx(0.931721, abs=1e-6)
    assert s.discovery == pytest.approx(0.019704, abs=1e-6)
    assert s.change == pytest.approx(-0.048640, abs=1e-6)
    assert s.dynamics == pytest.approx(0.038593, abs=1e-6)


def test_what_8192_samples_reach() -> None:
    assert least_reachable(8192) == pytest.approx(3.656e-4, abs=1e-7)
    # Of one sample, whatever has probability .95; a doubt of one half halves the odds.
    assert least_reachable(1) == pytest.approx(0.95) and least_reachable(2, 0.25) == pytest.approx(0.5)
    for k, doubt in ((0, 0.05), (3, 0.0), (3, 1.0)):
        with pytest.raises(UsageError, match="least_reachable needs"):
            least_reachable(k, doubt)


def test_nothing_in_reach_has_no_rate() -> None:
    """A rate without a denominator is unknown; kept and found nothing make a harmonic mean of 0."""
    nothing = Support(0, 0, 0, 5)
    assert all(np.isnan(x) for x in (nothing.retention, nothing.discovery, nothing.dynamics, nothing.change))
    assert (Support(0, 2, 3, 0).retention, Support(0, 2, 3, 0).dynamics) == (0, 0)
    assert Support(0, 2, 0, 0).retention == 0 and np.isnan(Support(0, 2, 0, 0).discovery)
    assert (Support(1, 1, 0, 0).discovery, Support(1, 1, 0, 0).dynamics, Support(1, 0, 3, 0).change) == (0, 0, 0.75)


def test_net_change_of_single_problems_is_that_of_their_gains_and_losses() -> None:
    """5 kept, 3 lost, 2 gained, 2 out of reach: the mean of -1, 0 and 1 over the ten within reach."""
    before, after = [1] * 8 + [0] * 4, [1] * 5 + [0] * 3 + [1] * 2 + [0] * 2
    found = support_intervals(before, after).change
    exact = score_difference(2, 3, 10)
    assert (found.value, found.low, found.high) == pytest.approx((-0.1, exact.low, exact.high))
    # All lost, all kept: nothing was seen to move otherwise, and Wilson's share of what may.
    for kept in (0, 1):
        for clusters in (None, [0, 0, 1, 1, 2]):
            change = support_intervals([1] * 5, [kept] * 5, clusters).change
            unseen = wilson(0, 5)[1]
            value = kept - 1.0
            assert (change.value, change.low, change.high) == pytest.approx(
                (value, value - unseen * (value + 1), value + unseen * (1 - value))
            )


def test_rates_over_answers_are_ratios_of_totals_over_problems() -> None:
    """Three problems with right answers kept, lost and gained (1, 1, 1), (2, 0, 0), (0, 1, 3), one without any."""
    rows = [(1, 1, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1), (1, 1, 1), (1, 0, 2), *[(0, 1, 2)] * 3, (0, 0, 3)]
    before, after, problem = zip(*rows, strict=True)
    found = support_intervals(before, after, problem)
    assert found.counts == Support(3, 2, 4, 1)
    retention = ratio_interval([1, 2, 0], [2, 2, 1], bounds=(0, 1), rare=True)
    discovery = ratio_interval([1, 0, 3], [2, 2, 3], bounds=(0, 1), rare=True)
    change = signed_ratio_interval([1, 0, 3], [1, 0, 1], [3, 2, 4], bounds=(-1, 1), rare=True)
    assert (found.retention, found.discovery, found.change) == (retention, discovery, change)
    assert (retention.value, discovery.value, change.value) == pytest.approx((3 / 5, 4 / 7, 2 / 9))
    # Pulls of the problems on the two rates: right answers kept or gained less the rate's share of all.
    kept, new = np.array([1, 2, 0]) - 3 / 5 * np.array([2, 2, 1]), np.array([1, 0, 3]) - 4 / 7 * np.array([2, 2, 3])
    rho = kept @ new / np.sqrt((kept @ kept) * (new @ new))
    total = 5 / 3 + 7 / 4
    a, b = 5 / 3 - 1 / retention.high, 7 / 4 - 1 / discovery.high
    assert found.dynamics.high == pytest.approx(2 / (total - np.sqrt(a * a + 2 * rho * a * b + b * b)))
    assert found.dynamics.value == pytest.approx(2 / total)


def test_entropies_of_tokens_and_answers_part() -> None:
    """Four tokens of 1 nat and three answers before; after, tokens of 2 nats that all come to one answer."""

    def side(label: str, nats: float, said: str) -> Evaluation:
        rows = (Sample("t", "?", a, 0.0, a == "1", "", 4, "eos", entropy=nats) for a in said)
        return Evaluation(label, 0, tuple(rows))

    found = diagnose(side("before", 1.0, "1123"), side("after", 2.0, "1111")).measures
    tokens, answers = found["token_entropy"], found["answer_entropy"]
    assert (tokens.before.value, tokens.after.value) == (1.0, 2.0)
    assert answers.before.value == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(4)) and answers.after.value == 0


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
    with pytest.raises(UsageError, match="not all zero"):
        tilted([0.0, 0.0], [0, 1], 1)
    # Weights need not sum to 1, and rewards too large for an exponential do not overflow.
    np.testing.assert_allclose(tilted([1.5, 0.5], [0, 0], 1), [0.75, 0.25])
    np.testing.assert_allclose(tilted([0.5, 0.5], [0, 5000], 1), [0, 1])


@pytest.mark.slow
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
    """Half, and three quarters of which one is a response without an answer."""
    assert answer_entropy([0, 0, 1, -1, 2, 0, 0, -1]) == pytest.approx(0.5 * np.log(2) + np.log(4) / 4 + np.log(8) / 4)
    assert answer_entropy([3, 3]) == answer_entropy([-1, -1]) == 0
    assert np.isnan(answer_entropy([]))


def test_entropies_by_hand() -> None:
    """Four tokens of 1 nat each and twelve of 2 make 1.5 over responses; one of two responses has no answer."""

    def side(label: str) -> Evaluation:
        rows = (
            Sample("t", "?", "1", 0.0, False, "", 4, "eos", answer="1", entropy=1.0),
            Sample("t", "?", "and", 0.0, False, "", 12, "length", entropy=2.0),
        )
        return Evaluation(label, 0, rows)

    found = diagnose(side("before"), side("after")).measures
    assert found["token_entropy"].before.value == found["token_entropy"].after.value == 1.5
    assert found["answer_entropy"].before.value == pytest.approx(np.log(2)) and found["answers"].before.value == 1
    told = {m.name: m.value for m in measures(side("before").samples)}
    assert (told["tokens"], told["answers"], told["distinct answers"]) == (1.5, pytest.approx(np.log(2)), 1)
