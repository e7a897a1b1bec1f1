"""Warm-up on puzzles: their uniqueness, unfiltered traces, two stages in one run, and none at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import metrics, tables

import assay
from assay.errors import UsageError
from assay.lab.settings.bandits.warmed import Setting
from assay.method import make_method
from assay.registry import build
from assay.tasks.puzzles.knights_knaves import ALPHABET, steps
from assay.types import Task
from assay.verify import KindVerifier
from assay.verify.puzzles.knights_knaves import holds, solutions

VERIFIER = KindVerifier()
SMALL = [
    "model.nano={hidden = 16, layers = 1, heads = 2, context = 128}",
    "warmup.steps=1",
    "warmup.batch=4",
    "stages.puzzles.rollout.prompts=3",
    "rollout={prompts = 2, group = 3, max_tokens = 4, temperature = 0.7, top_p = 0.95}",
    "tasks.eval_size=4",
    "evaluate.samples=0",
    "run.report=false",
]


def make(**options: Any) -> Any:
    return build("tasks", {"name": "knights_knaves", **options})


def test_the_worked_puzzle() -> None:
    """A says that B is a knave, B that both are the same: A is a knight, B a knave."""
    said: list[list[Any]] = [["A", ["knave", "B"]], ["B", ["iff", ["knight", "A"], ["knight", "B"]]]]
    assert solutions(json.dumps([["A", "B"], said])) == ((True, False),)
    found = list(steps(["A", "B"], said, {"A": True, "B": False}))
    assert [(w["A"], w["B"], against) for w, against in found] == [(True, True, "A"), (True, False, None)]
    wrong = list(steps(["A", "B"], said, {"A": True, "B": False}, slip=2))
    assert [against for _, against in wrong] == ["A", "A", "B", None] and wrong[-1][0] == {"A": False, "B": False}


@pytest.mark.parametrize("style", ["words", "compact"])
def test_two_hundred_puzzles_have_one_answer_each(style: str) -> None:
    source, sizes = make(style=style, people=5, min_people=3, depth=2), set()
    for task in (source[i] for i in range(200)):
        people, said = task.reference["people"], task.reference["statements"]
        [only] = solutions(json.dumps([people, said]))
        sizes.add(len(people))
        assert VERIFIER(task, task.solution).passed
        world = dict(zip(people, only, strict=True))
        assert all(holds(what, world) == world[who] for who, what in said)
        if style == "compact":
            assert set(task.prompt + task.solution) <= set(ALPHABET)
        for i, name in enumerate(people):  # nothing but the one answer is accepted
            knights = [only[j] != (i == j) for j in range(len(people))]
            words = ("n", "k") if style == "compact" else ("knave", "knight")
            claimed = ", ".join(f"{who} is a {words[k]}" for who, k in zip(people, knights, strict=True))
            assert not VERIFIER(task, claimed).passed, name
    assert sizes == {3, 4, 5}


def test_traces_are_not_filtered() -> None:
    """A share of them is wrong, and said to be; the supervised stage takes them all."""
    source = make(slips=0.3, style="compact")
    tasks = [source[i] for i in range(400)]
    wrong = [not VERIFIER(task, task.solution).passed for task in tasks]
    assert wrong == [task.meta["slipped"] for task in tasks] and 0.23 < sum(wrong) / 400 < 0.37
    assert not any(make(slips=0.0)[i].meta["slipped"] for i in range(50))
    assert len(tasks[0].solution.splitlines()) > 1
    assert make(solutions="answers")[3].solution == make()[3].solution.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"people": 8}, "min_people 2 and people 8"),
        ({"min_people": 1}, "min_people 1"),
        ({"depth": 0}, "depth 0"),
        ({"slips": 1.5}, r"slips 1.5 in \[0, 1\]"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make(**options)


def trained(folder: Path, *changes: str) -> Path:
    assay.train("warm_up", overrides=[*SMALL, f"run.dir={folder}", *changes], quiet=True)
    return folder


def test_the_recipe_goes_from_puzzles_to_few_problems(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "stages.puzzles.steps=2", "stages.target.steps=1")
    rows = [row for row in metrics(run) if row["stage"] == "rl"]
    assert [row["stage_number"] for row in rows] == [1, 1, 2]
    shown, again, target = tables(run, "rollouts").values()
    source = make(people=3, slips=0.2, style="compact")
    known: dict[str, Task] = {source[i].id: source[i] for i in range(20)}
    assert [row["response"] for row in shown + again] == [known[row["task_id"]].solution for row in shown + again]
    assert all("+" in row["prompt"] for row in target) and len(target) == 6
    full = assay.config.load_config("warm_up")
    assert isinstance(full.stages[1].tasks, dict) and full.stages[1].tasks["first"] == 100
    sampling = (full.rollout.group, full.rollout.temperature, full.rollout.top_p, full.train.max_grad_norm)
    assert sampling == (10, 0.7, 0.95, 0.1)


@pytest.mark.parametrize(
    ("text", "passed", "plain", "graded"),
    [
        ("so 4 </think> <answer> \\boxed{4} </answer>\n", True, 2, 2),
        ("so 5 </think><answer>\\boxed{5}</answer>", False, -0.5, -0.5),
        ("so 4</think><answer>4</answer>", True, 2, -1),
        ("so 4</think><answer>\\boxed{4}</answer> indeed", True, 2, -2),
        ("so 4</think> it is <answer>\\boxed{4}</answer>", True, 2, -2),
        ("</think><answer>\\boxed{4}</answer>", True, 2, -2),
        ("a</think>b</think><answer>\\boxed{4}</answer>", True, 2, -2),
        ("a</think><answer>1</answer><answer>\\boxed{4}</answer>", True, 2, -2),
        ("4", False, -0.5, -2),
    ],
)
def test_grades_by_hand(make_batch: Callable[..., Any], text: str, passed: bool, plain: float, graded: float) -> None:
    batch = make_batch([1, 1], passed=[passed, None], texts=[text, text])
    for form, wanted in ((False, plain), (True, graded)):
        found = make_method("S215", options={"form": form}).reward(batch)
        assert found.values[0] == wanted and found.valid.tolist() == [True, False]


def test_grpo_without_its_biases(make_batch: Callable[..., Any]) -> None:
    method = make_method("S215")
    batch = method.value(make_batch([1, 2, 1, 1], rewards=[1.0, 0, 0, 0], passed=[True, False, False, False]))
    # Rewards 2 and thrice -0.5, their mean 0.125.
    assert batch.advantages[:, 0].tolist() == pytest.approx([1.875, -0.625, -0.625, -0.625])
    objective = method.objective
    assert (objective.kl_weight, objective.aggregation, objective.clip_low) == (0.0, "token_mean", 0.2)


def test_without_traces_it_is_rl_alone(tmp_path: Path) -> None:
    target = assay.config.load_config("warm_up").stages[1]
    alone = {"name": "target", "steps": 2, "tasks": target.tasks}
    data = assay.config.load_config("warm_up").model_dump(mode="json", exclude_unset=True)
    small = [s for s in SMALL if not s.startswith("stages")]
    assay.train({**data, "stages": [alone]}, overrides=[*small, f"run.dir={tmp_path / 'one'}"], quiet=True)
    plain = {**data, "stages": [], "tasks": {**data["tasks"], "source": target.tasks}}
    # Warmed up on the same sums: both runs show those of the stage, as there is no other.
    assay.train(plain, overrides=[*small, "train.steps=2", f"run.dir={tmp_path / 'two'}"], quiet=True)
    keys = ("loss", "reward/mean", "length/mean", "entropy", "lr")
    first, second = ([{k: row[k] for k in keys if k in row} for row in metrics(tmp_path / n)] for n in ("one", "two"))
    assert first == second and len(first) == 3


def test_four_models_are_measured_on_both_domains(tmp_path: Path) -> None:
    plain = Setting(problems=6, steps=6).run({"warm": 0, "method": {"name": "S215"}}, 0, tmp_path)
    warm = Setting(problems=6, steps=6).run({"warm": 10, "method": {"name": "S215"}}, 0, tmp_path)
    for domain in ("target", "other"):
        assert plain[f"{domain}/base"] == plain[f"{domain}/warm"] == warm[f"{domain}/base"]
        assert warm[f"{domain}/warm"] > plain[f"{domain}/base"] + 0.05
        assert warm[domain] != warm[f"{domain}/warm"] and plain[domain] != plain[f"{domain}/base"]
    assert plain["rollouts"] == warm["rollouts"] == 6 * 4 * 10
