"""A user's own reward, as a user would write it: a function, a file, a weighted list; in a recipe and from Python."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running
import tomli_w

import assay
from assay.config import load_config
from assay.errors import RunError, UsageError
from assay.method import make_method
from assay.report import write_report
from assay.rewards.function import FunctionReward
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.shaping.weighted import WeightedSum
from assay.rewards.spec import reward_of
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")

FILE = """
from __future__ import annotations
from dataclasses import dataclass

import beside

@dataclass
class Options:
    scale: float = beside.SCALE

def brevity(task, response):
    return 1 / (1 + len(response)) * Options().scale

def digits(completions, **columns):
    return [sum(map(str.isdigit, c)) for c in completions]

def moody(completions):
    return [1 / len(c) for c in completions]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("SCALE = 2.0\n")
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


# A function that raises, or wants what is not there


def test_a_batch_function_that_raises_is_blamed_with_its_row(make_batch: Any) -> None:
    def moody(prompts: list[str], completions: list[str], reference: list[Any]) -> list[float]:
        return [1 / len(c) + r for c, r in zip(completions, reference, strict=True)]

    tasks = [Task(f"t{i}", "q", reference=r) for i, r in enumerate((1, 2, "3"))]
    batch = make_batch([1] * 3, texts=["a", "", "c"], tasks=tasks)
    with pytest.raises(
        RunError, match=r"moody raised ZeroDivisionError: .* for row 1 \(task t1, response ''\)"
    ) as error:
        FunctionReward(moody)(batch)
    assert "\n" not in str(error.value)


def test_what_only_a_batch_raises_is_said_of_the_batch(make_batch: Any) -> None:
    def proud(completions: list[str]) -> list[float]:
        if len(completions) > 1:
            raise ValueError("one at a time")
        return [1.0]

    with pytest.raises(RunError, match="raised ValueError: one at a time for 3 completions together, for none alone"):
        FunctionReward(proud)(make_batch([1] * 3))


def test_a_column_that_tasks_do_not_have_is_named(make_batch: Any) -> None:
    def exact(completions: list[str], ground_truth: list[str]) -> list[float]:
        return [1.0] * len(completions)

    with pytest.raises(RunError, match="exact wants the column 'ground_truth', which tasks do not have; they have ref"):
        FunctionReward(exact)(make_batch([1]))


def test_a_column_with_a_default_need_not_be_there(make_batch: Any) -> None:
    def exact(completions: list[str], ground_truth: Any = None, *, weight: float = 2.0) -> list[float]:
        return [weight if ground_truth is None else 0.0 for _ in completions]

    assert FunctionReward(exact)(make_batch([1])).values.tolist() == [2.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({0: 1.0, 1: 2.0}, "returned a dict for 2 completions"),
        ({1.0, 2.0}, "returned a set for 2"),
        ("ab", "returned 2 values for 2|returned a str for 2"),
        ((x for x in (1.0, 2.0)), "returned a generator for 2"),
        (np.zeros((3, 1)), "returned 3 values for 2"),
        (np.zeros((2, 1)), r"returned array\(\[0.\]\) for row 0"),
        ([[1.0], [2.0]], r"returned \[1.0\] for row 0"),
        ([1.0, "2"], "returned '2' for row 1"),
    ],
)
def test_wrong_shapes_name_the_function_and_the_value(make_batch: Any, value: Any, message: str) -> None:
    def mine(completions: list[str]) -> Any:
        return value

    with pytest.raises(RunError, match=f"reward function mine ({message})"):
        FunctionReward(mine)(make_batch([1, 1]))


@pytest.mark.parametrize("function", [lambda: 1.0, lambda response: 1.0, lambda task, response, extra: 1.0, dict])
def test_parameters_that_fit_no_signature_are_refused_before_the_run(function: Any) -> None:
    with pytest.raises(UsageError, match=r"fits neither|cannot be told"):
        FunctionReward(function)


def test_callables_of_any_kind(make_batch: Any) -> None:
    class Mine:
        def __call__(self, task: Task, response: str) -> float:
            return 3.0

    def scaled(task: Task, response: str, scale: float = 1.0) -> float:
        return scale

    assert FunctionReward(Mine())(make_batch([1])).values.tolist() == [3.0]
    assert FunctionReward(functools.partial(scaled, scale=4.0))(make_batch([1])).values.tolist() == [4.0]
    assert FunctionReward(lambda *both: 5.0)(make_batch([1])).values.tolist() == [5.0]


# Spelled


def test_a_reward_may_be_written_in_many_ways(file: Path, make_batch: Any) -> None:
    batch = make_batch([1], rewards=[0.5], texts=["123"])
    written: list[tuple[Any, float]] = [
        ("verdict", 0.5),
        ({"name": "verdict"}, 0.5),
        (VerdictReward(), 0.5),
        (f"{file}:brevity", 0.5),
        ({"function": f"{file}:digits"}, 3.0),
        ({"name": "function", "function": f"{file}:digits"}, 3.0),
        (lambda task, response: 7.0, 7.0),
        (["verdict", f"{file}:digits", {"function": f"{file}:brevity", "weight": 0.5}], 0.5 + 3 + 0.25),
        ([lambda task, response: 7.0, {"name": "verdict", "weight": -2}], 6.0),
    ]
    for spec, value in written:
        assert reward_of(spec)(batch).values.tolist() == [value], spec


def test_terms_of_a_list_are_called_by_their_own_names(file: Path, make_batch: Any) -> None:
    def mine(task: Task, response: str) -> float:
        return 2.0

    listed = [mine, f"{file}:digits", "verdict", mine, {"name": "verdict", "as": "right", "weight": 3.0}]
    found = reward_of(listed)(make_batch([1], rewards=[1.0], texts=["12"]))
    assert {k: v.tolist() for k, v in found.terms.items()} == {
        "mine": [2.0],
        "digits": [2.0],
        "verdict": [1.0],
        "mine 2": [2.0],
        "right": [1.0],
    }
    assert found.values.tolist() == [2 + 2 + 1 + 2 + 3]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (3, "reward is a int; give a function, a reward part or 'file.py:name'"),
        ("verdct", "did you mean 'verdict'"),
        ("nowhere.py:f", "no file 'nowhere.py'"),
        ([{"name": "verdict", "weight": "heavy"}], "the weight of 'verdict' is 'heavy', not a finite number"),
        ([{"name": "verdict", "weight": float("nan")}], "option weight = nan is no number"),
        ([{"name": "verdict", "as": "mean"}], "a term of a reward cannot be called 'mean'"),
        ({"name": "weighted", "terms": {"std": "verdict"}}, "cannot be called 'std'"),
        ([{"name": "verdict", "wieght": 2}], "has no 'wieght'; did you mean 'weight'"),
        (["verdict", {"fn": "mine.py:f"}], "a reward's table needs a name.*; it has fn"),
        ({"fn": "mine.py:f"}, "a reward's table needs a name, of a part, or a function, 'file.py:NAME'; it has fn"),
        ({"name": "weighted", "terms": "verdict"}, "terms = 'verdict'"),
        ([{"weight": 2.0}], "needs a name.*; it has nothing"),
    ],
)
def test_a_wrong_spelling_is_one_line(spec: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        reward_of(spec)
    assert "\n" not in str(error.value)


def test_a_weighted_sum_by_name_takes_lists_and_tables(file: Path) -> None:
    made = reward_of({"name": "weighted", "terms": ["verdict", f"{file}:digits"], "weights": {"digits": 0.1}})
    assert isinstance(made, WeightedSum) and made.weights == {"verdict": 1.0, "digits": 0.1}


def test_a_list_in_a_recipe_reads_back(file: Path, tmp_path: Path) -> None:
    text = f'''
[method]
reward = ["verdict", {{function = "{file}:brevity", weight = 0.5, as = "short"}}]
'''
    (tmp_path / "recipe.toml").write_text(text)
    config = load_config(tmp_path / "recipe.toml")
    made = make_method("grpo", reward=config.method.reward).reward
    assert isinstance(made, WeightedSum) and made.weights == {"verdict": 1.0, "short": 0.5}
    with pytest.raises(UsageError, match="reward"):
        load_config({"method": {"reward": [3]}})


# In a run


def rows(folder: Path) -> list[dict[str, Any]]:
    return running.tables(folder, "rollouts")["step-000001.parquet"]


@pytest.mark.parametrize("how", ["recipe", "python", "file"])
def test_every_term_is_in_the_metrics_the_store_and_the_report_by_its_own_name(
    how: str, file: Path, tmp_path: Path
) -> None:
    listed: list[Any] = [
        {"name": "verdict", "as": "right"},
        {"function": f"{file}:brevity", "weight": 0.5},
        f"{file}:digits",
    ]
    folder = tmp_path / "run"
    sections = running.recipe(folder, train={"steps": 1}, warmup={"steps": 1})
    sections["method"] = {"name": "grpo"}
    if how == "python":
        assay.train(sections, reward=[listed[0], listed[1], _digits], quiet=True)
    else:
        sections["method"]["reward"] = listed
        (tmp_path / "recipe.toml").write_text(tomli_w.dumps(sections))
        assay.train(tmp_path / "recipe.toml" if how == "file" else sections, quiet=True)
    names = ["right", "brevity", "_digits" if how == "python" else "digits"]
    for row in rows(folder):
        right, short, digits = (row[f"reward/{name}"] for name in names)
        assert row["reward"] == pytest.approx(right + 0.5 * short + digits, abs=1e-6)
        assert short == pytest.approx(2 / (1 + len(row["response"])))
        assert digits == sum(map(str.isdigit, row["response"]))
    metrics = next(r for r in running.metrics(folder) if r["stage"] == "rl")
    for name in names:
        expected = np.mean([row[f"reward/{name}"] for row in rows(folder)])
        assert metrics[f"reward/{name}"] == pytest.approx(expected, abs=1e-6)
    text = write_report(folder).read_text()
    # Of a single step there is nothing to draw, but the values are told.
    told = re.search(r"Reward terms: (.*?);", text)
    assert told is not None and [x.split()[0] for x in told[1].split(", ")] == sorted(names)
    for name in names:
        assert f"{name} 0" in text or f"{name} 1" in text or f"{name} 2" in text  # beside a rollout
    # The list of a recipe is in the configuration, so that a resumed run finds it by itself.
    again = {"reward": [listed[0], listed[1], _digits]} if how == "python" else {}
    assay.train(resume=folder, overrides=["train.steps=2"], quiet=True, **again)


def _digits(task: Task, response: str) -> float:
    return sum(map(str.isdigit, response))


def test_where_a_term_could_not_be_told_the_store_holds_nothing(tmp_path: Path) -> None:
    def unsure(task: Task, response: str) -> float | None:
        return None if len(response) % 2 else 1.0

    sections = running.recipe(tmp_path / "run", train={"steps": 1}, warmup={"steps": 1})
    del sections["method"]
    assay.train(sections, reward=["verdict", unsure], quiet=True)
    for row in rows(tmp_path / "run"):
        assert (row["reward"] is None) == (row["reward/unsure"] is None) == bool(len(row["response"]) % 2)


def test_more_terms_than_colours_are_in_several_charts(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"stage": "rl", "step": s, "reward/mean": 0.1} | {f"reward/term{i}": i * s / 10 for i in range(8)}
        for s in (1, 2, 3)
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    text = write_report(tmp_path).read_text()
    assert all(f"</i>term{i}</span>" in text for i in range(8))
    assert "Reward terms, 7 on" in text


def test_from_python_a_name_or_a_table(tmp_path: Path) -> None:
    for i, reward in enumerate(["verdict", {"name": "tiers", "inner": "verdict"}]):
        folder = tmp_path / str(i)
        sections = running.recipe(folder, train={"steps": 1}, warmup={"steps": 0})
        sections["method"] = {"name": "grpo"}
        assay.train(sections, reward=reward, quiet=True)
        assert load_config(folder / "config.toml").method.reward == reward


def test_a_function_that_fails_in_a_run_names_its_row_and_keeps_the_run(tmp_path: Path) -> None:
    def moody(prompts: list[str], completions: list[str]) -> list[float]:
        return [1 / (p != prompts[0]) for p in prompts]

    sections = running.recipe(tmp_path / "run", train={"steps": 1}, warmup={"steps": 0})
    del sections["method"]
    with pytest.raises(RunError, match=r"moody raised ZeroDivisionError: .* for row 0 \(task addition.*, response '"):
        assay.train(sections, reward=moody, quiet=True)
    assert (tmp_path / "run" / "checkpoints" / "rl-000000").is_dir()


def test_a_part_in_a_file_is_a_part_and_a_function_a_function(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "class Mine:\n    def __init__(self, price: float = 0.5):\n        self.price = price\n\n"
        "    def __call__(self, batch):\n        return batch\n\n\ndef one(task, response):\n    return 1.0\n"
    )
    assert reward_of(f"{file}:Mine").price == 0.5  # type: ignore[attr-defined]
    assert reward_of({"name": f"{file}:Mine", "price": 2.0}).price == 2.0  # type: ignore[attr-defined]
    assert isinstance(reward_of(f"{file}:one"), FunctionReward)


def test_an_error_is_told_with_its_line(tmp_path: Path, make_batch: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def inner(x):\n    raise ValueError(x)\n\n\ndef one(task, response):\n    return inner('no')\n")
    with pytest.raises(RunError, match=r"reward function one raised ValueError: no at mine\.py:2 for row 0"):
        FunctionReward(f"{file}:one")(make_batch([1]))
