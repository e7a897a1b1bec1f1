"""A run in stages: what each changes, when it ends, and that a run killed in any of them goes on bit for bit."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import running
import tomli_w
from running import assert_same, child, command, metrics, tables

import assay
from assay.config import UntilConfig, dump_config, load_config
from assay.curriculum.pass_rates import PassRates
from assay.errors import UsageError
from assay.records.run_folder import RunFolder
from assay.records.stages import stages
from assay.report.html import render
from assay.report.run import read_run
from assay.training.loop import Trainer
from assay.training.stages import ended
from assay.types import Ask, Group, Task, Verdict
from assay.view import runs as view
from assay.view.places import Places

SOURCE = {"name": "arithmetic", "operation": "subtraction", "digits": 1}
STAGES: list[dict[str, Any]] = [
    {
        "name": "shown",
        "steps": 2,
        "tasks": SOURCE,
        "method": {"objective": "sft", "rollout": "recorded"},
        "train": {"lr": 1e-2, "schedule": "linear", "mini_batches": 1, "epochs": 1},
    },
    {
        "name": "short",
        "steps": 9,
        "method": {"objective": {"name": "clip", "kl_weight": 0.1}},
        "until": {"metric": "reward/mean", "window": 1, "above": 0.0},
    },
    {"name": "long", "steps": 2, "rollout": {"group": 4, "max_tokens": 6, "temperature": 0.9}},
]


def recipe(folder: Path) -> dict[str, Any]:
    made = running.recipe(folder, warmup={"steps": 1}, run={"checkpoint_every": 2})
    del made["train"]["steps"]
    return {**made, "stages": STAGES}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assay.train(recipe(folder), quiet=True)
    return folder


def test_every_stage_has_its_tasks_method_lengths_and_group(whole: Path) -> None:
    rows = [row for row in metrics(whole) if row["stage"] == "rl"]
    assert [row["stage_number"] for row in rows] == [1, 1, 2, 3, 3]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["lr"] for row in rows[:2]] == [pytest.approx(0.01), pytest.approx(0.005)]
    found = list(tables(whole, "rollouts").values())
    assert [len(step) for step in found] == [4, 4, 12, 16, 16]
    assert all("-" in row["prompt"] and row["passed"] for row in found[0] + found[1])
    assert all("+" in row["prompt"] for step in found[2:] for row in step)
    # The second and third stage ask from one source, and the third goes on where the second was.
    asked = [{row["task_id"] for row in step} for step in found[2:]]
    assert len(asked[0] | asked[1] | asked[2]) > 8
    labels = {name: rows[0]["step"] for name, rows in tables(whole, "evals").items()}
    ends = {"after-shown.parquet": 2, "after-short.parquet": 3, "after.parquet": 5}
    assert labels == {"before.parquet": 0, **ends, "step-000004.parquet": 4}
    assert not (whole / "reference").exists()
    assert (whole / "reference-2").is_dir()


def test_its_pages_show_its_stages(whole: Path) -> None:
    found = stages(whole, metrics(whole))
    assert [(s["name"], s["first"], s["last"], s["steps"]) for s in found] == [
        ("shown", 1, 2, 2),
        ("short", 3, 3, 9),
        ("long", 4, 5, 2),
    ]
    assert found[2]["changes"] == "rollout.group = 4, rollout.max_tokens = 6, rollout.temperature = 0.9"
    page = render(read_run(whole))
    assert "rollout.max_tokens = 6" in page and "<td>4 to 5</td>" in page
    places = Places([whole])
    [place] = [place for place in places.all().values() if place.kind == "run"]
    assert view.run(place, places)["stages"] == found
    assert stages(whole.parent, []) == []


def test_a_metric_that_no_step_has_is_named() -> None:
    said: list[str] = []
    stage = SimpleNamespace(name="short", until=UntilConfig(metric="pass_rat", above=0.5, window=2))
    run: Any = SimpleNamespace(history=PassRates(), stages=[stage, stage], place=0, begun=4, step=4, seen=[])
    run.reporter = SimpleNamespace(line=said.append)
    Trainer.noted(run, [], {"pass_rate": 0.9})
    run.step = 5
    Trainer.noted(run, [], {"pass_rate": 0.9})
    assert len(said) == 1 and "no metric 'pass_rat'" in said[0] and "did you mean 'pass_rate'" in said[0]
    stage.until = UntilConfig(above=0.5)
    run.step = 4
    Trainer.noted(run, [], {"pass_rate": 0.9})
    assert len(said) == 1 and run.seen[-1] == 0.9


def killed(log: Path, file: Path, when: int) -> None:
    """In a child: a run that is killed as soon as a step is logged."""
    original = RunFolder.log

    def logged(self: RunFolder, stage: str, step: int, metrics: dict[str, float]) -> None:
        original(self, stage, step, metrics)
        if (stage, step) == ("rl", when):
            os.kill(os.getpid(), signal.SIGKILL)

    RunFolder.log = logged  # type: ignore[method-assign]
    command(log, "train", str(file))


@pytest.mark.parametrize("step", [1, 3, 4])
@pytest.mark.slow
def test_a_run_killed_in_any_stage_goes_on_bit_for_bit(whole: Path, tmp_path: Path, step: int) -> None:
    folder, file = tmp_path / "run", tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(recipe(folder)))
    assert child(killed, tmp_path / "log", file, step) == -signal.SIGKILL
    assay.train(resume=folder, quiet=True)
    assert_same(folder, whole)


def test_a_stage_goes_on_where_one_before_the_last_left_its_tasks(tmp_path: Path) -> None:
    """Subtraction, addition, subtraction: the third asks what the first did not, after a kill within the second too."""
    made = running.recipe(tmp_path / "whole", warmup={"steps": 0}, train={"mini_batches": 1, "epochs": 1})
    made |= {"evaluate": {"samples": 1}, "tasks": {**made["tasks"], "eval_size": 2}}
    del made["train"]["steps"]
    made["stages"] = [{"name": "first", "steps": 1, "tasks": SOURCE}, {"name": "second", "steps": 2}]
    made["stages"] += [{"name": "third", "steps": 1, "tasks": SOURCE}]
    assay.train(made, quiet=True)
    first, _, _, third = [{row["task_id"] for row in step} for step in tables(tmp_path / "whole", "rollouts").values()]
    assert len(first) == len(third) == 4 and not first & third
    file = tmp_path / "recipe.toml"
    file.write_text(
        tomli_w.dumps({**made, "run": {**made["run"], "dir": str(tmp_path / "run"), "checkpoint_every": 1}})
    )
    assert child(killed, tmp_path / "log", file, 3) == -signal.SIGKILL
    assay.train(resume=tmp_path / "run", quiet=True)
    assert_same(tmp_path / "run", tmp_path / "whole")


def test_tasks_that_changed_within_a_later_stage_are_accepted_for_all(tmp_path: Path) -> None:
    file, folder = tmp_path / "rows.jsonl", tmp_path / "run"
    rows = [f'{{"prompt": "{i}+1=", "answer": "{i + 1}"}}\n' for i in range(40)]
    file.write_text("".join(rows))
    made = running.recipe(folder, warmup={"steps": 0}, evaluate={"every": 0, "samples": 0}, run={"checkpoint_every": 1})
    made["tasks"] = {"source": {"name": "file", "path": str(file)}}
    del made["train"]["steps"]
    made["stages"] = [{"name": "first", "steps": 1}, {"name": "second", "steps": 3}]
    assay.train(made, quiet=True)
    shutil.rmtree(folder / "checkpoints" / "rl-000004")
    file.write_text("".join([*rows, '{"prompt": "9+9=", "answer": "18"}\n']))
    with pytest.raises(UsageError, match=r"40 tasks then, 41 tasks now; put them back"):
        assay.train(resume=folder, quiet=True)
    assay.train(resume=folder, overrides=["run.changed_tasks=accept"], quiet=True)
    log = (folder / "log.txt").read_text()
    assert "is not used" not in log and f"resumed {folder} at rl step 3" in log
    assert log.count(f"the tasks of {file} have changed") == 1


def test_the_tasks_of_a_stage_may_be_a_file_and_the_run_s_named_again(tmp_path: Path) -> None:
    """The last stage goes on in the run's tasks where the first was, which left out what is measured."""
    for name, sums in (("easy", range(9)), ("all", range(10, 30)), ("few", range(10, 14))):
        rows = "".join(f'{{"prompt": "{i}-{i}=", "reference": "0"}}\n' for i in sums)
        (tmp_path / f"{name}.jsonl").write_text(rows)
    easy, all_, few = (str(tmp_path / f"{name}.jsonl") for name in ("easy", "all", "few"))
    made = running.recipe(tmp_path / "run", warmup={"steps": 0}, train={"mini_batches": 1, "epochs": 1})
    made |= {"tasks": {"source": all_, "eval_source": few}, "evaluate": {"samples": 1}}
    del made["train"]["steps"]
    made["stages"] = [{"name": "first", "steps": 1}, {"name": "easy", "steps": 1, "tasks": easy}]
    made["stages"] += [{"name": "last", "steps": 1, "tasks": all_}]
    assay.train(made, quiet=True)
    first, second, third = [{row["prompt"] for row in step} for step in tables(tmp_path / "run", "rollouts").values()]
    assert len(first) == len(second) == len(third) == 4 and not first & third
    assert {len(prompt) for prompt in second} == {4} and {len(prompt) for prompt in first | third} == {6}


@pytest.mark.parametrize(
    ("rule", "seen", "over"),
    [
        ({"above": 0.5, "window": 2}, [0.9, 0.2, 0.7], False),
        ({"above": 0.5, "window": 2}, [0.2, 0.7, 0.3], True),
        ({"above": 0.5, "window": 2}, [0.9], False),
        ({"below": 0.1, "window": 2}, [0.5, 0.05, 0.15], True),
        ({"below": 0.1, "window": 3}, [0.05, float("nan"), 0.05], False),
        ({"plateau": 0.05, "window": 2}, [0.1, 0.2, 0.3, 0.4], False),
        ({"plateau": 0.05, "window": 2}, [0.1, 0.2, 0.18, 0.2], True),
        ({"plateau": 0.05, "window": 2}, [0.2, 0.2, 0.2], False),
    ],
)
def test_when_a_stage_is_over(rule: dict[str, float], seen: list[float], over: bool) -> None:
    assert (ended(UntilConfig.model_validate(rule), seen) is not None) == over


def test_a_recipe_of_stages_is_read_written_and_changed_by_name() -> None:
    config = load_config(recipe(Path("x")), ["stages.short.steps=3", "stages.short.until.window=2"])
    assert config.train.steps == 7
    assert config.stages[1].until is not None and config.stages[1].until.window == 2
    assert STAGES[1]["steps"] == 9
    short = config.stages[1].within(config)
    assert short.train.steps == 3 and short.rollout.group == 3 and short.tasks == config.tasks and not short.stages
    assert config.stages[2].within(config).rollout.temperature == 0.9


def test_a_stage_changes_options_of_a_part_that_the_run_only_names() -> None:
    made = {**recipe(Path("x")), "method": {"objective": "gspo", "rollout": "dynamic", "reward": "verdict"}}
    reward = {"function": "my.py:reward"}
    changed = {"objective": {"kl_weight": 0.1}, "rollout": {"rounds": 3}, "reward": reward}
    for name in ({}, {"name": "grpo"}):
        config = load_config({**made, "stages": [{"name": "long", "steps": 2, "method": {**name, **changed}}]})
        method = config.stages[0].within(config).method
        assert method.objective == {"name": "gspo", "kl_weight": 0.1}
        assert method.rollout == {"name": "dynamic", "rounds": 3}
        assert method.reward == reward
    other = load_config({**made, "stages": [{"name": "long", "steps": 2, "method": {"name": "dapo", **changed}}]})
    assert other.stages[0].within(other).method.objective == {"kl_weight": 0.1}


def test_the_best_weights_of_a_run_are_told_by_its_last_stage_alone() -> None:
    made = {**recipe(Path("x")), "stages": [{"name": "brief", "steps": 2}, {"name": "rest", "steps": 9}]}
    config = load_config(made, ["run.best=pass@1", "evaluate.every=3"])
    assert config.run.best == "pass@1"
    with pytest.raises(UsageError, match=r"run\.best is told by evaluations within its 2 steps"):
        load_config({**made, "stages": made["stages"][::-1]}, ["run.best=pass@1", "evaluate.every=3"])


def test_it_is_stored_whole(tmp_path: Path) -> None:
    config, file = load_config(recipe(tmp_path)), tmp_path / "config.toml"
    file.write_text(dump_config(config))
    assert load_config(file) == config


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["stages.shrt.steps=3"], "no stage 'shrt'; did you mean 'short'?"),
        (["train.steps=3"], "the stages have 13 together; leave it out"),
        (["train.target=0.5"], "say which stage it ends"),
        (["stages.short.train.steps=3"], "stage 'short': train.steps is not for a stage to change"),
        (["stages.short.rollout.grup=3"], "stage 'short': unknown key 'rollout.grup'; did you mean 'group'?"),
        (["stages.short.name=long"], "two have one name"),
        (["stages.short.until={}"], "give above, below or plateau"),
        (["stages.short.stps=3"], "unknown key 'stages.1.stps'; did you mean 'steps'?"),
        (["overlap.staleness=1"], "until says at any step that a stage is over"),
    ],
)
def test_a_stage_that_cannot_be_is_named(changes: list[str], words: str) -> None:
    with pytest.raises(UsageError) as error:
        load_config(recipe(Path("x")), changes)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("stages.long.method=nonsense", "stage 'long': no paper is called 'nonsense'"),
        ("stages.long.method=S042", "stage 'long': curriculum 'variants': none of the first tasks has variants"),
        ("stages.long.rollout.group=1", "stage 'long': credit GRPO compares a response with its siblings"),
        ("stages.long.method=S066", "stage 'long': its method trains a second policy"),
        ("stages.short.tasks=no_such_source", "stage 'short': no tasks part is called 'no_such_source'"),
    ],
)
def test_what_is_wrong_with_a_later_stage_is_said_before_the_first_begins(
    tmp_path: Path, change: str, words: str
) -> None:
    config = dict(recipe(tmp_path / "run"))
    with pytest.raises(UsageError) as error:
        assay.train(config, overrides=[change], quiet=True)
    assert words in str(error.value)
    assert not (tmp_path / "run").exists()


def group(task: str, *passed: bool | None) -> Group:
    verdicts = tuple(Verdict(float(bool(p)), p) for p in passed)
    return Group(Ask(Task(task, task), len(passed)), (), verdicts)


def test_pass_rates_remember_the_latest_looks_at_a_task() -> None:
    rates = PassRates(kept=3)
    assert rates.rate("a") is None
    rates.note(0, [group("a", True, False, None), group("b", None), group("a", False)])
    rates.note(1, [group("a", False, False)])
    rates.note(4, [group("a", True, True, True, False)])
    assert rates.looks("a") == ((0, 1, 3), (1, 0, 2), (4, 3, 4)) and rates.looks("b") == ()
    assert rates.rate("a") == pytest.approx(4 / 9) and rates.rate("a", since=1) == 0.5 and rates.rate("a", 5) is None
    assert rates.failed("a", 3) == 1 and rates.failed("a", 1) == 0
    rates.note(5, [group("a", False)])
    again = PassRates(kept=3)
    again.load_state_dict(rates.state_dict())
    assert again.looks("a") == ((1, 0, 2), (4, 3, 4), (5, 0, 1)) and again.failed("a", 3) == 2
