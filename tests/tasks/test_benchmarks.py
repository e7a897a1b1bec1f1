"""Benchmarks by name: rows as their data sets have them become tasks that are asked and judged; all of them are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sandbox.support import needs_sandbox

from assay import api, cli
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.files.benchmark import benchmarks, expanded
from assay.types import Task
from assay.verify import KindVerifier

SUM = {"question": "Ann has 3 apples and buys 4. How many has she?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"}
ADD = 'def add(a, b):\n    """Add."""\n'
CHECK = "def check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(-1, 1) == 0\n"
CHOICES = {"question": "Which is a metal?", "choices": ["air", "gold", "wood", "silk"]}
KEPT = [{"num_words": None, "keywords": ["gold", "pure"]}, {"num_words": None, "keywords": None}]

# Of each a row as published, a right response and a wrong one.
ROWS: dict[str, tuple[dict[str, Any], str, str]] = {
    "gsm8k": (SUM, r"She has \boxed{7} apples.", r"\boxed{8}"),
    "math-500": (
        {
            "problem": "Simplify $4/8$.",
            "solution": "...",
            "answer": "\\frac{1}{2}",
            "subject": "Prealgebra",
            "level": 2,
        },
        r"So it is $\boxed{0.5}$.",
        r"\boxed{\frac14}",
    ),
    "aime-2024": ({"id": 60, "problem": "Find 2^3 + 100.", "answer": "108"}, r"\boxed{108}", r"\boxed{107}"),
    "aime-2025": ({"question": "Find 2^3.", "answer": "008"}, r"\boxed{8}", r"\boxed{80}"),
    "amc-2023": ({"id": 1, "question": "Find 3^3.", "answer": "27.0", "url": ""}, r"\boxed{27}", r"\boxed{28}"),
    "minerva-math": ({"question": "Find 3e8.", "answer": "3e8"}, r"\boxed{3 \times 10^8}", r"\boxed{3 \times 10^7}"),
    "humaneval": (
        {"task_id": "HumanEval/0", "prompt": ADD, "canonical_solution": "", "test": CHECK, "entry_point": "add"},
        f"```python\n{ADD}    return a + b\n```",
        f"```python\n{ADD}    return a - b\n```",
    ),
    "mbpp": (
        {
            "task_id": 11,
            "text": "Write a function to add two numbers.",
            "test_list": ["assert add(2, 3) == 5", "assert add(0, 0) == 0"],
            "test_setup_code": "",
            "challenge_test_list": [],
        },
        "```python\ndef add(a, b):\n    return a + b\n```",
        "```python\ndef add(a, b):\n    return 2 * a + 1\n```",
    ),
    "mbpp-sanitized": (
        {
            "task_id": 2,
            "prompt": "Write a function to take a root.",
            "test_list": ["assert math.isclose(root(9), 3)"],
            "test_imports": ["import math"],
        },
        "```python\ndef root(x):\n    return x ** 0.5\n```",
        "```python\ndef root(x):\n    return x\n```",
    ),
    "ifeval": (
        {
            "key": 1000,
            "prompt": "Tell of assaying, without commas, and name gold and pure.",
            "instruction_id_list": ["keywords:existence", "punctuation:no_comma"],
            "kwargs": KEPT,
        },
        "Assaying says how pure gold is.",
        "Assaying says how pure gold is, at last.",
    ),
    "mmlu": ({**CHOICES, "subject": "chemistry", "answer": 1}, "The answer is B", "The answer is C"),
    "mmlu-pro": (
        {"question": "Which?", "options": ["a dog", "a cat"], "answer": "B", "category": "biology"},
        "The answer is B",
        "The answer is A",
    ),
    "arc-challenge": (
        {"question": "Which?", "choices": {"text": ["ice", "fire"], "label": ["1", "2"]}, "answerKey": "2"},
        "The answer is B",
        "The answer is A",
    ),
    "gpqa-diamond": (
        {
            "Question": "Which?",
            "Correct Answer": "iron\n",
            "Incorrect Answer 1": "lead",
            "Incorrect Answer 2": "tin",
            "Incorrect Answer 3": "zinc",
        },
        "The answer is iron",
        "The answer is lead",
    ),
}


def written(folder: Path, name: str, *rows: dict[str, Any]) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(map(json.dumps, rows or (ROWS[name][0],))), encoding="utf-8")
    return path


@pytest.fixture
def task(tmp_path: Path) -> Callable[[str], Task]:
    return lambda name: build("tasks", {"name": "benchmark", "which": name, "path": str(written(tmp_path, name))})[0]


def test_every_benchmark_is_tried_here() -> None:
    assert set(ROWS) == set(benchmarks())


@needs_sandbox
@pytest.mark.parametrize("name", ROWS)
def test_a_published_row_is_asked_and_judged(name: str, task: Callable[[str], Task]) -> None:
    made = task(name)
    [message] = made.prompt
    assert isinstance(message, dict) and message["role"] == "user" and "{" not in message["content"].replace("{}", "")
    right, wrong = (KindVerifier()(made, response) for response in ROWS[name][1:])
    assert (right.passed, wrong.passed) == (True, False), (str(right), str(wrong))


def test_what_is_shown(task: Callable[[str], Task]) -> None:
    assert task("math-500").question.endswith("put the final answer within \\boxed{}.")
    assert task("math-500").meta == {"source": "math-500", "subject": "Prealgebra", "level": 2}
    assert "assert add(2, 3) == 5\nassert add(0, 0) == 0\n" in task("mbpp").question
    assert task("humaneval").id == "HumanEval/0" and f"```python\n{ADD}" in task("humaneval").question
    assert "A. air\nB. gold\nC. wood\nD. silk\n" in task("mmlu").question
    hidden = task("gpqa-diamond")
    assert sorted(hidden.reference["options"]) == ["iron", "lead", "tin", "zinc"]
    assert hidden.reference["options"]["ABCD".index(hidden.reference["answer"])] == "iron"


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("gsm8k", {"question": "Why?", "answer": "7"}, r"gsm8k\.jsonl line 1: field 'answer' has no '####'"),
        ("gsm8k", {"problem": "Why?", "answer": "#### 7"}, r"line 1 has no field 'question' for the prompt"),
        ("mmlu", {**CHOICES, "subject": "x", "answer": 4}, r"line 1: its choices and answer cannot be read \(IndexErr"),
        ("mmlu-pro", {"question": "?", "options": ["a"], "answer": "B"}, r"line 1: its choices .* not in list"),
        ("gpqa-diamond", {"Question": "?"}, r"line 1: its choices and answer cannot be read \(KeyError: 'Correct"),
    ],
)
def test_a_row_of_another_shape_is_named(tmp_path: Path, name: str, row: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build("tasks", {"name": "benchmark", "which": name, "path": str(written(tmp_path, name, row))})


def test_it_comes_from_the_hub_in_all_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, str]] = []

    def load(path: str, config: str | None, split: str) -> list[dict[str, Any]]:
        asked.append((path, config, split))
        if path == "nobody/has":
            raise UsageError(f"data set {path} cannot be loaded: no")
        return [{"question": f"Find {len(asked)}.", "answer": str(len(asked))}]

    monkeypatch.setattr("assay.tasks.files.benchmark.load", load)
    source = build("tasks", {"name": "benchmark", "which": "aime-2025"})
    assert asked == [("opencompass/AIME2025", f"AIME2025-{part}", "test") for part in ("I", "II")]
    assert [source[i].reference for i in range(source.size)] == ["1", "2"] and source[1].id == "aime-2025/1"
    monkeypatch.setitem(benchmarks(), "lost", {**benchmarks()["gsm8k"], "path": "nobody/has"})
    with pytest.raises(UsageError, match=r"cannot be loaded: no; of a file or folder: lost=PATH"):
        build("tasks", {"name": "benchmark", "which": "lost"})


@pytest.mark.parametrize(("name", "file"), [("gsm8k", "gsm8k_test.jsonl"), ("math-500", "math500.jsonl")])
def test_the_published_files(name: str, file: str) -> None:
    path = Path(os.environ.get("ASSAY_DATA", "../shared/data")) / file
    if not path.is_file():
        pytest.skip(f"no {file} in the folder that ASSAY_DATA names")
    source = build("tasks", {"name": "benchmark", "which": name, "path": str(path)})
    assert source.size == benchmarks()[name]["tasks"]
    for task in (source[i] for i in range(20)):
        assert KindVerifier()(task, rf"\boxed{{{task.reference}}}").passed is True, task.reference


def test_a_folder_that_was_saved(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install assay[datasets]")
    rows = datasets.Dataset.from_list([{"question": "Find 8.", "answer": "8"}, {"question": "Find 9.", "answer": "9"}])
    datasets.DatasetDict({"test": rows}).save_to_disk(str(tmp_path / "saved"))
    source = build("tasks", {"name": "benchmark", "which": "aime-2025", "path": str(tmp_path / "saved")})
    assert source.size == 2 and source[1].reference == "9"


def test_a_name_stands_for_settings() -> None:
    assert expanded(["seed=1"]) == ["seed=1"]
    made = expanded(["evaluate.temperature=0", "math-500", "rollout.max_tokens=99"])
    assert made[0] == 'tasks.eval_source={name = "benchmark", which = "math-500"}'
    assert made[-2:] == ["evaluate.temperature=0", "rollout.max_tokens=99"] and "rollout.max_tokens=4096" in made
    assert expanded(["gsm8k=a b.jsonl"])[0].endswith('path = "a b.jsonl"}')
    with pytest.raises(UsageError, match=r"'math500' is neither a change.*did you mean 'math-500'"):
        expanded(["math500"])
    with pytest.raises(UsageError, match="one benchmark at a time, not gsm8k and mbpp"):
        expanded(["gsm8k", "mbpp"])
    with pytest.raises(UsageError, match="no benchmark is called 'mth-500'; did you mean 'math-500'"):
        build("tasks", {"name": "benchmark", "which": "mth-500"})


def test_a_model_is_measured_on_all_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sums = [{"question": f"{i} + 1?", "answer": f"#### {i + 1}"} for i in range(7)]
    path = written(tmp_path, "gsm8k", *sums)
    tiny = ["model.nano.layers=1", "model.nano.hidden=16", "model.nano.heads=2", "rollout.max_tokens=2"]
    found = api.evaluate("nano", overrides=[f"gsm8k={path}", *tiny], samples=1, quiet=True)
    assert [s.task_id for s in found.samples] == [f"gsm8k/{i}" for i in range(7)]
    with pytest.raises(SystemExit) as ended:
        cli.main(["eval", "nano", f"gsm8k={path}", *tiny, "tasks.eval_size=3", "--samples", "1", "--json"])
    assert not ended.value.code and json.loads(capfd.readouterr().out)["tasks"] == 3
    with pytest.raises(UsageError, match="eval_size 8 of a source of 7 tasks is too large"):
        api.evaluate("nano", overrides=[f"gsm8k={path}", "tasks.eval_size=8"], quiet=True)
    with pytest.raises(UsageError, match="an endless source has no last task"):
        api.evaluate("nano", overrides=["tasks.eval_share=1.0"], quiet=True)
    with pytest.raises(UsageError, match=r"tasks\.eval_share 1 leaves no task to train on"):
        api.train(settings={"tasks.eval_share": 1.0, "run.dir": str(tmp_path / "run")})


def test_they_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["benchmarks", "--json"])
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)}
    assert rows["humaneval"]["tasks"] == 164 and rows["ifeval"]["path"] == "google/IFEval"
    with pytest.raises(SystemExit):
        cli.main(["benchmarks"])
    assert "aime-2025" in capfd.readouterr().out
