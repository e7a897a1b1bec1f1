"""``assay power``: its numbers against SciPy's and against simulated comparisons, its words and its refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from assay import cli
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.statistics.power import Spread, assumed_spread, binary_spread, counted_spread, detectable, needed, power_of


def rows_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as end:
        cli.main(["power", *arguments, "--json"])
    out, error = capsys.readouterr()
    assert end.value.code == 0, error
    found: dict[str, Any] = json.loads(out)
    return found


def answers(rng: np.random.Generator, rate: np.ndarray, samples: int) -> np.ndarray:
    return rng.random((len(rate), samples)) < rate[:, None]


def kept(path: Path, right: np.ndarray) -> str:
    samples = [
        Sample(f"t{i}", "q", "r", float(ok), bool(ok), "", 1, "eos") for i, row in enumerate(right) for ok in row
    ]
    Evaluation("evaluation", 0, tuple(samples)).to_parquet(path)
    return str(path)


def is_near(found: Spread, task: float, sample: float, seed: float = 0.0) -> bool:
    return bool((found.task, found.sample, found.seed) == pytest.approx((task, sample, seed)))


@pytest.mark.parametrize(("difference", "tasks"), [(0.0, 400), (0.01, 400), (0.04, 1000), (-0.06, 600)])
def test_the_power_is_that_of_the_t_test_of_many_tasks(difference: float, tasks: int) -> None:
    """SciPy's noncentral t with n - 1 degrees."""
    spread = Spread(task=0.02, sample=0.4)
    shift, t = difference / math.sqrt(spread.variance(tasks, 2)), stats.t.ppf(0.975, tasks - 1)
    exact = stats.nct.sf(t, tasks - 1, shift) + stats.nct.cdf(-t, tasks - 1, shift)
    assert power_of(spread, difference, tasks, 2) == pytest.approx(exact)
    found = detectable(spread, tasks, 2, power=0.9)
    # The other tail is what 90 % is exceeded by.
    assert power_of(spread, found, tasks, 2) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize(("seeds", "samples"), [(3, 4), (5, 4), (5, 1), (10, 4)])
def test_few_seeds_find_the_difference_as_often_as_said(seeds: int, samples: int) -> None:
    """The t-test over seeds of simulated runs on the same tasks, 20,000 times: three standard errors are .009."""
    spread, tasks, rng = Spread(task=0.0, sample=0.3, seed=0.002), 100, np.random.default_rng(seeds)
    gain = detectable(spread, tasks, samples, seeds)
    assert power_of(spread, gain, tasks, samples, seeds) == pytest.approx(0.8, abs=1e-6)
    noise = math.sqrt(spread.seed + spread.sample / (tasks * samples))
    seen = stats.ttest_1samp(rng.normal(gain, noise, (20_000, seeds)), 0, axis=1).pvalue < 0.05
    assert seen.mean() == pytest.approx(0.8, abs=0.009)
    # What the normal approximation promises is less than is needed.
    assert gain > 1.05 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * math.sqrt(
        spread.variance(tasks, samples, seeds)
    )
    assert needed(spread, gain * 1.0001, tasks=tasks, samples=samples) == seeds


def test_degrees_of_freedom() -> None:
    assert Spread(0.5, 0.5).freedom(20, 4) == pytest.approx(19)
    assert Spread(0.0, 0.5, 0.1).freedom(20, 4, seeds=5) == pytest.approx(4)
    assert Spread(0.0, 0.0, 0.1).freedom(1, 1, seeds=1) == math.inf
    # 1/10 from ten tasks and 1/5 from five seeds: (.3)^2 / (.01 / 9 + .04 / 4).
    assert Spread(1.0, 0.0, 1.0).freedom(10, 1, seeds=5) == pytest.approx(0.09 / (0.01 / 9 + 0.04 / 4))


@pytest.mark.slow
def test_so_many_tasks_find_the_difference_as_often_as_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From two evaluations to tasks; SciPy's paired t-test then finds it in 80 % of 500 comparisons, error 1.8 %."""
    rng = np.random.default_rng(0)

    def pair(tasks: int) -> tuple[np.ndarray, np.ndarray]:
        rate = rng.beta(2, 2, tasks)
        shift = np.clip(0.04 + rng.normal(0, 0.1, tasks), -rate, 1 - rate)
        return answers(rng, rate, 4), answers(rng, rate + shift, 4)

    names = [kept(tmp_path / f"{name}.parquet", x) for name, x in zip("ab", pair(4000), strict=True)]
    found = rows_of(capsys, *names, "--difference", "0.0389", "--samples", "4")
    [row] = found["rows"]
    assert row["chance"] == pytest.approx(0.8, abs=0.002) and row["responses"] == 4 * row["tasks"]
    assert found["spread"]["task"] == pytest.approx(0.01, abs=0.004)
    seen = 0
    for _ in range(500):
        before, after = pair(row["tasks"])
        seen += stats.ttest_rel(after.mean(1), before.mean(1)).pvalue < 0.05
    # Clipping leaves .0389 of the .04.
    assert seen / 500 == pytest.approx(0.8, abs=0.055)


def test_variances_from_counts_are_those_of_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    before, after = (answers(rng, rng.beta(2, 2, 60), 5) for _ in range(2))
    n = np.full(60, 5)
    assert counted_spread((n, before.sum(1)), (n, after.sum(1))) == binary_spread(before, after)
    # By hand: 1 of 2 and 2 of 4 right have variances 1/2 and 1/3.
    assert is_near(counted_spread(([2, 4], [1, 2]), task=0.5), 0.5, 1 / 2 + 1 / 3)
    # Beta(a, b) has success rates whose samples correlate by 1 / (a + b + 1).
    a, b = 0.5, 1.5
    within = a * b / ((a + b) * (a + b + 1))
    assert assumed_spread(a / (a + b), 1 / (a + b + 1)).sample == pytest.approx(2 * within)
    one = rows_of(capsys, kept(tmp_path / "a.parquet", before), "--tasks", "60", "--samples", "5")
    assert one["spread"]["task"] == pytest.approx(0.01) and len(one["rows"]) == 1
    # No variance is left between tasks that are always or never solved.
    assert power_of(Spread(0, 0), 0.1, 10, 1) == 1 and power_of(Spread(0, 0), 0.0, 10, 1) == 0.05


def test_what_is_left_out_is_solved_for_or_tried(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows_of(capsys, "--difference", "0.02")
    spread = Spread(**found["spread"])
    assert is_near(spread, 0.01, 0.25)
    assert [(r["samples"], r["seeds"]) for r in found["rows"]] == [(1, 1), (4, 1), (16, 1)]
    assert [r["tasks"] for r in found["rows"]] == [needed(spread, 0.02, samples=k, seeds=1) for k in (1, 4, 16)]
    # Of runs, and at a level divided among the three pairs of three methods.
    found = rows_of(
        capsys,
        *("--difference", "0.05", "--tasks", "200", "--samples", "4"),
        *("--seed-deviation", "0.02", "--methods", "3", "--same-tasks"),
    )
    spread = Spread(**found["spread"])
    assert is_near(spread, 0.0, 0.25, 2 * 0.02**2) and found["level"] == 0.05 / 3
    assert [r["seeds"] for r in found["rows"]] == [needed(spread, 0.05, tasks=200, samples=4, level=0.05 / 3)]
    assert all(r["chance"] is None for r in rows_of(capsys, "--tasks", "100")["rows"])
    # No number of samples makes up for 50 tasks that differ.
    assert rows_of(capsys, "--difference", "0.02", "--tasks", "50")["rows"][0]["samples"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--difference", "2"], "0.02 for 2 points"),
        (["--tasks", "0"], "--tasks is a number, 1 or more"),
        (["--share", "1.5"], "--share is between 0 and 1"),
        (["--methods", "1"], "--methods are 2 or more"),
        (["nowhere"], "nowhere is no evaluation"),
    ],
)
def test_refusals(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["power", *arguments])
    assert end.value.code == 2 and message in capsys.readouterr().err


def test_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["power", "--difference", "0.02", "--tasks", "50", "--seed-deviation", "0.05", "--seeds", "3"])
    out = capsys.readouterr().out
    assert "a difference of 0.02, 80% of the time" in out and "none: no number" in out and "assumed" in out
    single = kept(tmp_path / "one.parquet", np.ones((5, 1)))
    with pytest.raises(SystemExit):
        cli.main(["power", single])
    assert "two or more judged samples" in capsys.readouterr().err
