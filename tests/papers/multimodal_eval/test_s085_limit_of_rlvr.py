"""S085: the crossing of two problems by hand, its estimate from samples, and a trained policy that narrows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assay.errors import UsageError
from assay.lab.settings.bandits.approaches import Setting
from assay.papers.multimodal_eval.s085_limit_of_rlvr import limit_of_rlvr
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.statistics.crossing import crossing, first_crossing

K = np.arange(1, 21)
BASE, TRAINED = np.array([0.1, 0.1]), np.array([0.9, 0.0])


def curve(p: np.ndarray) -> np.ndarray:
    return (1 - (1 - p[:, None]) ** K).mean(0)


def test_two_problems_cross_at_seven() -> None:
    base, trained = curve(BASE), curve(TRAINED)
    assert (base[0], trained[0]) == pytest.approx((0.1, 0.45))
    assert (base[5], trained[5]) == pytest.approx((0.4686, 0.5), abs=1e-4)
    assert (base[6], trained[6]) == pytest.approx((0.5217, 0.5), abs=1e-4)
    assert first_crossing(base, trained) == 7


def evaluation(label: str, rates: np.ndarray, tasks: int, n: int, seed: int) -> Evaluation:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(tasks):
        for passed in rng.random(n) < rates[i % len(rates)]:
            rows.append(Sample(f"t{i}", "?", "1", float(passed), bool(passed), "", 1, "eos"))
    return Evaluation(label, 0, tuple(rows))


def test_samples_find_the_crossing() -> None:
    # 200 tasks of the two kinds with 64 samples: pass@k is within a few points, the crossing within its interval.
    found = limit_of_rlvr()(evaluation("base", BASE, 200, 64, 0), evaluation("rl", TRAINED, 200, 64, 1))
    assert found.most == 64 and found.verdict == "crosses"
    assert found.low <= 7 <= found.high and abs(found.k - 7) <= 1
    assert found.first.value == pytest.approx(0.35, abs=0.02)
    exact = (1 - (1 - BASE) ** 64).mean() - TRAINED.mean()
    assert found.gap.value == pytest.approx(exact, abs=0.02)
    assert found.gap.low <= exact <= found.gap.high


def test_the_curve_is_the_mean_over_draws() -> None:
    """Unbiased pass@k over many draws of 12 samples of the two problems is 1 - (1 - p)^k, within 1%."""
    rng = np.random.default_rng(0)
    n = np.full(2 * 20_000, 12)
    counts = [np.concatenate([rng.binomial(12, p, 20_000) for p in side]) for side in (BASE, TRAINED)]
    found = crossing((n, counts[0]), (n, counts[1]), 12, resamples=50)
    assert found.k == 7
    assert found.first.value == pytest.approx(0.35, abs=0.01)
    assert found.last.value == pytest.approx(curve(TRAINED)[11] - curve(BASE)[11], abs=0.01)


def test_more_than_the_samples_is_refused() -> None:
    pair = evaluation("base", BASE, 4, 3, 0), evaluation("rl", TRAINED, 4, 3, 1)
    assert limit_of_rlvr(most=2)(*pair).most == 2
    with pytest.raises(UsageError, match="pass@4 needs"):
        limit_of_rlvr(most=4)(*pair)


def test_a_choice_that_all_problems_share_narrows() -> None:
    """Of 200 problems some approach solves .52; the likeliest, .27; the trained policy ends near that one."""
    setting = Setting(steps=80, lr=1.0, spread=0.0)
    base = setting.run({"name": "grpo", "setting": {"steps": 0}}, 0, Path())
    trained = setting.run({"name": "grpo"}, 0, Path())
    assert base["rollouts"] == 0 and base["final"] == base["start"] == trained["start"]
    assert base["entropy"] == pytest.approx(np.log(4)) and base["pass@512"] == pytest.approx(base["solvable"])
    assert base["solvable"] == pytest.approx(1 - np.prod(1 - np.array(setting.chances)), abs=0.15)
    assert trained["final"] > base["final"] + 0.03 and trained["pass@64"] < base["pass@64"]
    assert trained["rollouts"] == 80 * 16 and trained["entropy"] < base["entropy"]
    with pytest.raises(UsageError, match="steps and group"):
        setting.run({"name": "grpo", "setting": {"lr": 1.0}}, 0, Path())
    with pytest.raises(UsageError, match="chances"):
        Setting(chances=(0.5,))
