"""However a run is stopped, the resumed one ends with the same bits as one that never stopped."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import running
import tomli_w
from running import assert_same, child, command, recipe, run

import assay
from assay.engines.target import resolve
from assay.errors import RunError, UsageError
from assay.learning import step
from assay.records import files
from assay.records.checkpoints import checkpoints, kept_best, last_checkpoint
from assay.records.run_folder import RunFolder
from assay.report.export import export
from assay.training import loop
from assay.verify import KindVerifier


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    return run(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of the uninterrupted run, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def resume(folder: Path, **arguments: Any) -> assay.Result:
    return assay.train(resume=folder, quiet=True, **arguments)


# Stopped by a signal


def signalled(log: Path, recipe_file: Path, number: int, moment: tuple[str, Any]) -> None:
    """In a child: ``assay train`` that sends itself a signal when a step is logged, or within an evaluation."""
    kind, when = moment
    original_log, original_evaluate = RunFolder.log, loop.evaluate

    def logged(self: RunFolder, stage: str, step: int, metrics: dict[str, float]) -> None:
        original_log(self, stage, step, metrics)
        if kind == "step" and (stage, step) == when:
            os.kill(os.getpid(), number)

    def evaluated(*arguments: Any, label: str, progress: Callable[[int, int], None], **others: Any) -> Any:
        def struck(done: int, total: int) -> None:
            if kind == "evaluation" and label == when:
                os.kill(os.getpid(), number)
            progress(done, total)

        return original_evaluate(*arguments, label=label, progress=struck, **others)

    RunFolder.log, loop.evaluate = logged, evaluated  # type: ignore[method-assign]
    command(log, "train", str(recipe_file))


@pytest.mark.parametrize(
    ("number", "moment", "reached"),
    [
        pytest.param(signal.SIGINT, ("step", ("warmup", 1)), "warmup-000001", marks=pytest.mark.slow),
        (signal.SIGTERM, ("step", ("rl", 1)), "rl-000001"),
        pytest.param(signal.SIGINT, ("evaluation", "before"), "rl-000000", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, ("evaluation", "step-000002"), "rl-000002", marks=pytest.mark.slow),
        (signal.SIGTERM, ("evaluation", "after"), "rl-000004"),
    ],
    ids=lambda v: "-".join(map(str, v)) if isinstance(v, tuple) else None,
)
def test_a_signal_ends_the_step_in_flight_and_saves(
    whole: Path, tmp_path: Path, number: int, moment: tuple[str, Any], reached: str
) -> None:
    folder, log, file = tmp_path / "run", tmp_path / "log", tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(recipe(folder)))
    assert child(signalled, log, file, number, moment) == 128 + number
    said = log.read_text()
    assert f"assay train --resume {folder}" in said
    assert "Traceback" not in said
    assert checkpoints(folder)[-1].name == reached
    result = resume(folder)
    assert result.stopped_by is None
    assert_same(folder, whole)


def struck_twice(log: Path, recipe_file: Path) -> None:
    """In a child: ``assay train`` that gets Ctrl-C twice within a step."""
    original = step.judge_groups
    calls = []

    def judge(verifier: Any, groups: Any) -> Any:
        calls.append(len(groups))
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return original(verifier, groups)

    step.judge_groups = judge
    command(log, "train", str(recipe_file))


def test_a_second_ctrl_c_stops_at_once(whole: Path, tmp_path: Path) -> None:
    folder, log, file = tmp_path / "run", tmp_path / "log", tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(recipe(folder)))
    assert child(struck_twice, log, file) == 130
    said = log.read_text()
    assert "again stops at once" in said
    assert f"assay train --resume {folder}" in said
    assert "Traceback" not in said
    assert checkpoints(folder)[-1].name == "rl-000000"
    resume(folder)
    assert_same(folder, whole)


# Killed


def counted(die_at: int | None) -> list[str]:
    """Count what a run does to the disk, by patching; at number ``die_at`` the process is killed without a word."""
    done: list[str] = []

    def before(module: Any, name: str) -> None:
        original = getattr(module, name)

        def patched(*arguments: Any, **others: Any) -> Any:
            if len(done) == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            done.append(name)
            return original(*arguments, **others)

        setattr(module, name, patched)

    for module, name in ((os, "fsync"), (os, "replace"), (shutil, "rmtree"), (loop.torch, "save"), (RunFolder, "log")):
        before(module, name)
    return done


def killed(log: Path, recipe_file: Path, die_at: int | None) -> None:
    """In a child: ``assay train`` until its ``die_at``-th write, or to the end with the number of writes in the log."""
    done = counted(die_at)
    try:
        command(log, "train", str(recipe_file))
    finally:
        print("writes", len(done))


@pytest.mark.parametrize("often", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_killed_at_any_write_goes_on(whole: Path, tmp_path: Path, often: bool) -> None:
    file, log = tmp_path / "recipe.toml", tmp_path / "log"
    file.write_text(tomli_w.dumps(recipe(tmp_path / "run")))
    assert child(killed, log, file, None) == 0
    writes = int(log.read_text().split()[-1])
    assert writes > 60
    # The first moments, the first checkpoint, and every part of the run after them; or the first and two later ones.
    for die_at in (1, 5, 9, *range(23, writes, writes // 4)) if often else (5, 23, writes - 9):
        folder = tmp_path / f"killed-{die_at}"
        file.write_text(tomli_w.dumps(recipe(folder)))
        assert child(killed, log, file, die_at) == -signal.SIGKILL
        if (folder / "config.toml").is_file():
            resume(folder)
        else:
            run(folder)
        assert_same(folder, whole)


@pytest.mark.slow
def test_a_run_killed_while_resuming_goes_on(whole: Path, copy: Path, tmp_path: Path) -> None:
    shutil.rmtree(copy / "checkpoints" / "rl-000004")
    for die_at in (1, 4):
        assert child(killed_on_resume, tmp_path / "log", copy, die_at) == -signal.SIGKILL
    resume(copy)
    assert_same(copy, whole)


def killed_on_resume(log: Path, folder: Path, die_at: int) -> None:
    """In a child: ``assay train --resume`` until its ``die_at``-th write."""
    counted(die_at)
    command(log, "train", "--resume", str(folder))


# Damaged


@pytest.mark.parametrize(
    ("name", "how"),
    [
        pytest.param(name, how, marks=() if (how == "cut") is (name == "trainer.pt") else pytest.mark.slow)
        for name in ("trainer.pt", "policy/model.safetensors", "manifest.json", "config.toml")
        for how in ("missing", "cut")
    ],
)
def test_a_damaged_checkpoint_is_not_read(
    copy: Path, whole: Path, capfd: pytest.CaptureFixture[str], name: str, how: str
) -> None:
    file = copy / "checkpoints" / "rl-000004" / name
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assay.train(resume=copy)
    said = capfd.readouterr().err
    assert f"checkpoint rl-000004 lacks {name}" in said
    assert f"resumed {copy} at rl step 2" in said
    assert_same(copy, whole)


def test_no_whole_checkpoint_is_one_line(copy: Path) -> None:
    for path in checkpoints(copy):
        (path / "trainer.pt").unlink()
    with pytest.raises(UsageError, match=r"no whole checkpoint in .*rl-000004 lacks trainer.pt; rl-000002 lacks"):
        resume(copy)
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(UsageError, match=r"no whole checkpoint in .*: it has none; start again in another run.dir"):
        resume(copy)


def test_what_a_crash_leaves_is_cleared(copy: Path, whole: Path) -> None:
    shutil.rmtree(copy / "checkpoints" / "rl-000004")
    with (copy / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "rl", "step": 5, "lo')
    for stray in (".config.toml.partial", "rollouts/.step-000005.parquet.partial", "evals/.after.parquet.17.tmp"):
        (copy / stray).write_bytes(b"half")
    stray_folder = copy / "checkpoints" / ".rl-000006.partial"
    stray_folder.mkdir()
    (stray_folder / "trainer.pt").write_bytes(b"half")
    (copy / "evals" / "after.parquet").write_bytes(b"half")
    resume(copy)
    assert_same(copy, whole)


# Extended, finished, changed


def test_a_finished_run_is_left_alone(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def written() -> dict[str, int]:
        kept = [p for folder in ("checkpoints", "evals", "rollouts") for p in (copy / folder).rglob("*")]
        return {str(p): p.stat().st_mtime_ns for p in kept}

    before = written()
    result = assay.train(resume=copy)
    assert "is finished" in capfd.readouterr().err
    assert result.stopped_by is None
    assert result.after is not None
    assert written() == before


@pytest.mark.slow
def test_a_finished_run_can_be_extended(copy: Path, tmp_path: Path) -> None:
    resume(copy, overrides=["train.steps=6"])
    assert_same(copy, run(tmp_path / "long", train={"steps": 6}))
    # The change is remembered.
    assert "steps = 6" in (copy / "config.toml").read_text()


@pytest.mark.parametrize(
    ("lost", "overrides"), [("rl-000004", []), (None, ["train.steps=6"])], ids=["redone", "extended"]
)
def test_nothing_is_left_of_the_future(
    copy: Path, monkeypatch: pytest.MonkeyPatch, lost: str | None, overrides: list[str]
) -> None:
    if lost:
        shutil.rmtree(copy / "checkpoints" / lost)
        shutil.copy(copy / "evals" / "after.parquet", copy / "evals" / "step-000004.parquet")
    original = RunFolder.log

    def logged(self: RunFolder, *arguments: Any) -> None:
        original(self, *arguments)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(RunFolder, "log", logged)
    result = resume(copy, overrides=overrides)
    assert result.after is None
    last = 3 if lost else 5
    assert [int(p.stem[5:]) for p in sorted((copy / "rollouts").iterdir())] == list(range(1, last + 1))
    assert running.metrics(copy)[-1]["step"] == last
    evaluations = {"before", "step-000002"} | (set() if lost else {"step-000004"})
    assert {p.stem for p in (copy / "evals").iterdir()} == evaluations


@pytest.fixture
def always_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier is content with everything."""
    monkeypatch.setattr(KindVerifier, "__call__", lambda *_: assay.Verdict.right())


@pytest.mark.usefixtures("always_right")
def test_a_run_that_reached_its_target_is_finished(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    result = assay.train(recipe(folder, train={"target": 1.0}))
    assert "reached the target 1 at step 0" in capfd.readouterr().err
    assert result.after is not None
    assert result.after.step == 0
    assay.train(resume=folder)
    assert "is finished" in capfd.readouterr().err
    assert not (folder / "rollouts").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("always_right")
def test_a_warm_up_ends_at_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sections = {"warmup": {"steps": 9, "target": 1.0, "every": 2}}
    whole = run(tmp_path / "whole", **sections)
    assert [r["step"] for r in running.metrics(whole) if r["stage"] == "warmup"] == [1, 2]
    folder = tmp_path / "run"
    original = loop.evaluate

    def struck(*arguments: Any, **others: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return original(*arguments, **others)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "evaluate", struck)
        assert assay.train(recipe(folder, **sections), quiet=True).stopped_by == "SIGINT"
    assert checkpoints(folder)[-1].name == "warmup-000002"
    resume(folder)
    assert_same(folder, whole)


def test_another_configuration_is_refused(copy: Path) -> None:
    with pytest.raises(UsageError, match=r"keeps its configuration; train.lr: 0.001 -> 0.1 would make it another run"):
        resume(copy, overrides=["train.lr=0.1"])
    text = (copy / "config.toml").read_text()
    (copy / "config.toml").write_text(text.replace("group = 3", "group = 4"))
    with pytest.raises(UsageError, match=r"keeps its configuration; rollout.group: 3 -> 4 would"):
        resume(copy)
    # Refusing lets go of the folder.
    (copy / "config.toml").write_text(text)
    resume(copy, overrides=["evaluate.every=4", "run.checkpoint_every=1"])


def test_a_moved_run_goes_on(copy: Path, whole: Path) -> None:
    shutil.rmtree(copy / "checkpoints" / "rl-000004")
    moved = copy.rename(copy.with_name("elsewhere"))
    assert resume(moved).folder == moved
    assert_same(moved, whole)


# Everything that has a state


@pytest.mark.parametrize(
    "sections",
    [
        {
            "method": {"objective": {"name": "clip", "kl_weight": 0.1, "entropy_weight": 0.01}},
            "train": {"schedule": "linear", "ramp": 2, "epochs": 1, "mini_batches": 4},
        },
        {"model": {"lora": {"rank": 2, "dropout": 0.2}}, "warmup": {"steps": 2}},
    ],
    ids=["reference policy and schedule", "adapters with dropout"],
)
def test_other_state_is_in_the_checkpoint(sections: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    base = {**recipe("unused")["method"], **sections.get("method", {})}
    sections = {**sections, "method": base}
    whole = run(tmp_path / "whole", **sections)
    folder = tmp_path / "run"
    original, seen = RunFolder.log, 0

    def logged(self: RunFolder, *arguments: Any) -> None:
        nonlocal seen
        original(self, *arguments)
        seen += 1
        if seen in (1, 3, 4):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(RunFolder, "log", logged)
    result = assay.train(recipe(folder, **sections), quiet=True)
    rounds = 0
    while result.stopped_by:
        assert result.stopped_by == "SIGTERM"
        result = resume(folder)
        rounds += 1
    assert rounds == 3
    assert_same(folder, whole)


def test_a_lost_reference_policy_is_one_line(tmp_path: Path) -> None:
    objective = {"name": "clip", "kl_weight": 0.1}
    folder = run(tmp_path / "run", method={"objective": objective}, evaluate={"every": 0}, warmup={"steps": 0})
    (folder / "reference" / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"the reference policy in .* lacks model.safetensors"):
        resume(folder, overrides=["train.steps=5"])


# Failures inside a step, and of the disk


def test_a_failing_reward_repeats_its_step(whole: Path, tmp_path: Path) -> None:
    asked: list[list[str]] = []
    calls = 0

    def moody(prompts: list[str], completions: list[str]) -> list[float]:
        nonlocal calls
        calls += 1
        asked.append(prompts)
        if calls == 2:
            return [float("nan")] * len(prompts)
        return [running.varied(None, c) for c in completions]

    folder = tmp_path / "run"
    sections = recipe(folder)
    del sections["method"]
    with pytest.raises(RunError, match=r"reward function moody returned nan for row 0 \(task .*, response "):
        assay.train(sections, reward=moody, quiet=True)
    assert checkpoints(folder)[-1].name == "rl-000001"
    assay.train(resume=folder, reward=moody, quiet=True)
    assert asked[1] == asked[2]
    assert len(asked) == 5
    # The same rewards under another name.
    for rows in (a := running.tables(folder, "rollouts")).values():
        for row in rows:
            row["reward/varied"] = row.pop("reward/moody")
    assert a == running.tables(whole, "rollouts")
    assert running.metrics(folder) == running.metrics(whole)


@pytest.mark.slow
def test_a_failure_in_the_first_step_repeats_it(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(step, "compute_signals", _no_memory)
        with pytest.raises(RunError, match="the device ran out of memory after rl step 0; start a run with a lower"):
            run(folder)
    assert checkpoints(folder)[-1].name == "rl-000000"
    resume(folder)
    assert_same(folder, whole)


def _no_memory(*_: Any) -> None:
    raise loop.torch.OutOfMemoryError("CUDA out of memory")


def test_a_failure_after_the_weights_changed_goes_back(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    original, calls = loop.update, 0

    def failing(*arguments: Any, **others: Any) -> Any:
        nonlocal calls
        calls += 1
        # Three warm-up updates, four in the first RL step; this is the second of the second.
        if calls == 9:
            raise RunError("not finite")
        return original(*arguments, **others)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "update", failing)
        with pytest.raises(RunError, match="not finite"):
            run(folder)
    assert checkpoints(folder)[-1].name == "rl-000000"
    resume(folder)
    assert_same(folder, whole)


def _full(*_: Any, **__: Any) -> None:
    import errno

    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("module", "name", "what"),
    [
        (loop.torch, "save", "a checkpoint"),
        (files.os, "fsync", "a checkpoint"),
        (pytest.importorskip("pyarrow.parquet"), "write_table", "rollouts"),
        (files.os, "replace", "a checkpoint"),
    ],
    ids=["torch.save", "fsync", "parquet", "replace"],
)
def test_a_full_disk_is_one_line_and_loses_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, what: str
) -> None:
    folder = tmp_path / "run"
    original_log = RunFolder.log

    def logged(self: RunFolder, stage: str, step: int, metrics: dict[str, float]) -> None:
        original_log(self, stage, step, metrics)
        if (stage, step) == (("rl", 2) if name == "write_table" else ("warmup", 2)):
            monkeypatch.setattr(module, name, _full)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", logged)
        with pytest.raises(RunError) as caught:
            run(folder)
    monkeypatch.undo()
    message = str(caught.value)
    assert message.startswith(f"could not write {what}: the disk is full")
    assert message.endswith(f"assay train --resume {folder}")
    assert "\n" not in message
    assert running.leftovers(folder) == []
    assert checkpoints(folder)
    resume(folder)
    assert_same(folder, whole)


def test_a_checkpoint_is_not_taken_for_a_run(tmp_path: Path) -> None:
    """It has a config.toml too, and a run begun anew in it would leave it neither."""
    folder = running.run(tmp_path / "run", evaluate={"every": 1, "samples": 1}, run={"best": "pass@1"})
    for path in [last_checkpoint(folder)[2], *kept_best(folder)]:
        before = sorted(path.rglob("*"))
        with pytest.raises(
            UsageError, match=r"is a checkpoint of the run in .*/run, which goes on from its last whole"
        ):
            assay.train(resume=path, quiet=True)
        with pytest.raises(UsageError, match=rf"name that, with --checkpoint ({path.name}|best)"):
            export(path, tmp_path / "out")
        assert sorted(path.rglob("*")) == before
    assert resolve(str(folder / "best")).step == 1
    with pytest.raises(UsageError, match=r"run\.dir=.*: a resumed run stays in its folder"):
        assay.train(resume=folder, overrides=[f"run.dir={tmp_path / 'other'}"], quiet=True)
    with pytest.raises(UsageError, match=r"holds no config\.json.*; it has one in .*rl-000004/policy"):
        assay.train({"model": {"source": str(folder)}}, quiet=True)


def test_code_of_ones_own_that_was_edited_is_told_of(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def one(task, response):\n    return 1.0 * len(response)\n")
    made = recipe(tmp_path / "run", train={"steps": 2}, method={"reward": {"function": f"{file}:one"}})
    assay.train(made, quiet=True)
    assay.train(resume=tmp_path / "run", overrides=["train.steps=3"])
    assert "no longer what it was" not in capfd.readouterr().err
    file.write_text("def one(task, response):\n    return -1.0 * len(response)\n")
    assay.train(resume=tmp_path / "run", overrides=["train.steps=4"])
    assert f"{file} is no longer what it was when the run began" in capfd.readouterr().err
    file.rename(tmp_path / "gone.py")
    with pytest.raises(UsageError, match=r"no file .*mine\.py"):
        assay.train(resume=tmp_path / "run", overrides=["train.steps=5"], quiet=True)
