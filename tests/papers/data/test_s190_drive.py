"""DRIVE: its stages in one small run, what is tried and kept, and what a group of many says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics, tables

import assay
from assay.batch import Batch, Reward
from assay.config import load_config
from assay.curriculum.hardest import lowest
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.data.s190_drive import informative
from assay.registry import build
from assay.tasks.listed import Listed
from assay.types import Ask, Episode, Group, Task, Verdict


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe, each stage cut to what shows it; in the last, four problems are tried and the harder two stay."""
    folder = tmp_path_factory.mktemp("drive") / "run"
    changes = [
        "model.nano={hidden = 16, layers = 1, heads = 2, context = 64}",
        "stages.shown.steps=2",
        "stages.shown.rollout.prompts=3",
        "stages.shown.tasks.first=200",
        "stages.broad.steps=1",
        "stages.broad.rollout.max_tokens=3",
        "stages.hard.steps=5",
        "method.options={pool = 4, keep = [0.5, 0.5], steps = 1}",
        "stages.hard.rollout={prompts = 2, group = 6, max_tokens = 4}",
        "rollout.prompts=2",
        "tasks.eval_size=4",
        "evaluate.samples=0",
        "run.report=false",
        f"run.dir={folder}",
    ]
    assay.train("drive", overrides=changes, quiet=True)
    return folder


def test_the_recipe_goes_through_its_stages(whole: Path) -> None:
    rows, found = metrics(whole), list(tables(whole, "rollouts").values())
    assert [row["stage_number"] for row in rows] == [1, 1, 2, 3, 3, 3, 3, 3]
    assert [len(step) for step in found] == [3, 3, 16, 12, 12, 12, 12, 12]
    assert all(row["passed"] for step in found[:2] for row in step)
    assert all(row["length"] <= 3 for row in found[2]) and rows[2]["truncated"] > 0
    full = load_config("drive")
    sizes = [(s.rollout.get("group"), s.rollout.get("max_tokens", full.rollout.max_tokens)) for s in full.stages[1:]]
    assert (full.rollout.group, sizes) == (8, [(None, 36), (64, 48)])


def test_a_phase_begins_by_trying_all_that_are_left(whole: Path) -> None:
    rows, found = metrics(whole)[3:], list(tables(whole, "rollouts").values())[3:]
    asked = [{row["task_id"] for row in step} for step in found]
    assert len(asked[0] | asked[1]) == 4 and asked[2] <= asked[0] | asked[1]
    assert [row["unselected"] for row in rows] == [1, 1, 0, 1, 0], "what is only tried is not learned from"
    assert asked[3] == asked[2] and len(asked[4]) == 1


def test_three_phases_on_72_and_50_and_25_problems() -> None:
    found = make_method("S190").curriculum
    left, sizes = {str(i): 0.0 for i in range(found["pool"])}, []
    for share in found["keep"]:
        left = dict.fromkeys(lowest(left, share), 0.0)
        sizes.append(len(left))
    assert (found["pool"], found["steps"], sizes) == (72, 50, [72, 50, 25])


def test_the_hardest_stay() -> None:
    rates = {"a": 0.9, "b": 0.6, "c": 0.3, "d": 0.1, "e": 0.0, "f": 0.05}
    assert lowest(rates, 0.5) == ["d", "e", "f"] and lowest({k: rates[k] for k in "def"}, 0.5) == ["e", "f"]


def test_what_was_dropped_never_comes_back(whole: Path) -> None:
    found = list(tables(whole, "rollouts").values())[3:]
    asked = [{row["task_id"] for row in step} for step in found]
    assert all(later <= set().union(*asked[:k]) for k, later in enumerate(asked) if k >= 2)
    assert asked[4] <= asked[3] <= asked[2]


def test_how_often_a_group_says_something() -> None:
    assert informative(0.02, 8) == pytest.approx(0.149237, abs=5e-7)
    assert informative(0.02, 64) == pytest.approx(0.725546, abs=5e-7)
    assert informative(0.02, 64) / informative(0.02, 8) == pytest.approx(4.86, abs=5e-3)
    draws = np.random.default_rng(0).binomial(4, 0.3, 200_000)
    assert informative(0.3, 4) == pytest.approx(float(((draws > 0) & (draws < 4)).mean()), abs=4e-3)
    assert informative(0.0, 8) == informative(1.0, 8) == 0


def episode(stop: str) -> Episode:
    return Episode(np.arange(2), np.arange(3), np.ones(3, bool), np.zeros(3, np.float32), "x", stop)  # type: ignore[arg-type]


def test_a_response_that_was_cut_off_earns_nothing() -> None:
    task = Task("t", "q")
    episodes = tuple(episode(stop) for stop in ("eos", "length", "eos", "length", "stop"))
    verdicts = (Verdict.right(), Verdict.right(), Verdict.wrong(), Verdict.wrong(), Verdict.abstain("?"))
    batch = Batch.from_groups([Group(Ask(task, 5), episodes, verdicts)])
    reward = make_method("S190").reward(batch)
    assert reward.values.tolist() == [1, 0, 0, 0, 0]
    assert reward.valid is not None and reward.valid.tolist() == [True, True, True, True, False]
    assert reward.terms["cut"].tolist() == [0, 1, 0, 1, 0]
    punished = build("reward", {"name": "finished", "unfinished": -0.5})(batch)
    assert punished.values.tolist() == [1, -0.5, 0, -0.5, 0]


def test_only_the_ends_earn_tokens() -> None:
    """Rewards on tokens of a response that was cut off go too."""

    class Tokens:
        def __call__(self, batch: Batch) -> Reward:
            return Reward(torch.ones(2), torch.full((2, 3), 0.25), terms={})

    group = Group(Ask(Task("t", "q"), 2), (episode("eos"), episode("length")), (Verdict.right(),) * 2)
    reward = build("reward", {"name": "finished", "reward": Tokens()})(Batch.from_groups([group]))
    assert reward.tokens is not None and reward.tokens.sum(-1).tolist() == [0.75, 0]


def test_hard_tasks_are_repeated() -> None:
    tasks = [Task(str(i), str(i), meta={"difficulty": d}) for i, d in enumerate(["easy", "hard", "medium", "hard"])]
    source = build("tasks", {"name": "repeated", "source": Listed(tasks), "times": {"hard": 2, "medium": 3}})
    assert [source[i].id for i in range(source.size)] == ["0", "1", "1#2", "2", "2#2", "2#3", "3", "3#2"]
    assert source[2] == replace(tasks[1], id="1#2")
    fewer = build("tasks", {"name": "repeated", "source": Listed(tasks), "times": {"hard": 0}, "first": 3})
    assert [fewer[i].id for i in range(fewer.size)] == ["0", "2"]
    with pytest.raises(IndexError):
        fewer[2]
    for options, words in (
        ({"source": "arithmetic", "times": {}}, "has no end; say first"),
        ({"source": Listed(tasks), "times": {}, "first": 9}, "first = 9 of a source of 4 tasks"),
        ({"source": Listed(tasks), "times": {"easy": -1}}, "cannot be there -1 times"),
        ({"source": Listed(tasks[:1]), "times": {"easy": 0}}, "no task is left"),
    ):
        with pytest.raises(UsageError, match=words):
            build("tasks", {"name": "repeated", **options})
    by_digits = load_config("drive").stages[0].tasks
    assert isinstance(by_digits, dict)
    shown = build("tasks", {**by_digits, "first": 300})
    long = sum(shown[i].meta["difficulty"] == 4 for i in range(shown.size))
    plain = build("tasks", {**by_digits, "first": 300, "times": {}})
    assert long == 2 * sum(plain[i].meta["difficulty"] == 4 for i in range(300))
