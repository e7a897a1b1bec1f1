"""ORBIT: rubrics after the example of others, two filters, signed sums, masked groups and temperatures of stages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from marked import Critic, stepped
from running import metrics, recipe
from tasks.making.told import Told

import assay
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.judges.s113_orbit import Near, Rubrics, orbit, rubrics, stages_of
from assay.select.reward_range import RewardRange
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.marked import Windows
from assay.tasks.making.task_file import write_tasks
from assay.tasks.making.work import Pipeline
from assay.types import Task
from assay.verify.rubric.criteria import Rubric

pytestmark = pytest.mark.usefixtures("one_thread")

POINTS = [{"criterion": f"c{k}", "points": w} for k, w in enumerate((8, 5, -6, 3))]
MET = [(1, 0, 0, 1), (1, 1, 1, 0), (0, 0, 1, 0), (1, 1, 0, 1)]


def labels(row: Any) -> str:
    return json.dumps(["yes" if x else "no" for x in row])


def test_the_reward_is_a_signed_sum() -> None:
    """8, 5, -6 and 3 points: 11, 7, -6 and 16, of mean 7 and deviation 8.1548."""
    critic = Critic(lambda p, k: labels(MET[int(p.partition("Response:\n")[2][0])]))
    batch = stepped([[1]] * 4, [True] * 4, texts=list("0123"))
    batch.tasks = [Task("t", "q", kind="none", meta={"rubric": POINTS})] * 4
    batch.prompt_group = batch.group
    orbit(critic).value(batch)
    assert batch.rewards.tolist() == [11, 7, -6, 16] and batch.weights.tolist() == [1] * 4
    assert batch.advantages[:, 0].tolist() == pytest.approx([0.4905, 0, -1.5942, 1.1037], abs=2e-4)


def test_groups_without_range_are_masked() -> None:
    """Ranges 22, 0 and .5; a sample without a reward has no part in one."""
    batch = stepped([[1]] * 7, [True] * 7, groups=[0, 0, 1, 1, 2, 2, 1])
    batch.prompt_group, batch.valid[6] = batch.group, False
    batch.rewards[:] = batch.rewards.new_tensor([16, -6, 3, 3, 0.5, 1, 9])
    assert RewardRange()(batch).tolist() == [1, 1, 0, 0, 1, 1, 0]
    assert RewardRange(0.5)(batch).tolist() == [1, 1, 0, 0, 0, 0, 0]
    batch.rewards[:2] = batch.rewards.new_tensor([0, 1.2e-6])
    batch.rewards[4:6] = batch.rewards.new_tensor([0, 0.8e-6])
    assert RewardRange()(batch).tolist() == [1, 1, 0, 0, 0, 0, 0], "a range of 1e-6 is none"
    assert RewardRange(0)(batch).tolist() == [1, 1, 0, 0, 1, 1, 0]
    with pytest.raises(UsageError, match="below 0"):
        RewardRange(-1.0)
    made: Any = make_method("S113", options={"judge": Critic(labels), "delta": 0.3, "rubric": ["x"]})
    assert made.select == RewardRange(0.3) and made.credit.ddof == 0 and len(made.reward.judge.also) == 1


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [1, 2, 3]),
        ({"most": 1.1}, [0, 1, 2, 3]),
        ({"most": 0.5}, [2, 3]),
        ({"most": 0.2}, [2]),
        ({"low": 0.4375, "high": 0.4375}, [1, 2, 3]),
        ({"low": 0.44}, "too hard"),
        ({"high": 0.43}, "too easy"),
        ({"most": 1e-9}, [2]),
    ],
)
def test_two_filters(options: dict[str, float], kept: Any) -> None:
    """Marks 1100, 1001, 1000, 1100: mean 7/16, and of criteria 1, 1/2, 0 and 1/4."""
    rows = ["1100", "1001", "1000", "1100"]
    critic = Told(lambda p, j: labels(map(int, rows[int(p.partition("Response:\n")[2][0])])))
    models = {"solver": Model("s", Told(lambda p, j: str(j))), "critic": Model("c", critic)}
    step = Pipeline("w", [("windows", Windows(4, **options))])
    found = Maker(step, models).make([Task("t", "q", meta={"rubric": POINTS})])
    if isinstance(kept, str):
        assert found.counts["windows"].dropped == {kept: 1}
    else:
        [task] = found.tasks
        assert task.meta["score"] == 0.4375 and [c["text"] for c in task.meta["rubric"]] == [f"c{k}" for k in kept]
        assert [c["weight"] for c in task.meta["rubric"]] == [(8, 5, -6, 3)[k] for k in kept]


def test_what_the_filters_cannot_use() -> None:
    models = {"solver": Model("s", Told(lambda p, j: "r")), "critic": Model("c", Told(lambda p, j: "?"))}
    found = Maker(Pipeline("w", [("w", Windows(2))]), models).make([Task("t", "q", meta={"rubric": ["a"]})])
    assert found.counts["w"].dropped == {"no marks can be read": 1}
    always = models | {"critic": Model("a", Told(lambda p, j: '["yes", "no"]' if j == 0 else "?"))}
    both = [Task("t", "q", meta={"rubric": ["a", "b"]})]
    assert [
        c["text"] for c in Maker(Pipeline("w", [("w", Windows(2))]), always).make(both).tasks[0].meta["rubric"]
    ] == ["b"]
    for bad in ({"n": 0}, {"low": 0.9, "high": 0.1}, {"met": 0.0}, {"most": 0.0}):
        with pytest.raises(UsageError, match="step windows"):
            Windows(**bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="task t has no rubric"):
        Windows().check([Task("t", "q")])


SEEDS = [
    Task("1", "A child has fever.", meta={"rubric": [{"criterion": "asks for the child's age", "points": 7}]}),
    Task("2", "An adult has fever.", meta={"rubric": [{"criterion": "names an antibiotic for fever", "points": -5}]}),
    Task("3", "My car is broken.", meta={"rubric": ["asks for the make"]}),
]


def test_rubrics_are_written_after_the_example_of_others() -> None:
    """Two of three cases share a word with the new one; the reranker prefers the second, and one is shown."""
    reply = [{"criterion": "asks how long", "points": 4}, {"criterion": "scares", "points": -3}, "third"]
    writer = Told(lambda p, j: json.dumps(reply))
    reranker = Told(
        lambda p, j: "Score: 9" if "An adult" in p or "antibiotic" in p else "Score: 2" if "age" in p else "?"
    )
    models = {"writer": Model("w", writer), "reranker": Model("r", reranker)}
    step = Pipeline("r", [("rubrics", Rubrics(SEEDS, cases=1, criteria=1, count=2))])
    found = Maker(step, models).make([Task("t", "My child has fever {now}.")])
    rows = found.tasks[0].meta["rubric"]
    assert [(c["text"], c["weight"]) for c in rows] == [("asks how long", 4), ("scares", -3)]
    asked = str(writer.asked[0].prompt)
    assert "An adult has fever.\nCriteria:\n- names an antibiotic for fever (-5)" in asked and "A child" not in asked
    assert "may apply:\n- names an antibiotic for fever\n\n" in asked and "fever {now}" in asked and "Write 2" in asked
    # What the reranker marks with 0 comes before what it says nothing of.
    lukewarm = models | {"reranker": Model("r", Told(lambda p, j: "Score: 0" if "adult" in p else "?"))}
    Maker(step, lukewarm).make([Task("t", "My child has fever.")])
    assert "An adult has fever." in str(writer.asked[-1].prompt) and "A child" not in str(writer.asked[-1].prompt)
    mute = models | {"writer": Model("m", Told(lambda p, j: "no"))}
    assert Maker(step, mute).make([Task("t", "fever")]).counts["rubrics"].dropped == {"no rubric is written": 1}
    for bad in (lambda: Rubrics(SEEDS, cases=0), lambda: Rubrics([]), lambda: Rubrics([Task("x", "q")])):
        with pytest.raises(UsageError):
            bad()


PLANE = {"fever": (1.0, 0.0), "car": (0.0, 1.0), "age": (0.6, 0.8), "antibiotic": (1.0, 0.0), "make": (0.0, 2.0)}


def plane(texts: list[str]) -> list[tuple[float, float]]:
    """A text is where the last of the words stands that it has."""
    return [next(v for word, v in reversed(PLANE.items()) if word in text) for text in texts]


def test_examples_by_meaning() -> None:
    """A query along the first axis: cosines 1 and .6 of the first case, 1 and 1 of the second, 0 and 0 of the third."""
    cases = Near([([t.question], [c.text for c in Rubric.of(t).criteria]) for t in SEEDS], plane)
    assert cases.top("fever", 3) == [(1, 1.0), (0, pytest.approx(0.8)), (2, 0.0)]
    [(best, score)] = Near([(["fever", "car"],), (["age"],)], plane).top("age", 1)
    assert (best, score) == (1, pytest.approx(1.0))  # the mean of both axes has the cosine 1.4 / sqrt 2
    assert Near([(["fever", "car"],)], plane).top("age", 1)[0][1] == pytest.approx(1.4 / 2**0.5)
    writer = Told(lambda p, j: json.dumps(["a"]))
    models = {"writer": Model("w", writer), "reranker": Model("r", Told(lambda p, j: "Score: 1"))}
    step = Pipeline("r", [("rubrics", Rubrics(SEEDS, cases=1, criteria=1, wide=1, embed=plane))])
    Maker(step, models).make([Task("t", "High temperature, perhaps fever.")])
    asked = str(writer.asked[0].prompt)
    assert (
        "An adult has fever." in asked and "names an antibiotic" in asked and "age" not in asked and "car" not in asked
    )


def test_the_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    write_tasks(path, SEEDS)
    steps = dict(rubrics(path).steps)
    assert list(steps) == ["rubrics", "windows"] and steps["windows"] == Windows(8, 0.1, 0.9, 0.5, 0.9) == Windows()
    assert (steps["rubrics"].cases, steps["rubrics"].criteria, steps["rubrics"].wide) == (3, 10, 20)
    assert steps["rubrics"].embed is None
    near = dict(rubrics(path, embed=f"{__file__}:plane").steps)["rubrics"]
    assert [i for i, _ in near._pool[2].top("car", 3)] == [2, 0, 1]


def test_temperatures_of_stages() -> None:
    stages = stages_of([5] * 6)
    assert [s["rollout"]["temperature"] for s in stages] == pytest.approx([1, 1.1, 1.21, 1.331, 1.4, 1.4])
    assert [s["name"] for s in stages[:2]] == ["stage-1", "stage-2"] and stages[0]["steps"] == 5
    assert [s.get("best") for s in stages] == ["score/mean"] * 5 + [None]
    assert not any("best" in s for s in stages_of([5, 5], best=None))
    assert [s["rollout"]["temperature"] for s in stages_of([5, 5], start=1.4)] == [1.4, 1.4]
    for bad in ({"gamma": 1.0}, {"start": 0.0}, {"start": 1.5}):
        with pytest.raises(UsageError, match="S113"):
            stages_of([1], **bad)


def test_a_run_is_paid_by_points(tmp_path: Path) -> None:
    """Three points for an odd digit, and minus two for an even one, in two stages."""
    judge = {"name": "keywords", "otherwise": '["no", "no"]'}
    judge["replies"] = [["Response:\n[^\n]*[13579]", '["yes", "no"]'], ["Response:\n[^\n]*[02468]", '["no", "yes"]']]
    points = [{"criterion": "odd", "points": 3}, {"criterion": "even", "points": -2}]
    made = recipe(
        tmp_path / "run",
        method={"name": "S113", "reward": None, "options": {"judge": judge, "rubric": points}},
        train={"mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 1, "samples": 1},
        rollout={"group": 6, "max_rows": 24},
    )
    del made["train"]["steps"]
    assay.train({**made, "stages": stages_of([2, 1])}, quiet=True)
    rows = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert len(rows) == 3 and all(-2 <= row["reward/mean"] <= 3 and row["grad_norm"] > 0 for row in rows)
