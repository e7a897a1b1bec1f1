"""A verifier with known faults: its rates, its bonus by hand, and a run that learns from it and is measured rightly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import run

from assay.config import load_config
from assay.errors import UsageError
from assay.records.evaluation import Evaluation
from assay.registry import build
from assay.training.checks import check_verifiers
from assay.types import Task, Verdict

TASK = Task("t", "2+3=", "5", "exact")


def made(**options: Any) -> Any:
    return build("verify", {"name": "flawed", **options})


def test_errors_come_at_their_rates_and_equal_responses_share_them() -> None:
    verifier = made(false_positive=0.1, false_negative=0.2)
    tasks = [Task(f"t{i}", f"{i}+1=", str(i + 1), "exact") for i in range(2000)]
    right = [verifier(task, task.reference) for task in tasks]
    wrong = [verifier(task, "no") for task in tasks]
    # Standard deviations of 18 and 13.
    assert abs(sum(not v.passed for v in right) - 400) < 5 * 18
    assert abs(sum(bool(v.passed) for v in wrong) - 200) < 5 * 13
    assert all(v.score == v.passed and not v.parts and not v.feedback for v in right + wrong)
    assert right == [verifier(task, task.reference) for task in tasks]
    other = made(false_positive=0.1, false_negative=0.2, seed=1)
    assert right != [other(task, task.reference) for task in tasks]


def test_the_bonus_by_hand() -> None:
    verifier = made(length=0.2, limit=10)
    # 0.8 and 0.2 of 1/10; nothing and 0.2 of 5/10; nothing and all of it.
    assert verifier(TASK, "5") == Verdict(pytest.approx(0.82), True)
    assert verifier(TASK, "55555") == Verdict(pytest.approx(0.1), False)
    assert verifier(TASK, "4" * 30) == Verdict(pytest.approx(0.2), False)
    assert made(length=0.2, limit=10, false_positive=1.0)(TASK, "4") == Verdict(pytest.approx(0.82), True)


def test_an_abstention_stays_one_and_the_place_of_the_answer_is_the_others() -> None:
    assert made(verifier="none", false_negative=1.0, false_positive=1.0)(TASK, "5").passed is None
    place = made(verifier={"name": "number"}).answer(TASK, "so 5")
    assert place is not None and (place.start, place.end) == (3, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"false_positive": 1.5}, "false_positive 1.5 must be in"),
        ({"length": -1}, "length = -1 must not be negative"),
        ({"limit": 0}, "limit 0 must be at least 1"),
        ({"verifier": "exactly"}, "exactly"),
    ],
)
def test_wrong_options_are_told_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(**options)


def test_a_run_learns_from_the_one_and_is_measured_by_the_other(tmp_path: Path) -> None:
    """All held-out tasks are right by the one, and all training responses wrong by the other."""
    easy, hard = {"name": "flawed", "false_positive": 1.0}, {"name": "flawed", "false_negative": 1.0}
    tasks = {"verify": easy, "train_verify": hard}
    folder = run(tmp_path / "run", tasks=tasks, method={"reward": "verdict"}, warmup={"steps": 0}, train={"steps": 1})
    passed = Evaluation.from_parquet(folder / "evals" / "after.parquet").pass_interval(1)
    assert passed is not None and passed.value == 1.0
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["pass_rate"] for row in rows if row["stage"] == "rl"] == [0.0]


def test_actors_that_judge_elsewhere_are_refused() -> None:
    config = load_config(None, ["tasks.train_verify=flawed", "scale.verifiers=1"])
    with pytest.raises(UsageError, match=r"tasks.train_verify: scale.verifiers judge by tasks.verify alone"):
        check_verifiers(config)
