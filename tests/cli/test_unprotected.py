"""Commands that run programs: refused in one line where there is no sandbox, unprotected only when told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay
from assay import cli
from assay.errors import UsageError
from assay.sandbox import Sandbox, SandboxUnavailable, confine, pool, run_unprotected, sandbox
from assay.sandbox.unprotected import VARIABLE, unprotected
from assay.types import Task
from assay.verify.compose import AllOf
from assay.verify.isolate.pool import VerifierPool
from assay.verify.kind import KindVerifier

ADD = "```python\nprint(sum(map(int, input().split())))\n```"
TESTS = {"inputs": ["1 2\n"], "outputs": ["3\n"]}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No sandbox yet in this process, and none of what is done to it afterwards."""
    monkeypatch.setattr(pool, "_SHARED", None)
    # Set and taken away, so that whatever a test makes of it is undone.
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    confine.bubblewrap.cache_clear()
    yield monkeypatch
    confine.bubblewrap.cache_clear()


@pytest.fixture
def bare(fresh: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap."""
    fresh.setenv("PATH", "/nowhere")


def rows(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    made = [{"reference": TESTS, "response": ADD, "label": True, "kind": "code"}]
    made.append({"reference": TESTS, "response": "```python\nprint(4)\n```", "label": False, "kind": "code"})
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


def commands(folder: Path) -> list[list[str]]:
    file, out = str(rows(folder)), str(folder / "judged.jsonl")
    return [
        ["verify", "code", "--reference", json.dumps(TESTS), "--response", ADD],
        ["verify", "code", file, "--out", out, "--overwrite"],
        ["verify", "by_kind", file, "--out", out, "--overwrite"],
        ["audit", "code", file],
        ["audit", "by_kind", file],
    ]


def ended(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as leaving:
        cli.main(arguments)
    return int(leaving.value.code or 0)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("number", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 4))])
def test_without_bubblewrap_one_line_says_what_to_install(
    number: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended(commands(tmp_path)[number]) == UsageError.exit_code
    said = capfd.readouterr()
    assert said.err.count("\n") == 1 and "apt install bubblewrap" in said.err and "--unsafe-no-sandbox" in said.err
    assert not (tmp_path / "judged.jsonl").exists() and "right" not in said.out


@pytest.mark.slow
@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("number", [0, 1, 3])
def test_told_to_it_runs_unprotected_and_warns(number: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert ended([*commands(tmp_path)[number], "--unsafe-no-sandbox"]) == 0
        said = capfd.readouterr()
        assert said.err.count("warning: --unsafe-no-sandbox") == 1, "each run says so"
        assert "1 right" in said.out or "right [test 1 1]" in said.out


@pytest.mark.usefixtures("bare")
def test_a_run_is_refused_before_its_model_is_loaded(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    from assay.policies.causal_lm import CausalLM

    fresh.setattr(CausalLM, "load", lambda *_: pytest.fail("the model was loaded"))
    tasks = [Task(f"t{n}", f"Add them. {n}", TESTS, "code") for n in range(8)]
    split = ("tasks.eval_size=1", "tasks.eval_share=0.5")
    with pytest.raises(SandboxUnavailable, match="install"):
        assay.train(tasks=tasks, overrides=split, run={"dir": str(tmp_path / "run")}, quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("bare")
def test_verifiers_made_of_others_are_asked_too() -> None:
    task = Task("t", "", TESTS, "code")
    with pytest.raises(SandboxUnavailable):
        KindVerifier({"code": {"name": "all_of", "checks": ["exact", "static"]}}).check([task])
    with pytest.raises(SandboxUnavailable):
        AllOf(["exact", {"name": "gated", "gate": "exact", "then": "code"}]).ready()
    with VerifierPool({"name": "any_of", "checks": ["code"]}, 1) as judges, pytest.raises(SandboxUnavailable):
        judges.check([task])
    # What needs no sandbox is not refused, and the abstention of a single check says what is missing.
    KindVerifier().check([Task("t", "", "4", "exact")])
    verdict = KindVerifier()(task, ADD)
    assert verdict.passed is None and "bubblewrap" in verdict.feedback


def test_what_was_said_reaches_the_processes_started_from_here_and_no_others(fresh: pytest.MonkeyPatch) -> None:
    assert not unprotected() and not sandbox().unsafe
    run_unprotected()
    assert unprotected() and sandbox().unsafe and Sandbox().unsafe and not Sandbox(unsafe_no_sandbox=False).unsafe
    script = "from assay.sandbox.unprotected import unprotected; print(unprotected())"
    line = [sys.executable, "-c", script]
    assert subprocess.check_output(line) == b"True\n"
    deeper = f"import subprocess, sys; sys.exit(subprocess.call({line!r}))"
    assert subprocess.check_output([sys.executable, "-c", deeper]) == b"False\n"
    # As if somebody had left it in a profile or an image.
    for value in ("1", "true", "0", "999999999"):
        fresh.setenv(VARIABLE, value)
        assert not unprotected() or value == str(os.getppid())


def test_there_is_no_way_around_the_flag(bare: None) -> None:
    with Sandbox(1) as box, pytest.raises(SandboxUnavailable):
        box.check()
    with Sandbox(1) as box, pytest.raises(SandboxUnavailable):
        box.run(pool.Program("print(1)"))
