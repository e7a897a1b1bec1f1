"""``assay tasks make`` from the command line, and task files as others read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.errors import UsageError
from assay.recipes import recipe_data
from assay.registry import build
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import read_tasks, write_tasks
from assay.types import Message, Task

TASKS = [
    Task("a", "What is 2 + 3?", "5", "math", "2 + 3 = 5", ("add",), {"parents": ("x",), "rate": 0.5}),
    Task("b", (Message(role="user", content="hi"),), ["yes", "ja"], "exact"),
]


def called(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["tasks", "make", *arguments])
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def test_a_task_file_comes_back_and_is_read_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    write_tasks(path, TASKS)
    read = build("tasks", {"name": "made", "path": str(path)})
    assert read.size == 2 and read[1] == TASKS[1]
    assert read[0].hints == ("add",) and read[0].meta == {"parents": ["x"], "rate": 0.5}
    assert read_tasks(path) == read.tasks
    write_tasks(path, TASKS[:1])
    data = recipe_data(path)
    assert data is not None
    [task] = build("tasks", data["tasks"]["source"]).tasks
    assert (task.prompt, task.reference, task.kind, task.solution) == ("What is 2 + 3?", "5", "math", "2 + 3 = 5")
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        write_tasks(path, [Task("o", "p", object())])
    for row, why in (
        ({"id": 1}, "no field 'prompt'"),
        ({**ROW, "prompt": 3}, "neither text"),
        ({**ROW, "kind": 1}, "kind"),
    ):
        path.write_text(json.dumps(row))
        with pytest.raises(UsageError, match=why):
            build("tasks", {"name": "made", "path": str(path)})


ROW = {"id": "a", "prompt": "p", "reference": None, "kind": "exact"}


def test_a_recipe_of_steps_runs_and_goes_on(tmp_path: Path, capsys: Any) -> None:
    """The model is one that was never trained: every reply is cut off, or is whatever it is."""
    recipe, out = tmp_path / "own.toml", tmp_path / "new.jsonl"
    step = tmp_path / "steps.py"
    step.write_text(
        "from assay.engines.base import Sampling\n"
        "from assay.tasks.making.work import Want, child\n"
        "class Say:\n"
        "    def __call__(self, task, here):\n"
        "        [replies] = yield [Want(task.prompt, 2, Sampling(4))]\n"
        "        return [child(task, 'say', j, prompt=r.text or 'nothing') for j, r in enumerate(replies)]\n"
    )
    recipe.write_text(f'[[steps]]\nname = "{step}:Say"\nas = "say"\n[[steps]]\nname = "distinct"\n')
    seeds = ("--seeds", "arithmetic(digits=1)", "--model", "nano", "-n", "3", "--out", str(out), "--json")
    code, said, _ = called(capsys, str(recipe), *seeds)
    card = json.loads(said)
    assert code == 0 and card == json.loads((tmp_path / "new.card.json").read_text())
    assert (card["seeds"], card["steps"][0]["in"], card["steps"][0]["out"], card["steps"][0]["asked"]) == (3, 3, 6, 3)
    assert card["tasks"] == len(read_tasks(out)) == card["steps"][1]["out"] and card["models"] == {"writer": "nano"}
    first, asked = out.read_bytes(), (tmp_path / "new.asked.jsonl").read_bytes()
    out.unlink()
    code, said, _ = called(capsys, str(recipe), *seeds[:-1])
    assert code == 0 and out.read_bytes() == first and (tmp_path / "new.asked.jsonl").read_bytes() == asked
    assert "0 requests were made and 3 remembered" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["variation"], "did you mean 'variations'?"),
        (["S183", "problems.jsonl"], "problems.jsonl is no option=value; the tasks to begin with are named by --seeds"),
        (["S017"], "S017 makes no tasks"),
        (["variations", "m=2"], "no option 'm'"),
        (["variations"], "--seeds has to name"),
        (["variations", "--seeds", "arithmetic"], "is endless; say how many"),
        (["variations", "--seeds", "arithmetic", "-n", "2"], "asks a writer, and no model is named"),
        (["variations", "--seeds", "arithmetic", "-n", "0"], "must be 1 or more"),
        (["variations", "--out", "tasks.csv"], "has to be a .jsonl file"),
        (["missing.toml"], "missing.toml cannot be read"),
        (["variations", "--seeds", "t.jsonl", "--out", "t.jsonl"], "take the place of tasks that are read"),
        (["variations", "--seeds", "s.jsonl", "--held-out", "t.jsonl", "--out", "t.jsonl"], "take the place of tasks"),
        (["S045", "--seeds", "recorded(path=t.jsonl)", "--out", "t.jsonl"], "assay tasks make did not write it"),
    ],
)
def test_what_cannot_be_made_is_said_in_a_line(
    words: list[str], why: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text("{}\n")
    out = [] if "--out" in words else ["--out", str(tmp_path / "new.jsonl")]
    code, _, said = called(capsys, *words, *out)
    assert code == 2 and why in said and said.count("\n") == 1


def test_files_of_steps_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    for text, why in (
        ("n = 2", "list of tables"),
        ('[[steps]]\nname = "varry"', "step 1, 'varry': there is no such step; did you mean 'vary'"),
        ('[[steps]]\nname = "vary"\nm = 2', "no option 'm'"),
        ('[[steps]]\nname = "vary"\n[[steps]]\nname = "vary"', "name of its own"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=why):
            read_pipeline(str(path), {})
    with pytest.raises(UsageError, match="says its own options"):
        read_pipeline(str(path), {"n": 1})
    held = tmp_path / "held.jsonl"
    write_tasks(held, TASKS)
    made = read_pipeline("rewordings", {"n": 2}, (held,))
    assert [name for name, _ in made.steps] == ["reformulate", "distinct", "pass_rate", "held out"]
    assert [name for name, _ in read_pipeline("variations", {}).steps][-2:] == ["agreement", "pass_rate"]
