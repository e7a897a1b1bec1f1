"""SimpleRL-Zoo: its two rewards, what a hopeless group teaches, sets by difficulty, and what is watched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics

import assay
from assay.batch import Batch
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings.bandits.formats import Setting
from assay.method import make_method
from assay.papers.data.s210_simplerl_zoo import behaviours, behaviours_of, difficulty_set
from assay.registry import build
from assay.tasks.listed import Listed
from assay.training.watching.metrics import rollout_metrics
from assay.types import Ask, Episode, Group, Stop, Task
from assay.verify import KindVerifier

TEXTS = ("so \\boxed{7}", "so it is 7", "so \\boxed{8}", "so it is 8")


def batch_of(texts: tuple[str, ...], stops: tuple[Stop, ...] | None = None, lengths: tuple[int, ...] = ()) -> Batch:
    task, episodes = Task("t", "3+4", "7", "math"), []
    for i, text in enumerate(texts):
        n = lengths[i] if lengths else 3
        tokens, mask = np.arange(n), np.ones(n, bool)
        stop: Stop = stops[i] if stops else "eos"
        episodes.append(Episode(np.arange(2), tokens, mask, np.zeros(n, np.float32), text, stop))
    verdicts = tuple(KindVerifier()(task, text) for text in texts)
    return Batch.from_groups([Group(Ask(task, len(texts)), tuple(episodes), verdicts)])


def test_the_two_rewards() -> None:
    batch = batch_of(TEXTS)
    assert [v.passed for v in batch.verdicts] == [True, True, False, False], "an answer without a box is read too"
    assert make_method("S210").reward(batch).values.tolist() == [1, 1, 0, 0]
    strict = make_method("S210", {"reward": "strict"}).reward(batch)
    assert strict.values.tolist() == [1, 0.5, -0.5, -1]
    with pytest.raises(UsageError, match="should be 'plain' or 'strict'"):
        make_method("S210", {"reward": "loose"})


def test_what_a_group_of_wrong_answers_teaches() -> None:
    """All wrong, one of four in a box: the plain reward is silent, the strict one pushes towards the box."""
    texts = ("it is 1", "it is 2", "\\boxed{3}", "it is 4")
    plain, strict = make_method("S210"), make_method("S210", {"reward": "strict"})
    silent = plain.value(batch_of(texts)).advantages[:, 0]
    loud = strict.value(batch_of(texts)).advantages[:, 0]
    assert silent.tolist() == [0.0] * 4
    # Rewards -1, -1, -0.5, -1: mean -0.875, deviation 0.25.
    assert loud.tolist() == pytest.approx([-0.5, -0.5, 1.5, -0.5], abs=1e-4)


def test_the_loss() -> None:
    made: Any = make_method("S210").objective
    assert (made.kl_weight, made.kl_estimator, made.aggregation, made.clip_low) == (1e-4, "k3", "token_mean", 0.2)
    assert made.entropy_weight == 1e-3


def tasks(*levels: Any) -> Listed:
    return Listed([Task(f"m{i}", str(i), meta={"level": level}) for i, level in enumerate(levels)])


def test_the_sets_by_difficulty() -> None:
    math = tasks(1, "Level 2", 3, "4", "Level 5", None)
    medium, hard = (build("tasks", difficulty_set(name, math)) for name in ("medium", "hard"))
    assert [medium[i].id for i in range(medium.size)] == ["m0", "m1", "m2", "m3"]
    assert [hard[i].id for i in range(hard.size)] == ["m2", "m3", "m4"]
    easy = build("tasks", difficulty_set("easy", math, tasks(None, None), weights=(3, 1)))
    drawn = [easy[i].meta["source"] for i in range(8)]
    assert drawn.count("gsm8k") == 6 and {easy[i].id for i in range(8) if drawn[i] == "math"} == {"math:m0"}
    for name in ("easy", "harder"):
        with pytest.raises(UsageError, match=r"easy \(with gsm8k\), medium or hard"):
            difficulty_set(name, math)  # type: ignore[arg-type]


def test_what_is_watched() -> None:
    batch = make_method("S210").value(batch_of(TEXTS[:3], ("eos", "stop", "length"), (10, 20, 100)))
    found = rollout_metrics(batch)
    assert found["length/stopped"] == 15 and found["truncated"] == pytest.approx(1 / 3)
    assert found["length/mean"] == pytest.approx(130 / 3) and found["pass_rate"] == pytest.approx(2 / 3)
    never = rollout_metrics(make_method("S210").value(batch_of(TEXTS[:1], ("length",))))
    assert "length/stopped" not in never


JUDGE = Keywords([("check", "Verification\n- backtracking."), ("case 1", "enumeration")], "none")


def test_behaviours() -> None:
    found = behaviours(["I check it", "case 1, case 2", "7", "check again"], JUDGE)
    assert found == {"verification": 0.5, "backtracking": 0.5, "subgoal setting": 0, "enumeration": 0.25}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zero") / "run"
    changes = [
        "model.nano={hidden = 16, layers = 1, heads = 2, context = 64}",
        "warmup.steps=1",
        "warmup.batch=4",
        "rollout={prompts = 2, group = 3, max_tokens = 4}",
        "train.steps=2",
        "tasks.eval_size=4",
        "evaluate.samples=0",
        "evaluate.every=0",
        "run.report=false",
        f"run.dir={folder}",
    ]
    assay.train("zero", overrides=changes, quiet=True)
    return folder


def test_the_recipe_trains(whole: Path) -> None:
    rows = [row for row in metrics(whole) if row["stage"] == "rl"]
    assert len(rows) == 2 and all("kl/reference" in row and "truncated" in row for row in rows)
    assert (whole / "reference").is_dir()


def test_behaviours_over_a_run(whole: Path) -> None:
    always = Keywords([], "subgoal setting")
    assert behaviours_of(whole, always, every=2) == {
        2: {"verification": 0, "backtracking": 0, "subgoal setting": 1, "enumeration": 0}
    }
    assert list(behaviours_of(whole, always, every=1)) == [1, 2]


@pytest.mark.slow
def test_a_form_that_is_graded_is_learned_first(tmp_path: Path) -> None:
    """In the lab's setting the strict reward brings the form, the plain one leaves it alone."""
    small = Setting(tasks=4, prompts=4, steps=40, lr=6.0)
    strict = {"name": "graded", "right": 1.0, "wrong": -0.5, "unmarked": -1.0, "unmarked_right": 0.5}
    arm = {"name": "S210", "options": {"kl_weight": 0.0}}
    formed = small.run({**arm, "reward": strict}, 0, tmp_path)
    plain = small.run(arm, 0, tmp_path)
    assert formed["formed"] > 0.6 and plain["formed"] < 0.5 and formed["start"] == plain["start"]
    assert formed["rollouts"] == plain["rollouts"] == 4 * 8 * 40
