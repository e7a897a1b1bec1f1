"""``assay plan`` as it is typed, and the benchmarks that go with it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from assay import cli

ROOT = Path(__file__).parents[2]
SEVEN = ("model=Qwen/Qwen2.5-7B", "model.dtype=bfloat16", "model.gradient_checkpointing=true", "--prompt-tokens", "100")


def called(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of ``assay plan``."""
    with pytest.raises(SystemExit) as ended:
        sys.exit(cli.main(["plan", *arguments]))
    out, err = capfd.readouterr()
    return int(ended.value.code or 0), out, err


def benchmark(name: str) -> ModuleType:
    """A benchmark's script as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_plan_is_printed_with_its_formulas(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capfd, *SEVEN, "--gpus", "8", "--gpu", "h100")
    assert code == 0
    assert "7.62 billion parameters, 57,344 bytes of keys and values per token" in out
    for word in ("parameters * bytes / trainers", "bound by", "decode", "cost of the run", "other divisions"):
        assert word in out
    assert "assumed, not measured" in out
    _, explained, _ = called(capfd, *SEVEN, "--gpus", "8", "--explain")
    assert "parameters = 7.62e+09" in explained


def test_a_run_in_stages_is_planned_stage_by_stage(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "stages.toml"
    recipe.write_text(
        '[[stages]]\nname = "short"\nsteps = 20\nrollout = {max_tokens = 16}\n'
        '[[stages]]\nname = "wide"\nsteps = 30\nrollout = {max_tokens = 16, group = 64}\n'
    )
    code, out, _ = called(capfd, str(recipe), "--json")
    found = json.loads(out)["stages"]
    assert code == 0 and list(found) == ["short", "wide"]
    assert found["wide"]["step"]["value"] > 2 * found["short"]["step"]["value"]
    _, out, _ = called(capfd, str(recipe))
    assert re.search(r"^in all +50 ", out, re.MULTILINE) and "the longest, wide:" in out


def test_the_json_adds_up(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capfd, *SEVEN, "--gpus", "8", "--json", "--price", "2")
    found = json.loads(out)
    assert code == 0 and found["fits"]
    seconds = sum(part["seconds"] for part in found["time"].values())
    assert found["step"]["value"] == pytest.approx(seconds)
    for part in found["time"].values():
        assert part["seconds"] == pytest.approx(sum(p["value"] for p in part["parts"]))
    totals = {q["name"]: q["value"] for q in found["totals"]}
    assert totals["cost per step"] == pytest.approx(8 * 2 * seconds / 3600)
    # What is said can be computed again from what is shown, where no series is in it.
    for q in found["memory"]["trainer"] + found["memory"]["engine"]:
        assert eval(q["formula"], {"__builtins__": {}, "max": max, "min": min}, q["inputs"]) == pytest.approx(
            q["value"]
        )


def test_what_does_not_fit_is_said_with_what_would_do(capfd: pytest.CaptureFixture[str]) -> None:
    model = ("model=Qwen/Qwen2.5-7B", "model.dtype=bfloat16", "rollout.max_rows=64")
    code, out, _ = called(capfd, *model, "--gpus", "1", "--prompt-tokens", "100")
    assert code == 1
    assert "does NOT fit" in out and "model.lora.rank=16" in out
    code, out, _ = called(
        capfd,
        *model,
        "model.lora.rank=16",
        "model.gradient_checkpointing=true",
        "--gpus",
        "1",
        "--prompt-tokens",
        "100",
    )
    assert code == 0, out


def test_a_recipe_and_shapes_by_hand(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('[model]\nsource = "nano"\n[model.nano]\nhidden = 32\nlayers = 2\nheads = 2\n')
    code, out, _ = called(capfd, str(recipe), "--gpu", "l4")
    assert code == 0 and "nano:" in out and "prompts of" in out
    code, out, _ = called(
        capfd, str(recipe), "--shape", "layers=32", "hidden=4096", "heads=32", "--gpu", "b200", "--json"
    )
    assert json.loads(out)["model"]["layers"] == 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SEVEN, "--gpu", "h10"), "no accelerator 'h10' is known; did you mean 'h100'?"),
        (("nowhere.toml",), "no recipe nowhere.toml"),
        ((), "name a recipe"),
        (("model=./nowhere",), "no folder ./nowhere"),
        (("tasks.source.name=file", "tasks.source.path=none.jsonl"), "give --prompt-tokens"),
        (("rollout.grup=3",), "did you mean 'group'?"),
        ((*SEVEN, "--out", "x.json"), "--out is where --calibrate writes"),
        (("--calibrate", "nowhere"), "nowhere is no run folder"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capfd, *arguments)
    assert code == 2
    assert message in err and err.count("\n") == 1


def test_a_run_here_is_calibrated_on_and_planned(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from running import run

    folder, file = run(tmp_path / "run"), tmp_path / "e.json"
    code, out, err = called(capfd, "--calibrate", str(folder), "--gpu", "cpu", "--out", str(file))
    assert code == 0, err
    assert "generate" in out and "update" in out and str(file) in out
    code, out, err = called(capfd, str(folder / "config.toml"), "--gpu", "cpu", "--efficiency", str(file), "--json")
    found = json.loads(out)
    assert code == 0, err
    assert found["efficiency"]["source"] == f"fitted to {folder}"
    measured = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    measured = [row["time/generate"] for row in measured if row["stage"] == "rl"]
    # Milliseconds on a busy machine: the same order is what can be asked for.
    assert 0.1 < found["time"]["generate"]["seconds"] / sorted(measured)[len(measured) // 2] < 10


def test_planning_loads_nothing_heavy_for_its_help() -> None:
    script = "from assay import cli\ntry: cli.main(['plan', '--help'])\nexcept SystemExit: pass\nimport sys\n"
    script += "print('LOADED', [m for m in ('torch', 'transformers', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED []"


@pytest.mark.parametrize(
    "part",
    ["generate, assay", "generate, transformers", "update, assay", "update, transformers", "step, assay", "step, TRL"],
)
def test_every_contender_of_the_gpu_benchmark_runs(part: str, tmp_path: Path) -> None:
    gpu = benchmark("gpu")
    function, package = gpu.CONTENDERS[part]
    if package:
        pytest.importorskip(package)
    arguments = ["--device", "cpu", "--tiny", "--folder", str(tmp_path / "model"), "--peak", "1e12"]
    options = gpu.parse(arguments)
    gpu.make_model(options, tmp_path / "model")
    found: dict[str, Any] = function(gpu.Bench(options))
    assert found["seconds"] > 0
    assert found["tokens_per_second"] == pytest.approx(2 * 2 * 6 / found["seconds"])
    assert found["peak_gib"] > 0
    if part.startswith("update"):
        assert 0 < found["mfu"] < 1


@pytest.mark.slow
def test_the_gpu_benchmark_as_a_command(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    done = run()
    assert done.returncode == 0 and done.stdout.startswith("no GPU here") and done.stdout.count("\n") == 1
    out = tmp_path / "record.json"
    done = run("--device", "cpu", "--tiny", "--only", "update, assay", "generate, vLLM", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(out.read_text())
    assert record["model"] == "tiny" and record["settings"]["new_tokens"] == 6
    assert record["parts"]["update, assay"]["mfu"] > 0
    if importlib.util.find_spec("vllm") is None:
        assert record["parts"]["generate, vLLM"] == {"left_out": "vllm is not installed"}


@pytest.mark.slow
def test_the_examples_in_the_documentation_are_what_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "scaling.md").read_text()
    found = re.findall(r"```sh\n(assay plan model=.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(found) == 4
    for command, output in found:
        words = shlex.split(command.replace("\\\n", " "))[2:]
        code, out, _ = called(capfd, *words)
        assert code == 0
        assert output.splitlines()[:4] == out.splitlines()[:4]
