"""The command line: what it prints, as text and as JSON, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import running
import tomli_w
from running import recipe, run

from assay import __version__, cli
from assay.config import load_config
from assay.evaluate import Evaluation
from assay.tasks.arithmetic import Arithmetic


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("cli") / "run", warmup={"steps": 1}, train={"steps": 1})


def called(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that succeeds writes to standard output."""
    with pytest.raises(SystemExit) as ended:
        sys.exit(cli.main(list(arguments)))
    written = capfd.readouterr()
    assert not ended.value.code, written.err
    return written.out


def shell(line: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    """Run a line of shell with ``assay`` standing for this interpreter's command."""
    line = line.replace("assay ", f"{sys.executable} -m assay ")
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=environment)


def test_the_version_and_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert called(capfd, "--version") == f"assay {__version__}\n"
    said = called(capfd, "--help")
    assert all(command in said for command in ("train", "quickstart", "eval", "report", "tasks", "papers"))
    assert "Example" not in said, "examples stand in the help of each command"
    assert "--resume" in called(capfd, "train", "--help") and "Example" in called(capfd, "train", "--help")


def test_a_run_and_its_continuation(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file, folder = tmp_path / "recipe.toml", tmp_path / "run"
    file.write_text(tomli_w.dumps(recipe(folder)))
    called(capfd, "train", str(file), "train.steps=1", "warmup.steps=1", "--quiet")
    assert len(running.metrics(folder)) == 2
    called(capfd, "train", "--resume", str(folder), "train.steps=2")
    assert len(running.metrics(folder)) == 3
    # Overrides may come first, and alone.
    called(capfd, "train", "train.steps=3", "--resume", str(folder), "--quiet")
    assert len(running.metrics(folder)) == 4


def test_overrides_without_a_recipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [
        *("model=nano", "model.nano.hidden=16", "model.nano.layers=1", "model.nano.heads=2", "tasks=countdown"),
        *("tasks.eval_size=4", "rollout.prompts=2", "rollout.max_tokens=3", "train.steps=1", "evaluate.samples=1"),
        *("method=grpo", "method.objective.clip_high=0.3", "run.report=false", "run.tensorboard=false"),
    ]
    called(capfd, "train", *words, f"run.dir={tmp_path / 'run'}", "--quiet")
    config = load_config(tmp_path / "run" / "config.toml")
    assert config.tasks.source == "countdown"
    assert config.method.objective == {"clip_high": 0.3}


def test_an_option_of_the_methods_own_part_reaches_it() -> None:
    from assay.method import make_method

    method = make_method(
        **load_config(None, ["method.objective.clip_high=0.3", "method.curriculum.prompts=5"]).method.model_dump()
    )
    assert (method.objective.clip_low, method.objective.clip_high) == (0.2, 0.3)  # type: ignore[attr-defined]
    assert method.curriculum == {"name": "uniform", "prompts": 5}


def test_task_sources(capfd: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(called(capfd, "tasks", "list", "--json"))
    assert {"arithmetic", "countdown", "file"} <= {r["name"] for r in rows}
    assert "countdown" in called(capfd, "tasks")
    shown = json.loads(called(capfd, "tasks", "show", "arithmetic", "--json"))
    assert "digits" in {o["name"] for o in shown["options"]}
    assert "digits" in called(capfd, "tasks", "show", "arithmetic")
    lines = called(capfd, "tasks", "sample", "arithmetic", "digits=3", "-n", "2", "--json").splitlines()
    source = Arithmetic(digits=3)
    assert [json.loads(line)["prompt"] for line in lines] == [source[0].prompt, source[1].prompt]
    assert str(source[0].prompt) in called(capfd, "tasks", "sample", "arithmetic", "digits=3", "-n", "1")


def test_papers(capfd: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(called(capfd, "papers", "list", "--json"))
    assert len(rows) == 226
    assert {"id", "title", "state", "seams"} <= rows[0].keys()
    assert all("factory" not in r for r in rows)
    assert called(capfd, "papers").splitlines()[-1].startswith("226 papers: ")
    shown = json.loads(called(capfd, "papers", "show", "S014", "--json"))
    assert (shown["id"], shown["name"], shown["state"]) == ("S014", "DISPO", shown["state"])
    assert "log pi" in shown["text"] and "right_low=0.2" in shown["options"]
    assert "DISPO" in called(capfd, "papers", "show", "dispo")


def test_evaluating_a_run(finished: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "responses.parquet"
    said = called(capfd, "eval", str(finished), "--samples", "3", "--json", "--out", str(out))
    found = json.loads(said)
    assert (found["tasks"], found["samples"], found["step"]) == (6, 18, 1)
    stored = Evaluation.from_parquet(out)
    expected = stored.metrics()
    for name, there in (("pass@1", "pass@1"), ("pass@3", "pass@3"), ("length", "length/mean")):
        assert found["metrics"][name]["value"] == pytest.approx(expected[there])
    assert found["metrics"]["pass@1"]["high"] == pytest.approx(expected["pass@1/high"])
    assert stored.step == 1
    # The same tasks that the run held out, the same draws each time.
    assert list(stored.by_task()) == [r["task_id"] for r in running.tables(finished, "evals")["before.parquet"][::2]]
    assert called(capfd, "eval", str(finished), "--samples", "3", "--json") == said
    cli_text = shown_table(capfd, finished)
    assert "pass@1" in cli_text
    assert "95% interval" in cli_text


def shown_table(capfd: pytest.CaptureFixture[str], folder: Path) -> str:
    with pytest.raises(SystemExit):
        cli.main(["eval", str(folder), "--samples", "1"])
    written = capfd.readouterr()
    return written.out + written.err


def test_a_runs_weights_are_evaluated(finished: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def samples(*arguments: str) -> object:
        called(capfd, "eval", *arguments, "--json", "--samples", "4", "--out", str(tmp_path / "out.parquet"))
        return Evaluation.from_parquet(tmp_path / "out.parquet").samples

    of_run, config = samples(str(finished)), str(finished / "config.toml")
    assert samples(config) != of_run
    # The checkpoint's policy folder is a model of its own.
    policy = sorted((finished / "checkpoints").iterdir())[-1] / "policy"
    assert samples(config, f"model={policy}") == of_run


def test_evaluating_a_recipe_with_overrides(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(recipe(tmp_path / "run")))
    found = json.loads(called(capfd, "eval", str(file), "tasks=countdown", "tasks.eval_size=3", "--json"))
    assert found["tasks"] == 3
    assert not (tmp_path / "run").exists()


def test_the_report_of_a_run(finished: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert called(capfd, "report", str(finished)) == f"{finished / 'report.html'}\n"
    assert "<html" in (finished / "report.html").read_text()


@pytest.mark.parametrize(
    ("line", "unbuffered"),
    [
        ("papers list | head -1", ""),
        pytest.param("papers list --json | head -c9", "1", marks=pytest.mark.slow),
        pytest.param("tasks sample chain | true", "", marks=pytest.mark.slow),
        ("tasks sample chain | true", "1"),
    ],
)
def test_a_reader_that_goes_away_makes_no_trace(line: str, unbuffered: str) -> None:
    done = shell(f"assay {line}; exit ${{PIPESTATUS[0]}}", unbuffered)
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.slow
def test_a_real_process(tmp_path: Path) -> None:
    file, folder = tmp_path / "recipe.toml", tmp_path / "run"
    file.write_text(tomli_w.dumps(recipe(folder, warmup={"steps": 1}, train={"steps": 1})))
    done = shell(f"assay train {file}")
    assert done.returncode == 0
    assert done.stdout == ""
    # On a slow machine the steps have lines too.
    assert [line.partition(":")[0] for line in done.stderr.splitlines() if "RL" not in line] == ["before", "after"]


def test_a_setting_behind_an_option_is_told_where_to_go(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["eval", "somewhere", "tasks=countdown", "--samples", "2", "rollout.max_tokens=32"])
    assert stopped.value.code == 2
    assert "before the first --option; move rollout.max_tokens=32" in capfd.readouterr().err


@pytest.mark.parametrize("given", [["--train.steps=5"], ["--train.steps", "5"]])
def test_a_setting_written_as_an_option_is_told_how_it_is_written(
    given: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["train", "gsm8k", *given])
    assert stopped.value.code == 2
    assert "settings of a recipe have no dashes: train.steps=5" in capfd.readouterr().err


def test_every_command_has_one_example_in_its_help() -> None:
    commands = {n: c for n, c in vars(cli).items() if getattr(c, "__module__", "").startswith("assay.cli.")}
    assert len(commands) > 25
    assert {n: c.__doc__.count("Example: assay ") for n, c in commands.items()} == dict.fromkeys(commands, 1)
