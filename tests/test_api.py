"""``assay.train`` from Python: what it takes for model, tasks, method and reward, and what it returns."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import running
from running import recipe

import assay
from assay.config import RunConfig, load_config
from assay.errors import RunError, UsageError
from assay.report import write_report
from assay.tasks.arithmetic import Arithmetic
from assay.types import Task


def short(folder: Path, **sections: dict[str, Any]) -> dict[str, Any]:
    """One step of RL, rewarded by what the caller brings."""
    base = recipe(folder, warmup={"steps": 0}, train={"steps": 1}, **sections)
    del base["method"]
    return base


TASKS = [Task(f"t{i}", f"{i}+1=", reference=str(i + 1), kind="number", meta={"hard": i % 2}) for i in range(60)]


def length_reward(task: Task, response: str) -> float:
    return len(response) / 4


def rewards(folder: Path, name: str) -> list[float]:
    return [row[f"reward/{name}"] for rows in running.tables(folder, "rollouts").values() for row in rows]


def responses(folder: Path) -> list[str]:
    return [row["response"] for rows in running.tables(folder, "rollouts").values() for row in rows]


def test_a_result_says_where_the_run_is(tmp_path: Path) -> None:
    result = assay.train(short(tmp_path / "run"), quiet=True)
    assert result.folder == tmp_path / "run"
    assert result.stopped_by is None
    assert result.before is not None
    assert result.after is not None
    assert (result.before.label, result.after.label, result.after.step) == ("before", "after", 1)


@pytest.mark.parametrize("tasks", ["arithmetic", {"name": "arithmetic"}, Arithmetic()], ids=["name", "table", "source"])
def test_tasks_by_name_table_or_source(tmp_path: Path, tasks: Any) -> None:
    sections = short(tmp_path / "run")
    result = assay.train(sections, tasks=tasks, quiet=True)
    assert result.before is not None
    # The rest of the recipe's section stays.
    assert len(result.before.by_task()) == 6
    expected = assay.train(short(tmp_path / "same"), tasks="arithmetic", quiet=True)
    assert expected.before is not None
    assert list(result.before.by_task()) == list(expected.before.by_task())


def test_a_list_of_tasks(tmp_path: Path) -> None:
    assay.train(short(tmp_path / "run"), tasks=TASKS, quiet=True)
    rows = running.tables(tmp_path / "run", "rollouts")["step-000001.parquet"]
    assert {r["task_id"] for r in rows} <= {t.id for t in TASKS}
    with pytest.raises(UsageError, match="element 0 of tasks is a str"):
        assay.train(short(tmp_path / "other"), tasks=["1+1="], quiet=True)  # type: ignore[list-item]


def test_a_plain_function_as_reward(tmp_path: Path) -> None:
    assay.train(short(tmp_path / "run"), tasks=TASKS, reward=length_reward, quiet=True)
    folder = tmp_path / "run"
    assert rewards(folder, "length_reward") == pytest.approx([len(r) / 4 for r in responses(folder)])


def test_a_function_of_trl_as_reward(tmp_path: Path) -> None:
    def hard_and_long(prompts: list[str], completions: list[str], hard: list[int], **_: Any) -> list[float]:
        assert all(p.endswith("+1=") for p in prompts)
        return [h + len(c) for h, c in zip(hard, completions, strict=True)]

    folder = tmp_path / "run"
    assay.train(short(folder), tasks=TASKS, reward=hard_and_long, quiet=True)
    rows = running.tables(folder, "rollouts")["step-000001.parquet"]
    hard = {t.id: t.meta["hard"] for t in TASKS}
    assert [r["reward"] for r in rows] == [hard[r["task_id"]] + len(r["response"]) for r in rows]


def test_a_function_in_a_file_as_reward_is_in_the_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assay.train(short(folder), method="grpo", reward=f"{running.__file__}:varied", quiet=True)
    assert rewards(folder, "varied") == pytest.approx([running.varied(None, r) for r in responses(folder)])
    # So a resumed run finds it by itself.
    assay.train(resume=folder, overrides=["train.steps=2"], quiet=True)
    assert len(rewards(folder, "varied")) == 24


def test_a_reward_part(tmp_path: Path) -> None:
    class Half:
        def __call__(self, batch: assay.Batch) -> assay.Reward:
            return assay.Reward(batch.rewards + 0.5, terms={"half": batch.rewards + 0.5})

    assay.train(short(tmp_path / "run"), reward=Half(), quiet=True)
    assert set(rewards(tmp_path / "run", "half")) == {0.5}
    with pytest.raises(UsageError, match=r"reward is a int; give a function, a reward part or 'file.py:name'"):
        assay.train(short(tmp_path / "other"), reward=3, quiet=True)  # type: ignore[arg-type]


def test_methods_by_name_table_or_object(tmp_path: Path) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.seen = 0

        def __call__(self, batch: assay.Batch) -> Any:
            self.seen += len(batch)
            return batch.mask.float()

    credit = Recorder()
    assay.train(short(tmp_path / "object"), method=assay.make_method(credit=credit), quiet=True)
    assert credit.seen == 12
    table = {"credit": {"name": "grpo", "ddof": 0}}
    assay.train(short(tmp_path / "table"), method=table, quiet=True)
    assert load_config(tmp_path / "table" / "config.toml").method.credit == {"name": "grpo", "ddof": 0}
    with pytest.raises(UsageError, match="no paper has the id 'S999'"):
        assay.train(short(tmp_path / "name"), method="S999", quiet=True)


def test_models_by_name_or_table(tmp_path: Path) -> None:
    sections = short(tmp_path / "run")
    assay.train(sections, model="nano", quiet=True)
    # A name keeps the shape that the recipe gives.
    assert load_config(tmp_path / "run" / "config.toml").model.nano.hidden == 16
    del sections["model"]
    sections["run"]["dir"] = str(tmp_path / "table")
    assay.train(sections, model={"nano": {"hidden": 8, "layers": 1, "heads": 2}}, quiet=True)
    assert load_config(tmp_path / "table" / "config.toml").model.nano.hidden == 8


def test_sections_files_and_configurations_are_recipes(tmp_path: Path) -> None:
    sections = short(tmp_path / "a")
    assay.train(**sections, quiet=True)
    a = load_config(tmp_path / "a" / "config.toml")
    changed = a.model_copy(update={"run": a.run.model_copy(update={"dir": str(tmp_path / "b")})})
    assert isinstance(changed, RunConfig)
    assay.train(changed, quiet=True)
    assay.train(tmp_path / "a" / "config.toml", overrides=[f"run.dir={tmp_path / 'c'}"], train={"steps": 0}, quiet=True)
    assert load_config(tmp_path / "b" / "config.toml") == changed
    assert load_config(tmp_path / "c" / "config.toml").train.steps == 0
    with pytest.raises(UsageError, match="unknown key 'rolout'; did you mean 'rollout'"):
        assay.train(rolout={"group": 4})


def test_in_a_thread_of_ones_own(tmp_path: Path) -> None:
    results: list[assay.Result] = []
    thread = threading.Thread(target=lambda: results.append(assay.train(short(tmp_path / "run"), quiet=True)))
    thread.start()
    thread.join()
    assert results[0].after is not None


def test_tasks_that_only_a_reward_judges(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    tasks = [Task(str(i), f"say {i}", kind="none") for i in range(60)]
    result = assay.train(short(folder), tasks=tasks, reward=length_reward)
    assert result.after is not None
    assert result.after.pass_interval(1) is None
    said = capfd.readouterr().err
    assert "before: every verdict was an abstention" in said
    assert "after: every verdict was an abstention" in said
    row = running.metrics(folder)[0]
    assert (row["abstained"], row["no_reward"]) == (1, 0)
    assert "pass_rate" not in row
    assert row["reward/mean"] > 0
    assert row["grad_norm"] > 0
    assert write_report(folder).is_file()


def test_without_verdict_and_reward_nothing_is_learnt_and_nothing_breaks(tmp_path: Path) -> None:
    tasks = [Task(str(i), f"say {i}", kind="none") for i in range(60)]
    assay.train(short(tmp_path / "run"), tasks=tasks, quiet=True)
    row = running.metrics(tmp_path / "run")[0]
    assert (row["abstained"], row["no_reward"], row["grad_norm"]) == (1, 1, 0)
    # A finished run that is asked to go on says it again.
    assert assay.train(resume=tmp_path / "run", tasks=tasks, quiet=True).unjudged


# Resuming what was given as objects


def test_a_resumed_run_wants_its_objects_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    given: dict[str, Any] = {"tasks": TASKS, "method": assay.make_method(), "reward": length_reward}
    assay.train(short(folder), **given, quiet=True)
    noted = json.loads((folder / "environment.json").read_text())["given"]
    assert noted["reward"].endswith("test_api.py:length_reward") and noted["method"].endswith("base.py:Method")
    assert noted["tasks"].startswith(f"{len(TASKS)} ") and noted["tasks"].endswith("types.py:Task")
    for name in given:
        rest = {k: v for k, v in given.items() if k != name}
        with pytest.raises(UsageError, match=rf"the {name} of this run came as a Python object; .*{name}=\.\.\."):
            assay.train(resume=folder, **rest, quiet=True)
    assay.train(resume=folder, **given, overrides=["train.steps=2"], quiet=True)
    assert len(rewards(folder, "length_reward")) == 24
    with pytest.raises(UsageError, match="60 tasks then, 59 tasks now"):
        assay.train(resume=folder, **{**given, "tasks": TASKS[:-1]}, overrides=["train.steps=3"], quiet=True)


def test_evaluating_a_run_of_given_tasks_is_one_line(tmp_path: Path) -> None:
    from assay.api import evaluate

    assay.train(short(tmp_path / "run"), tasks=TASKS, quiet=True)
    with pytest.raises(UsageError, match="the tasks of this run came as a Python object"):
        evaluate(tmp_path / "run", quiet=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": "nano"},
        {"tasks": "countdown"},
        {"method": "grpo"},
        {"recipe": {}},
        {"reward": "a.py:f"},
        {"train": {"steps": 3}},
    ],
    ids=lambda v: next(iter(v)),
)
def test_a_resumed_run_keeps_its_recipe(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a resumed run keeps its recipe"):
        assay.train(resume=tmp_path, **arguments)


def test_a_failure_keeps_the_run(tmp_path: Path) -> None:
    def fails(task: Task, response: str) -> float:
        raise ValueError("no\nmore")

    with pytest.raises(
        RunError, match=r"function fails raised ValueError: no more at test_api\.py:\d+ for row 0"
    ) as caught:
        assay.train(short(tmp_path / "run"), reward=fails, quiet=True)
    assert "\n" not in str(caught.value)
    result = assay.train(resume=tmp_path / "run", reward=length_reward, quiet=True)
    assert result.after is not None


def test_every_setting_can_be_given_beside_python_objects(tmp_path: Path) -> None:
    wanted = {"tasks.eval_size": 3, "tasks.eval_share": 0.4, "evaluate.samples": 1, "method.credit": {"name": "rloo"}}
    result = assay.train(
        short(tmp_path / "run"), tasks=TASKS, reward=length_reward, settings=wanted, seed=7, quiet=True
    )
    config = load_config(result.folder / "config.toml")
    assert (config.seed, config.tasks.eval_share, config.method.credit) == (7, 0.4, {"name": "rloo"})
    assert result.before is not None and len(result.before.samples) == 3
    with pytest.raises(UsageError, match=r"unknown key 'tasks.eval_sise'; did you mean 'eval_size'\?"):
        assay.train(short(tmp_path / "other"), settings={"tasks.eval_sise": 3}, quiet=True)


def test_a_section_changes_a_table_within_and_keeps_the_rest_of_it(tmp_path: Path) -> None:
    base = short(tmp_path / "run")
    assay.train(base, model={"nano": {"layers": 2}}, tasks={"eval_size": 4}, train={"lr": "auto"}, quiet=True)
    config = load_config(tmp_path / "run" / "config.toml")
    assert (config.model.nano.layers, config.model.nano.hidden, config.tasks.eval_size) == (2, 16, 4)
    assert config.train.lr == 1e-3, "the highest, for so small a model"
    assert base["model"]["nano"]["layers"] == 1, "the caller's own recipe is left as it is"
