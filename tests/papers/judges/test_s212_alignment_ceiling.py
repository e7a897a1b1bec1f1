"""S212: links by hand, the alarm, a run's page, and a bandit that can be hacked."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from assay import catalogue
from assay.diagnose.links import links
from assay.evaluate import Evaluation, Sample
from assay.lab.settings import load
from assay.report import write_report
from assay.report.links import run_links
from assay.report.run import read_run


def test_worked_numbers() -> None:
    found = catalogue.make("S212", judged=[3, 1, 2, 6, 5, 4], reward=[1, 2, 3, 4, 5, 6], evaluation=[1, 2, 3, 3, 2, 1])
    assert found.reward_evaluation == pytest.approx(0.0)
    # 1 - 6 sum d^2 / n (n^2 - 1), d = 2, -1, -1, 2, 0, -2.
    assert found.judged_reward == pytest.approx(1 - 6 * 14 / 210)
    assert found.judged_evaluation == pytest.approx(float(spearmanr([3, 1, 2, 6, 5, 4], [1, 2, 3, 3, 2, 1]).statistic))
    assert (found.peak, found.alarm) == (2, 5)
    rising = links([math.nan] * 4, [1, 2, 3, 4], [0.1, 0.2, 0.4, 0.8])
    assert (rising.reward_evaluation, rising.peak, rising.alarm) == (1.0, 3, None)
    assert math.isnan(rising.judged_reward) and math.isnan(rising.judged_evaluation)
    # NaN where nothing changes, and of two windows.
    assert math.isnan(links([1, 2, 3], [1, 1, 1], [1, 2, 3]).reward_evaluation)
    assert math.isnan(links([1, 2], [1, 2], [1, 2]).reward_evaluation)
    assert links([1] * 4, [1, 2, 3, 4], [9, 5, 4, 3], least=5.0).alarm == 2  # from the best, not over the falls alone


@pytest.mark.parametrize(
    ("reward", "evaluation", "falls", "least", "alarm"),
    [
        ([1, 2, 3, 4], [4, 3, 2, 1], 2, 0.0, 2),
        ([1, 2, 3, 4], [4, 3, 2, 1], 3, 0.0, 3),
        ([1, 2, 3, 4], [4, 3, 2, 1], 1, 0.0, 1),
        ([1, 2, 3, 4], [4, 3, 2, 1], 4, 0.0, None),
        ([1, 2, 2, 3], [4, 3, 2, 1], 2, 0.0, None),  # the reward stood still in between
        ([1, 2, 3, 4], [4, 3, 3, 2], 2, 0.0, None),
        ([4, 3, 2, 1], [4, 3, 2, 1], 1, 0.0, None),
        ([3, 1, 2, 3, 4], [5, 6, 5, 5, 4], 1, 0.0, 2),
        ([1, 2, 3, 4], [9, 8, 7, 5], 2, 3.0, 3),
        ([1, 2, 3, 4], [9, 8, 7, 5], 2, 4.5, None),
    ],
)
def test_when_it_is_said(
    reward: list[float], evaluation: list[float], falls: int, least: float, alarm: int | None
) -> None:
    made = catalogue.make("S212", judged=reward, reward=reward, evaluation=evaluation, falls=falls, least=least)
    assert made.alarm == alarm


def test_any_two_falls_are_an_alarm_unless_a_least_is_asked_for() -> None:
    shares = {"judged": [1, 2, 3, 4], "reward": [1, 2, 3, 4], "evaluation": [0.9, 0.85, 0.8, 0.6]}
    assert catalogue.make("S212", **shares).alarm == 2
    assert catalogue.make("S212", **shares, least=0.2).alarm == 3


def test_what_cannot_be_told() -> None:
    for judged, falls in (([1, 2], 2), ([1, 2, 3], 0)):
        with pytest.raises(ValueError, match="take as many of each"):
            catalogue.make("S212", judged=judged, reward=[1, 2, 3], evaluation=[1, 2, 3], falls=falls)


def evaluation(step: int, right: int) -> Evaluation:
    samples = [Sample(str(t), "?", "!", float(t < right), t < right, "", 1, "eos") for t in range(40)]
    return Evaluation("before" if step == 0 else f"step-{step:06d}", step, tuple(samples))


def test_a_runs_links_are_in_its_report(tmp_path: Path) -> None:
    """The reward rises by 1 a step; of forty tasks 20, 28, 36, 24, 8 are right at steps 0, 2, 4, 6, 8."""
    (tmp_path / "evals").mkdir()
    for step, right in zip((0, 2, 4, 6, 8), (20, 28, 36, 24, 8), strict=True):
        found = evaluation(step, right)
        found.to_parquet(tmp_path / "evals" / f"{found.label}.parquet")
    rows = [{"stage": "rl", "step": s, "reward/mean": float(s), "verdict_correlation": 1 - s / 10} for s in range(1, 9)]
    rows[4]["verdict_correlation"] = None
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = run_links(read_run(tmp_path))
    assert told is not None
    assert (told.steps, told.reward, told.evaluation) == ([2, 4, 6, 8], [1.5, 3.5, 5.5, 7.5], [0.7, 0.9, 0.6, 0.2])
    assert told.judged == pytest.approx([0.85, 0.65, 0.4, 0.25])
    assert (told.found.judged_reward, told.found.peak, told.found.alarm) == (pytest.approx(-1.0), 1, 3)
    assert told.found.reward_evaluation == pytest.approx(-0.8)
    page = write_report(tmp_path).read_text()
    assert "90.0% at step 4, where the reward was 3.5" in page and ">at step 8<" in page
    (tmp_path / "evals" / "step-000008.parquet").unlink()
    (tmp_path / "evals" / "step-000006.parquet").unlink()
    assert run_links(read_run(tmp_path)) is None
    assert "Does the reward lead" not in write_report(tmp_path).read_text()


def test_the_alarm_is_of_what_can_be_hacked() -> None:
    setting = load("ceiling", {})
    hacked, honest, any_fall = (
        np.mean([list(setting.run(arm, seed, Path()).values()) for seed in range(3)], axis=0)
        for arm in ({"hack": 0.5}, {"hack": 0.0}, {"hack": 0.0, "least": 0.0})
    )
    assert hacked[0] > honest[0] and hacked[1] > 0.3 > honest[1] and any_fall[0] > honest[0]
