"""S043: which sample each rule takes, the statistics it is compared by, and where it must lose."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from assay import catalogue
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.inference.base import Strategy
from assay.inference.sampling.surprisal import Surprisal, select
from assay.lab.settings import load
from assay.policies.tabular import TabularPolicy, Tree
from assay.statistics.pass_at_k import pass_at_k
from assay.statistics.selection import cohens_h, equivalent_samples, partial_correlation
from assay.types import Task, Verdict
from assay.verify.kind import KindVerifier

LOGPROBS = [-0.3, -0.8, -0.5, -1.2, -0.9]
CORRECT = [True, True, True, False, True]
SPEED = [1.1, 2.5, 0.9, 0.0, 4.0]
RNG = np.random.default_rng(0)


def test_rules_on_five_samples() -> None:
    assert select(LOGPROBS, CORRECT, SPEED, "surprisal", RNG) == 4
    assert select(LOGPROBS, CORRECT, SPEED, "confident", RNG) == 0
    assert select(LOGPROBS, CORRECT, SPEED, "top3", RNG) == 4
    assert select(LOGPROBS, CORRECT, SPEED, "oracle", RNG) == 4
    # The three least likely right ones are 4, 1 and 2 in this order.
    assert select(LOGPROBS, CORRECT, [9.0, 2.5, 0.9, 9.0, 1.0], "top3", RNG) == 1
    drawn = {select(LOGPROBS, CORRECT, SPEED, "random", RNG) for _ in range(100)}
    assert drawn == {0, 1, 2, 4}
    for rule in ("surprisal", "confident", "random", "top3", "oracle"):
        assert select(LOGPROBS, [False] * 5, SPEED, rule, RNG) is None
        assert select([None] * 5, CORRECT, SPEED, rule, RNG) in (0, 1, 2, 4)
    for rule in ("surprisal", "confident", "top3"):
        assert select([None] * 5, CORRECT, SPEED, rule, RNG) == 0, "nothing tells them apart: the first"
        assert select([None, -0.1, -2.0], [True] * 3, [9.0, 1.0, 2.0], rule, RNG) == (1 if rule == "confident" else 2)


def test_the_first_of_equals_is_taken() -> None:
    assert select([-2.0, -0.1, -0.5], [True] * 3, [0.0] * 3, "confident", RNG) == 1
    for rule in ("surprisal", "confident", "top3", "oracle"):
        assert select([-1.0] * 3, [False, True, True], [2.0] * 3, rule, RNG) == 1


def test_options_are_those_of_the_paper() -> None:
    """The mean over tokens and the least likely, unless said otherwise; tokens and verifier as given."""
    for plain in (catalogue.make("S043"), Surprisal()):
        assert (plain.rule, plain.total, plain.sampling) == ("surprisal", False, Sampling())
        assert isinstance(plain.verifier, KindVerifier)
    with pytest.raises(UsageError, match="'surprise' is none of surprisal, confident"):
        Surprisal(rule="surprise")  # type: ignore[arg-type]


def test_cohens_h() -> None:
    assert cohens_h(0.8, 0.5) == pytest.approx(0.643501, abs=1e-6)
    assert cohens_h(0.5, 0.8) == -cohens_h(0.8, 0.5)
    assert cohens_h(1, 0) == pytest.approx(math.pi)
    with pytest.raises(ValueError, match="proportions"):
        cohens_h(1.2, 0)


def test_equivalent_samples_is_the_first_k_that_reaches_the_rate() -> None:
    totals, corrects = [16, 16, 16], [1, 4, 0]
    curve = [float(np.mean(pass_at_k(np.array(totals), np.array(corrects), k))) for k in range(1, 17)]
    for rate in (0.01, 0.2, 0.5, curve[6]):
        assert equivalent_samples(totals, corrects, rate) == next(k for k, p in enumerate(curve, 1) if p >= rate)
    assert equivalent_samples(totals, corrects, 0.9) is None


def test_partial_correlation_is_the_formula_of_three_correlations_of_ranks() -> None:
    rng = np.random.default_rng(2)
    z = rng.standard_normal(50)
    x, y = z + rng.standard_normal(50), np.round(-z + rng.standard_normal(50))  # y has equal values
    r = spearmanr(np.stack([x, y, z]), axis=1).statistic
    exact = (r[0, 1] - r[0, 2] * r[1, 2]) / math.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert partial_correlation(x, y, z) == pytest.approx(exact)
    # Ranks are all that counts, as of speed-ups that span orders of magnitude.
    assert partial_correlation(x, np.exp(3 * y), np.exp(z)) == pytest.approx(exact)
    # What is all length has nothing left; where lengths are equal, nothing is taken off.
    assert math.isnan(partial_correlation(z, y, z)) and math.isnan(partial_correlation(np.ones(50), y, z))
    assert partial_correlation(x, y, np.ones(50)) == pytest.approx(r[0, 1])
    with pytest.raises(ValueError, match="three rows"):
        partial_correlation(x, y, z[:2])


def test_the_strategy_takes_the_least_likely_right_path() -> None:
    """Of many samples, every kind among them, it is exactly the rarest of the right leaves; its mean is per token."""
    tree = Tree.of([1, [1, 0], [0, 1]])
    policy = TabularPolicy.random(tree, seed=2)
    p = policy.leaf_logprobs().detach().numpy()
    right = {"0", "1/0", "2/1"}

    def verifier(task: Task, response: str) -> Verdict:
        return Verdict(1.0, True) if response in right else Verdict.wrong()

    names = ["/".join(map(str, path)) for path in tree.paths]
    strategy = catalogue.find("S043").factory(Sampling(2), verifier)  # type: ignore[misc]
    assert isinstance(strategy, Surprisal) and isinstance(strategy, Strategy)
    assert strategy.sampling == Sampling(2) and strategy.verifier is verifier
    [answer] = strategy([Task("t", "")], TabularEngine(policy), 200, np.random.default_rng(0))
    assert answer.meta["score"] == 1.0 and answer.meta["unscored"] == 0
    assert answer.meta["correct"] == sum(e.text in right for e in answer.episodes) < 200
    mean = {n: lp / len(path) for n, lp, path in zip(names, p, tree.paths, strict=True) if n in right}
    assert answer.text == min(mean, key=lambda n: mean[n])
    total = Surprisal(Sampling(2), verifier, total=True)
    [answer] = total([Task("t", "")], TabularEngine(policy), 200, np.random.default_rng(0))
    whole = {n: lp for n, lp in zip(names, p, strict=True) if n in right}
    assert answer.text == min(whole, key=lambda n: whole[n])

    never = Surprisal(Sampling(2), lambda task, response: Verdict.wrong())
    [answer] = never([Task("t", "")], TabularEngine(policy), 4, np.random.default_rng(0))
    assert answer.abstains and answer.tokens > 0
    assert answer.meta == {**answer.meta, "correct": 0, "unscored": 0, "score": None}
    down = Surprisal(Sampling(2), lambda task, response: Verdict.abstain("down"))
    [answer] = down([Task("t", "")], TabularEngine(policy), 4, np.random.default_rng(0))
    assert answer.abstains and answer.meta["unscored"] == 4


@pytest.mark.slow
def test_the_gain_is_where_the_best_is_in_the_tail_and_a_loss_where_it_is_not(tmp_path: Path) -> None:
    setting = load("solutions", {"tasks": 25})
    found = {
        rule: setting.run({"name": "surprisal", "rule": rule}, 0, tmp_path)
        for rule in ("surprisal", "confident", "random", "oracle")
    }
    assert found["oracle"]["speed"] == pytest.approx(found["oracle"]["best"])
    assert found["surprisal"]["speed"] > found["random"]["speed"] > found["confident"]["speed"]
    assert found["surprisal"]["reversed"] < min(found["random"]["reversed"], found["confident"]["reversed"])
