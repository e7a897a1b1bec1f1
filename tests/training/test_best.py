"""The best weights of a stage, which the next one goes on from or the run keeps: which they are, also where a run was
interrupted; and how many checkpoints stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import running
from running import assert_same
from safetensors.torch import load_file

import assay
from assay.config import load_config
from assay.engines.target import resolve
from assay.errors import RunError, UsageError
from assay.records.checkpoints import checkpoints, kept_best
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.report.card import model_card
from assay.report.export import weights_of
from assay.training.best import best_of
from assay.training.loop import Trainer

pytestmark = pytest.mark.usefixtures("one_thread")


def evaluation(label: str, step: int, marks: str) -> Evaluation:
    """Of a task for each mark: 1 right, 0 wrong, ? an abstention."""
    passed = {"1": True, "0": False, "?": None}
    rows = [
        Sample(
            task_id=f"t{i}", prompt="q", response="r", score=float(m == "1"), passed=passed[m], feedback="", length=1,
            stop="eos",
        )
        for i, m in enumerate(marks)
    ]  # fmt: skip
    return Evaluation(label, step, tuple(rows))


def test_by_hand() -> None:
    found = [
        evaluation("after-earlier", 2, "1111"),
        evaluation("step-000004", 4, "1100"),
        evaluation("step-000006", 6, "1110"),
        evaluation("step-000008", 8, "1101"),
        evaluation("step-000009", 9, "????"),
        evaluation("after-this", 10, "10001000"),
        evaluation("step-000010", 10, "1111"),
    ]
    best = {upto: best_of(reversed(found), "pass@1", 2, upto) for upto in (3, 4, 5, 7, 8, 9, 10)}
    steps = {upto: each and each.step for upto, each in best.items()}
    # The first of equals; of step 10 the evaluation with more samples; the end of the stage before is not of this one.
    assert steps == {3: None, 4: 4, 5: 4, 7: 6, 8: 6, 9: 6, 10: 6}
    assert best_of(found[4:5], "pass@1", 2, 10) is None
    graded = evaluation("step-000012", 12, "0000")
    assert best_of([graded, found[1]], "score/mean", 2, 12) == found[1]


STAGES = [
    {"name": "first", "steps": 4, "best": "pass@1"},
    {"name": "second", "steps": 2, "method": {"objective": {"name": "clip", "kl_weight": 0.1}}},
]
MARKS = {"before": "1111", "step-000001": "1000", "step-000002": "1110", "step-000003": "1011", "after-first": "0011"}


def recipe(folder: Path, **sections: Any) -> dict[str, Any]:
    made = running.recipe(
        folder,
        warmup={"steps": 0},
        evaluate={"every": 1, "samples": 1},
        rollout={"prompts": 2, "group": 2},
        **sections,
    )
    del made["train"]["steps"]
    return {**made, "stages": STAGES}


def marked(self: Trainer, label: str, samples: int, interrupt: Any) -> Evaluation:
    """An evaluation that says what :data:`MARKS` has for its label."""
    return evaluation(label, self.step, MARKS.get(label, "0000"))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "evaluate", marked)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "evaluate", marked)
        assay.train(recipe(folder), quiet=True)
    return folder


def weights(folder: Path) -> dict[str, Any]:
    return {name: value.tolist() for name, value in load_file(next(folder.rglob("model.safetensors"))).items()}


class Fails:
    """Fails after a step, as if the machine had."""

    def __init__(self, at: int):
        self.at = at

    def on_step(self, run: Any, metrics: Any) -> None:
        if run.step == self.at:
            raise KeyError("the machine")


def test_the_next_stage_begins_with_the_best_weights(whole: Path) -> None:
    assert [path.name for path in (whole / "best").iterdir()] == ["rl-000002"]
    # What the second stage set aside as its reference are the weights that it began with.
    assert weights(whole / "reference-2") == weights(whole / "best" / "rl-000002")


@pytest.mark.parametrize("at", [3, 5])
def test_a_run_that_failed_in_either_stage_finds_them_too(told: None, whole: Path, tmp_path: Path, at: int) -> None:
    folder = tmp_path / "run"
    with pytest.raises(RunError, match="the machine"):
        assay.train(recipe(folder), callbacks=[Fails(at)], quiet=True)
    assay.train(resume=folder, quiet=True)
    assert_same(folder, whole)
    assert weights(folder / "reference-2") == weights(whole / "reference-2")


def test_best_weights_that_are_damaged_are_named(told: None, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(RunError, match="the machine"):
        assay.train(recipe(folder), callbacks=[Fails(5)], quiet=True)
    next((folder / "best").rglob("model.safetensors")).write_bytes(b"")
    with pytest.raises(RunError, match=r"rl-000002: it lacks policy/model.safetensors; put them back"):
        assay.train(resume=folder, quiet=True)


def test_without_a_verdict_the_last_weights_go_on(
    told: None, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    assay.train(recipe(folder))
    assert "stage 'first': best at step 2, pass@1 0.750; going on from there" in capfd.readouterr().err
    assert weights(folder / "reference-2") != weights(folder / "checkpoints" / "rl-000004")
    for label in MARKS:
        monkeypatch.setitem(MARKS, label, "????")
    assay.train(recipe(tmp_path / "other"))
    assert "nothing could be judged, so no weights are best; going on from the last" in capfd.readouterr().err
    last = weights(tmp_path / "other" / "checkpoints" / "rl-000004")
    assert weights(tmp_path / "other" / "reference-2") == last
    assert weights(folder / "checkpoints" / "rl-000004") == last, "the first stage is the same in both"


def single(folder: Path, **run: Any) -> dict[str, Any]:
    made = recipe(folder)
    del made["stages"]
    made["train"]["steps"] = 4
    return {**made, "run": {**made["run"], "checkpoint_every": 1, **run}}


def test_a_run_keeps_its_best_weights(told: None, whole: Path, tmp_path: Path, capfd: Any) -> None:
    folder = tmp_path / "run"
    result = assay.train(single(folder, best="pass@1"))
    assert result.best == folder / "best" / "rl-000002" and kept_best(folder) == [result.best]
    assert f"best at step 2, pass@1 0.750: {result.best}" in capfd.readouterr().err
    # The first stage of the other run is the same up to there.
    assert weights(result.best) == weights(whole / "reference-2")
    target = resolve(str(result.best))
    assert (target.step, target.trained, target.folder) == (2, True, result.best / "policy")
    assert assay.train(single(tmp_path / "other"), quiet=True).best is None
    assert not (tmp_path / "other" / "best").exists()


def test_the_best_weights_of_a_run_that_failed_and_of_one_that_is_extended(
    told: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(RunError, match="the machine"):
        assay.train(single(folder, best="pass@1"), callbacks=[Fails(3)], quiet=True)
    result = assay.train(resume=folder, quiet=True)
    assert [path.name for path in kept_best(folder)] == ["rl-000002"]
    monkeypatch.setitem(MARKS, "step-000005", "1111")
    longer = assay.train(resume=folder, overrides=["train.steps=6"], quiet=True)
    assert result.best != longer.best == folder / "best" / "rl-000005"


def test_best_weights_that_nobody_kept_are_told_of(told: None, tmp_path: Path, capfd: Any) -> None:
    """The run is extended with what keeps them, after they were the best."""
    assay.train(single(tmp_path / "run"), quiet=True)
    assay.train(resume=tmp_path / "run", overrides=["train.steps=6", "run.best=pass@1"])
    assert "best at step 2, pass@1 0.750: not kept" in capfd.readouterr().err


@pytest.mark.parametrize(("keep", "steps"), [(1, [4]), (2, [3, 4]), (3, [2, 3, 4]), ("all", [0, 1, 2, 3, 4])])
def test_so_many_checkpoints_stay(told: None, tmp_path: Path, keep: Any, steps: list[int]) -> None:
    folder = tmp_path / "run"
    assay.train(single(folder, keep=keep), quiet=True)
    assert [path.name for path in checkpoints(folder)][-len(steps) :] == [f"rl-{step:06d}" for step in steps]
    assert keep == "all" or len(checkpoints(folder)) == keep


def test_the_card_of_earlier_weights_says_nothing_of_later_ones(told: None, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assay.train(single(folder, best="pass@1", keep="all"), quiet=True)
    last, best, first = (model_card(folder, "me/it", step) for step in (None, 2, 0))
    assert "| after | 4 |" in last and "4 steps of RL" in last and "value: 0.0000" in last
    assert "| step-000002 | 2 |" in best and "step-000003" not in best and "| after |" not in best
    assert "2 steps of RL" in best and "value: 0.7500" in best
    assert "0 steps of RL" in first and "value: 1.0000" in first
    assert weights_of(folder, "best") == folder / "best" / "rl-000002" / "policy"
    assert weights_of(folder, "rl-000001") == folder / "checkpoints" / "rl-000001" / "policy"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evaluate": {"every": 0}}, r"told by evaluations within its 4 steps; set evaluate\.every below"),
        ({"evaluate": {"every": 4}}, "told by evaluations within its 4 steps"),
        ({"evaluate": {"every": 3, "samples": 0}}, "evaluate.samples above 0"),
        ({"stages": [{"name": "last", "steps": 4, "best": "pass@1"}]}, "'last': best .* none follows; set run.best"),
        ({"stages": [{"name": "last", "steps": 4, "best": "entropy"}]}, "best"),
        ({"run": {"best": "pass@1"}, "evaluate": {"every": 2}}, r"run\.best is told by evaluations within its 2 steps"),
        ({"stages": [], "run": {"best": "pass@1"}, "evaluate": {"every": 0}}, r"run\.best .* within its 100 steps"),
        ({"run": {"keep": 0}}, "keep"),
    ],
)
def test_what_cannot_be_told_is_said_at_once(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_config({"stages": STAGES, "evaluate": {"every": 1}, **changes})
