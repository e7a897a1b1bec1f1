"""A run that looks at its data before a step: what it keeps of that, and that one which goes on does not look again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from running import assert_same, metrics, recipe

import assay
from assay.compare.budget import Budget, BudgetedTrainer
from assay.config import load_config
from assay.console import Reporter
from assay.curriculum.sifted import Sifted
from assay.errors import RunError, UsageError
from assay.records.surveys import Piece, plain, read_survey, survey_file, surveys_after, write_piece
from assay.training.build import build_trainer

pytestmark = pytest.mark.usefixtures("one_thread")

FIRST = Piece(["a", "b"], [{"task": "a", "values": [0.1, None]}, {"task": "b", "values": [1e300, -2.5]}])
SECOND = Piece(["c"], [])


def test_pieces_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = survey_file(tmp_path, 12)
    assert path == tmp_path / "surveys" / "step-000012.jsonl" and read_survey(path) == []
    write_piece(path, [], FIRST)
    write_piece(path, [FIRST], SECOND)
    assert read_survey(path) == [FIRST, SECOND]
    # Other tasks than were asked then: what is behind the pieces that are kept goes.
    write_piece(path, [], SECOND)
    assert read_survey(path) == [SECOND]


@pytest.mark.parametrize("torn", [b'{"tasks": ["c"], "ro', b"[1]\n", b'{"tasks": 1, "rows": []}\n', b"\xff\xfe\n"])
def test_a_torn_piece_is_dropped(tmp_path: Path, torn: bytes) -> None:
    path = survey_file(tmp_path, 0)
    write_piece(path, [], FIRST)
    with path.open("ab") as file:
        file.write(torn)
    assert read_survey(path) == [FIRST]
    write_piece(path, [FIRST], SECOND)
    assert read_survey(path) == [FIRST, SECOND]


def test_rows_of_other_tasks_are_no_piece(tmp_path: Path) -> None:
    write_piece(survey_file(tmp_path, 0), [], Piece(["a"], [{"task": "b"}]))
    assert read_survey(survey_file(tmp_path, 0)) == []


def test_what_json_does_not_know(tmp_path: Path) -> None:
    assert plain({"x": (1, float("nan"), [float("nan")]), "y": "z"}) == {"x": [1, None, [None]], "y": "z"}


def test_surveys_of_later_steps(tmp_path: Path) -> None:
    for step in (0, 4, 10):
        write_piece(survey_file(tmp_path, step), [], FIRST)
    (tmp_path / "surveys" / "step-mine.jsonl").write_text("")
    assert {p.name for p in surveys_after(tmp_path, 4)} == {"step-000010.jsonl"}
    assert len(surveys_after(tmp_path, -1)) == 3 and surveys_after(tmp_path / "none", 0) == []


def sections(folder: Path, **more: Any) -> dict[str, Any]:
    """Four steps on what a filter leaves of seven sums, looked at before the first and the third, two at a time."""
    curriculum = {"name": "sifted", "filters": ["key_spread"], "tries": 3, "every": 2, "pool": 7}
    made = recipe(folder, rollout={"max_rows": 6}, **more)
    made["method"]["curriculum"] = curriculum
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assay.train(sections(folder), quiet=True)
    return folder


def test_pieces_are_kept_as_they_come(whole: Path) -> None:
    assert sorted(p.name for p in (whole / "surveys").iterdir()) == ["step-000000.jsonl", "step-000002.jsonl"]
    for step in (0, 2):
        pieces = read_survey(survey_file(whole, step))
        assert [len(p.tasks) for p in pieces] == [2, 2, 2, 1]
        assert [row["task"] for p in pieces for row in p.rows] == [task for p in pieces for task in p.tasks]


class Out(Exception):
    """Nothing that a run expects."""


@pytest.mark.parametrize(("dies", "kept", "left"), [(3, (2, 0), 2 + 4), (6, (4, 1), 3)])
def test_a_run_that_goes_on_looks_at_what_is_left(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: int, kept: tuple[int, int], left: int
) -> None:
    """It dies at the third look of the first survey, or the second of the second; and is the same run in the end."""
    calls: list[int] = []
    look = Sifted.look

    def counted(part: Sifted, groups: Any, batch: Any) -> Any:
        calls.append(len(groups))
        if len(calls) == dies:
            raise Out
        return look(part, groups, batch)

    monkeypatch.setattr(Sifted, "look", counted)
    with pytest.raises(Out):
        assay.train(sections(tmp_path / "run"), quiet=True)
    found = [len(read_survey(survey_file(tmp_path / "run", step))) for step in (0, 2)]
    assert found == list(kept)
    calls.clear()
    calls.extend([0] * 100)
    assay.train(resume=tmp_path / "run", quiet=True)
    assert len(calls) - 100 == left
    assert_same(whole, tmp_path / "run")
    for step in (0, 2):
        a, b = (survey_file(run, step).read_bytes() for run in (whole, tmp_path / "run"))
        assert a == b


def test_looking_changes_nothing_else(tmp_path: Path) -> None:
    """Where nothing is dropped, the steps are the same however much was looked at."""
    found = []
    for name, tries in (("a", 1), ("b", 4)):
        made = sections(tmp_path / name)
        made["method"]["curriculum"] |= {"filters": [{"name": "key_spread", "drop": 0.0}], "tries": tries, "every": 0}
        assay.train(made, quiet=True)
        found.append([row for row in metrics(tmp_path / name) if row["stage"] == "rl"])
    assert found[0] == found[1] and len(found[0]) == 4


def test_asking_ahead_is_refused(tmp_path: Path) -> None:
    config = load_config(sections(tmp_path / "run", overlap={"staleness": 1}))
    with pytest.raises(UsageError, match="Sifted looks at the data first, by the weights of the moment"):
        build_trainer(config, Reporter(quiet=True))


def test_a_signal_that_nobody_has_learn_is_refused(tmp_path: Path) -> None:
    made = sections(tmp_path / "run")
    made["method"]["curriculum"] = {"name": "sifted", "filters": [Learned()], "pool": 3}
    with pytest.raises(UsageError, match="reads the signal 'mine', which learns, and no part"):
        assay.train(made, quiet=True)


@pytest.mark.parametrize(("amount", "steps", "spent"), [(65, 2, 45), (77, 2, 66), (78, 3, 78), (21, None, 0)])
def test_a_budget_pays_for_what_is_looked_at(tmp_path: Path, amount: int, steps: int | None, spent: int) -> None:
    """Looks take 7 times 3 responses before the first and the third step, steps 4 times 3; no part of one is taken."""
    made = partial(BudgetedTrainer, budget=Budget("rollouts", amount))
    trainer = build_trainer(load_config(sections(tmp_path / "run")), Reporter(quiet=True), kind=made)
    if steps is None:
        with pytest.raises(RunError, match="one step takes more than the budget of 21 rollouts"):
            trainer.run()
        return
    trainer.run()
    assert trainer.step == steps and trainer.meter.spent == spent  # type: ignore[attr-defined]


class Mine:
    name = "mine"

    def learn(self, batch: Any, models: Any) -> dict[str, float]:
        return {}


class Learned:
    needs = frozenset({Mine()})

    def of_prompts(self, batch: Any) -> list[float]:
        raise RunError("never asked")
