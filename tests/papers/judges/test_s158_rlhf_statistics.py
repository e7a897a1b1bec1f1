"""S158: worths by hand and against SciPy, coverage, design, pessimism, the optimum, and training."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from grouped import grouped
from preferring import Prefers
from running import metrics, run
from scipy.optimize import minimize
from scipy.special import log_expit

from assay import catalogue
from assay.errors import UsageError
from assay.lab.settings import load
from assay.method import Method, make_method
from assay.objectives.preference import DPO
from assay.papers.judges.s158_rlhf_statistics import optimum
from assay.rewards.judges.pair_judge import PairJudge, pair_judge_of
from assay.rewards.judges.pair_ratings import PairRatings, matched
from assay.statistics.preferences.choices import (
    Choice,
    fit_choices,
    most_informative,
    pairs_of,
    separated,
    stages_of,
)

WINS = [[0, 7, 8], [3, 0, 6], [2, 4, 0]]
HERE = f"{Path(__file__).parents[1] / 'preferring.py'}:Prefers"


def test_worked_numbers() -> None:
    found = fit_choices(pairs_of(WINS), 3)
    assert found.values == pytest.approx([0.740570, -0.149102, -0.591468], abs=1e-6)
    gap = found.difference(0, 2)
    assert gap.value == pytest.approx(1.332038, abs=1e-6)
    assert (gap.high - gap.low) / 2 == pytest.approx(1.959964 * 0.602163, abs=1e-5)
    wide = found.difference(0, 2, 0.99)
    assert (wide.high - gap.value) / (gap.high - gap.value) == pytest.approx(2.575829 / 1.959964, abs=1e-6)
    # H = sum n p (1 - p) z z^T, each row of it summing to 0; its pseudo-inverse too.
    r, h = found.values, np.zeros((3, 3))
    for i, j in combinations(range(3), 2):
        p = 1 / (1 + math.exp(r[j] - r[i]))
        z = np.eye(3)[i] - np.eye(3)[j]
        h += 10 * p * (1 - p) * np.outer(z, z)
    assert found.information == pytest.approx(h, abs=1e-9)
    assert found.deviations == pytest.approx(np.sqrt(np.diag(np.linalg.pinv(h))), abs=1e-9)
    assert found.pessimistic(2.0) == pytest.approx(r - 2 * found.deviations)
    assert found.pessimistic() == pytest.approx(r - found.deviations)


def test_rankings_against_scipy() -> None:
    rankings = [(0, 1, 2, 3), (1, 0, 3, 2), (2, 0, 1, 3), (0, 3, 1, 2), (3, 1, 0, 2)]
    assert stages_of((2, 0, 1), 2.0) == [Choice(2, (2, 0, 1), 2.0), Choice(0, (0, 1), 2.0)]

    def loss(r: np.ndarray, ridge: float) -> float:
        told = sum(r[q[k]] - np.logaddexp.reduce(r[list(q[k:])]) for q in rankings for k in range(4))
        return -told + ridge / 2 * float(r @ r)

    for ridge in (0.0, 0.7):
        found = fit_choices([c for q in rankings for c in stages_of(q)], 4, ridge).values
        theirs = minimize(loss, np.zeros(4), args=(ridge,)).x
        assert found == pytest.approx(theirs - theirs.mean(), abs=1e-4)


def test_linear_worths_against_scipy() -> None:
    rng = np.random.default_rng(0)
    x, choices = rng.standard_normal((8, 2)), []
    for _ in range(60):
        i, j = rng.choice(8, 2, replace=False)
        won = rng.random() < 1 / (1 + np.exp(-(x[i] - x[j]) @ [1.0, -2.0]))
        choices.append(Choice(int(i if won else j), (int(i), int(j)), float(rng.integers(1, 4))))
    found = fit_choices(choices, x)
    z = np.array([x[c.winner] - x[sum(c.among) - c.winner] for c in choices])
    n = np.array([c.count for c in choices])
    assert found.weights == pytest.approx(minimize(lambda w: -n @ log_expit(z @ w), np.zeros(2)).x, abs=1e-4)
    # Far from the mode a whole step of Newton's would overshoot.
    steep = fit_choices([Choice(0, (0, 1), 999.0), Choice(1, (0, 1), 1.0)], np.array([[1.0], [0.0]]))
    assert steep.weights == pytest.approx([math.log(999)])


def test_who_never_lost_has_no_worth() -> None:
    assert separated(pairs_of([[0, 1, 1], [0, 0, 1], [0, 1, 0]]), np.eye(3))
    assert not separated(pairs_of([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.eye(3)) and not separated([], np.eye(2))
    assert not separated([Choice(0, (0, 1), 1.0), Choice(1, (0, 1), 0.5)], np.eye(2))
    assert separated([Choice(0, (0, 1), 1.0), Choice(1, (0, 1), 0.0)], np.eye(2))
    assert separated([Choice(0, (0, 1, 2)), Choice(1, (1, 2)), Choice(2, (1, 2))], np.eye(3))
    with pytest.raises(ValueError, match="never lost to the others; ask for more choices or take a ridge"):
        fit_choices(pairs_of([[0, 1], [0, 0]]), 2)
    # With a ridge the mode: 2 s(-2 r) = ridge 2 r / 2 at r, -r.
    r = fit_choices(pairs_of([[0, 1], [0, 0]]), 2, 1.0).values
    assert r[0] == pytest.approx(1 / (1 + math.exp(2 * r[0])), abs=1e-9) and r[0] == pytest.approx(0.3369, abs=1e-3)
    assert fit_choices([], 2, 1.0).values.tolist() == [0, 0] and fit_choices([], 3).deviations.tolist() == [0, 0, 0]


def test_intervals_cover() -> None:
    """Of three items, compared thirty times each: 95 % of intervals have the true difference."""
    rng, r, held = np.random.default_rng(1), np.array([0.6, 0.0, -0.6]), []
    for _ in range(150):
        wins = np.zeros((3, 3))
        for i, j in combinations(range(3), 2):
            wins[i, j] = rng.binomial(30, 1 / (1 + np.exp(r[j] - r[i])))
            wins[j, i] = 30 - wins[i, j]
        gap = fit_choices(pairs_of(wins), 3, 1e-9).difference(0, 2)
        held.append(gap.low <= 1.2 <= gap.high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.035)


def test_the_pair_that_tells_most() -> None:
    pairs = list(combinations(range(4), 2))
    start = fit_choices([], 4, 1.0)
    assert pairs[most_informative(start, pairs)] == (0, 1)  # the first of equals
    told = fit_choices(pairs_of([[0, 3, 0, 0], [3, 0, 0, 0], [0] * 4, [0] * 4]), 4, 1.0)
    assert pairs[most_informative(told, pairs)] == (2, 3)
    # By enumeration of log det.
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3))
    fitted = fit_choices([Choice(0, (0, 1)), Choice(2, (2, 3))], x, 0.1)
    z = np.array([x[i] - x[j] for i, j in pairs])
    p = 1 / (1 + np.exp(-z @ fitted.weights))
    worth = [np.linalg.slogdet(fitted.information + q * (1 - q) * np.outer(v, v))[1] for q, v in zip(p, z, strict=True)]
    assert most_informative(fitted, pairs, 0.0) == int(np.argmax(worth))
    # Of directions of which nothing is known at all the ridge makes much.
    bare = fit_choices(pairs_of([[0, 2, 0], [2, 0, 0], [0, 0, 0]]), 3)
    assert most_informative(bare, [(0, 1), (0, 2)]) == 1 and most_informative(bare, [(0, 1), (0, 2)], 1e12) == 0
    assert matched(start) == [(0, 1), (2, 3)] and matched(told) == [(2, 3), (0, 1)]
    assert matched(fit_choices([], 3, 1.0)) == [(0, 1)] and matched(fit_choices([], 1, 1.0)) == []


def level(text: str) -> float | None:
    return None if text == "?" else float(text)


def test_ratings_of_a_group_by_hand() -> None:
    """One comparison, at P = .8: the mode r of .8 - s(2 r) = r, and of its posterior the deviation."""
    gap = math.log(4)
    judge = Prefers(level, bias=0.7)
    part = PairRatings(PairJudge(judge), rounds=1, kappa=0.5)
    found = part(grouped([str(gap), "0"]))
    mean = (1 / (1 + math.exp(-gap - 0.7)) + 1 / (1 + math.exp(-gap + 0.7))) / 2
    r = found.terms["worth"].tolist()
    assert r[0] == pytest.approx(mean - 1 / (1 + math.exp(-2 * r[0])), abs=1e-6) and r[1] == pytest.approx(-r[0])
    bend = 1 / (1 + math.exp(-2 * r[0])) / (1 + math.exp(2 * r[0]))
    deviation = math.sqrt((1 / (1 + 2 * bend) + 1) / 2)
    assert found.terms["deviation"].tolist() == pytest.approx([deviation] * 2)
    assert found.values.tolist() == pytest.approx([r[0] - 0.5 * deviation, -r[0] - 0.5 * deviation])
    assert len(judge.asked) == 2 and "q0" in judge.asked[0] and found.valid is not None and found.valid.all()


def test_who_is_compared() -> None:
    """Two prompts in each round; who cannot be judged, or is alone, has no reward."""
    judge = Prefers(level)
    part = PairRatings({"judge": judge}, rounds=2)
    found = part(grouped(["1", "2", "broken", "3", "0"], ["5"], ["?", "1"]))
    assert found.valid is not None
    assert found.valid.tolist() == [True, True, False, True, True, False, False, False]
    worth = found.values.tolist()
    assert worth[3] > worth[1] > worth[0] > worth[4] and sum(worth) == pytest.approx(0, abs=1e-9)
    # Four pairs of the first prompt in both orders and one of the third, which is asked about again.
    assert len(judge.asked) == 2 * (4 + 2)
    assert PairRatings(judge).kappa == 0 and PairRatings(judge).ridge == 1 and PairRatings(judge).rounds == 3
    for bad in ({"rounds": 0}, {"kappa": -0.1}, {"ridge": 0.0}):
        with pytest.raises(UsageError, match="reward 'pair_ratings'"):
            PairRatings(judge, **bad)  # type: ignore[arg-type]
    assert pair_judge_of(part.judge) is part.judge and pair_judge_of(judge).judge is judge
    assert pair_judge_of({"judge": judge, "names": ("a", "b")}).names == ("a", "b")
    with pytest.raises(UsageError, match="must be an engine"):
        catalogue.make("S158")


def test_the_optimum_under_a_divergence() -> None:
    reference, rewards, beta = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 2.0]), 0.5
    found = optimum(reference, rewards, beta)
    assert found == pytest.approx([0.0366, 0.1622, 0.8012], abs=1e-3) and found.sum() == pytest.approx(1)
    assert found / found[0] == pytest.approx(reference / 0.5 * np.exp(rewards / beta))

    def worth(p: np.ndarray) -> float:
        return float(p @ rewards - beta * p @ np.log(p / reference))

    # Its worth is beta log Z, and no other is worth more.
    assert worth(found) == pytest.approx(beta * math.log(reference @ np.exp(rewards / beta)))
    for q in np.random.default_rng(0).dirichlet(np.ones(3), 50):
        assert worth(q) < worth(found)
    assert optimum([1, 1], [2000.0, 0.0], 1.0).tolist() == [1, 0]


def test_dpo_is_the_same_estimate() -> None:
    """Minimising DPO over the table of wins, beta h_i are the worths up to a constant."""
    beta, loss = 0.1, DPO(beta=0.1)
    pairs = [(i, j, n) for i, row in enumerate(WINS) for j, n in enumerate(row) if n]

    def total(h: np.ndarray) -> float:
        t = torch.from_numpy(h)
        return float(sum(n * loss.pair_loss(t[i][None], t[j][None]).sum() for i, j, n in pairs))

    h = minimize(total, np.zeros(3), options={"gtol": 1e-8}).x
    assert beta * (h - h.mean()) == pytest.approx([0.740570, -0.149102, -0.591468], abs=1e-4)


def test_it_acts_in_training(tmp_path: Path) -> None:
    made = catalogue.make("S158", judge=Prefers())
    assert isinstance(made, Method) and isinstance(made.reward, PairRatings)
    assert (made.reward.rounds, made.reward.kappa, made.reward.ridge) == (3, 1.0, 1.0)
    assert getattr(made.objective, "kl_weight") == 0.05 and make_method  # noqa: B009
    folder = run(
        tmp_path / "run",
        method={"name": "S158", "reward": None, "options": {"judge": {"name": HERE}, "rounds": 1}},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2
    for row in steps:
        # Three responses a prompt and one pair: of the three one has no reward.
        assert 0.8 < row["reward/deviation"] < 1 and row["reward/mean"] == pytest.approx(
            -row["reward/deviation"], abs=1e-5
        )


def test_the_setting() -> None:
    setting = load("preference_design", {"items": 6, "width": 3, "labels": 25})
    found = {name: setting.run({"design": name}, 0, Path()) for name in ("informative", "random")}
    assert all(f["precision"] < 0 < f["ordered"] <= 1 and 0 < f["covered"] <= 1 for f in found.values())
    assert found["informative"] != found["random"]
