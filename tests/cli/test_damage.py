"""Whatever is damaged in a run's folder is named in one line, and the run goes on from what is whole."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import running
import torch
from running import assert_same, run

import assay
from assay import cli
from assay.engines.target import resolve
from assay.errors import RunError, UsageError
from assay.evaluate import Evaluation
from assay.records import files
from assay.records.checkpoints import checkpoints, last_checkpoint


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing damaged."""
    return run(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def flip(file: Path, bit: int = 0) -> None:
    """Turn one bit in the middle of a file around."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1 << bit
    file.write_bytes(content)


def flip_value(file: Path, column: str) -> None:
    """Turn one bit in the values of a column of a Parquet file around."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as parquet:
        chunk = parquet.metadata.row_group(0).column(parquet.schema_arrow.names.index(column))
    content = bytearray(file.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start + chunk.total_compressed_size - 1] ^= 1
    file.write_bytes(content)


def sealed(checkpoint: Path) -> None:
    """List a checkpoint's files as they are now, as if a run had written them so."""
    (checkpoint / "manifest.json").unlink()
    files.finish_folder(Path(shutil.move(checkpoint, checkpoint.with_name("moved"))), checkpoint)


def lines(said: str, word: str) -> list[str]:
    return [line for line in said.splitlines() if word in line]


# Checkpoints


@pytest.mark.parametrize(
    "name",
    [
        "trainer.pt",
        "policy/model.safetensors",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("policy/config.json", "config.toml")),
    ],
)
def test_one_flipped_bit_is_noticed(copy: Path, whole: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    flip(copy / "checkpoints" / "rl-000004" / name)
    assay.train(resume=copy)
    said = capfd.readouterr().err
    assert f"checkpoint rl-000004 holds a damaged {name} and is not used" in said
    assert f"resumed {copy} at rl step 2" in said
    assert_same(copy, whole)


def test_every_file_of_a_folder_is_looked_at(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        for name in ("trainer.pt", "shards/__0_0.distcp", "shards/__1_0.distcp"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(os.urandom(1000))

    files.write_folder(tmp_path / "a", write)
    assert files.damage(tmp_path / "a") is None
    flip(tmp_path / "a" / "shards" / "__1_0.distcp")
    assert files.damage(tmp_path / "a") == "holds a damaged shards/__1_0.distcp"
    (tmp_path / "a" / "shards" / "__0_0.distcp").unlink()
    assert files.damage(tmp_path / "a") == "lacks shards/__0_0.distcp"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": null}', '{"a": [1, 2]}', '{"a": ["x", "y"]}', "\x00", '{"a": {"b": 1}}', '"ab"']
)
def test_a_manifest_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert files.damage(tmp_path) == "lacks manifest.json"


def test_a_manifest_of_sizes_alone_still_counts(copy: Path) -> None:
    manifest = copy / "checkpoints" / "rl-000004" / "manifest.json"
    sizes = {name: size for name, (size, _) in json.loads(manifest.read_text()).items()}
    manifest.write_text(json.dumps(sizes))
    assert last_checkpoint(copy)[1] == 4


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def _changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def damage(checkpoint: Path) -> None:
        state = torch.load(checkpoint / "trainer.pt", weights_only=True)
        torch.save(change(state), checkpoint / "trainer.pt")

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: (c / "trainer.pt").write_bytes(b"garbage"),
        lambda c: (c / "trainer.pt").write_bytes(b""),
        lambda c: (c / "trainer.pt").write_bytes(pickle.dumps(Attack(c.parents[1] / "attacked"))),
        lambda c: torch.save(Attack(c.parents[1] / "attacked"), c / "trainer.pt"),
        lambda c: (c / "trainer.pt").unlink(),
        _changed(lambda s: []),
        _changed(lambda s: {k: v for k, v in s.items() if k != "watch"}),
        _changed(lambda s: {**s, "step": 10**9}),
        _changed(lambda s: {**s, "stream": {}}),
        _changed(lambda s: {**s, "random": {"rollout": 3}}),
        _changed(lambda s: {**s, "watch": {"signs": [{}]}}),
        _changed(lambda s: {**s, "optimizer": {"state": {}, "param_groups": []}}),
        lambda c: (c / "policy" / "model.safetensors").write_bytes(b"\xff" * 64),
        lambda c: (c / "policy" / "config.json").write_text("[]"),
        lambda c: shutil.rmtree(c / "policy"),
    ],
    ids=[
        *("garbage", "empty", "pickle", "torch pickle", "gone", "list", "key", "step", "stream", "random", "watch"),
        *("optimizer", "weights", "model", "no policy"),
    ],
)
def test_what_no_run_wrote_is_passed_over(
    copy: Path, whole: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], Any]
) -> None:
    checkpoint = copy / "checkpoints" / "rl-000004"
    damage(checkpoint)
    sealed(checkpoint)
    assay.train(resume=copy)
    said = capfd.readouterr().err
    assert len(lines(said, "checkpoint rl-000004 cannot be used (")) == 1
    assert "Traceback" not in said
    assert not (copy / "attacked").exists()
    assert_same(copy, whole)


def test_no_checkpoint_that_can_be_used_is_one_line(copy: Path) -> None:
    flip(copy / "checkpoints" / "rl-000004" / "trainer.pt")
    (copy / "checkpoints" / "rl-000002" / "trainer.pt").write_bytes(b"garbage")
    sealed(copy / "checkpoints" / "rl-000002")
    with pytest.raises(UsageError) as caught:
        assay.train(resume=copy, quiet=True)
    message = str(caught.value)
    assert "rl-000004 holds a damaged trainer.pt; rl-000002 cannot be used (" in message
    assert "\n" not in message
    assert len(checkpoints(copy)) == 2  # nothing is removed


def test_a_damaged_checkpoint_is_not_measured(copy: Path) -> None:
    checkpoint = copy / "checkpoints" / "rl-000004"
    flip(checkpoint / "policy" / "model.safetensors")
    with pytest.raises(UsageError, match=r"is not whole: it holds a damaged policy/model.safetensors"):
        resolve(str(checkpoint))


def test_a_damaged_reference_policy_is_one_line(tmp_path: Path) -> None:
    objective = {"name": "clip", "kl_weight": 0.1}
    folder = run(tmp_path / "run", method={"objective": objective}, evaluate={"every": 0}, warmup={"steps": 0})
    flip(folder / "reference" / "model.safetensors")
    with pytest.raises(RunError, match=r"the reference policy in .* holds a damaged model.safetensors"):
        assay.train(resume=folder, quiet=True, overrides=["train.steps=5"])


# Tasks


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Path, Path]:
    """A run on a file of tasks, and the file."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"{i}+1=", "answer": str(i + 1)}) + "\n" for i in range(40)))
    tasks = {"source": {"name": "file", "path": str(rows)}}
    return run(tmp_path / "run", tasks=tasks, warmup={"steps": 0}, evaluate={"every": 0}), rows


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda t: t.replace('"prompt": "7+1=", "answer": "8"', '"prompt": "7+1=", "answer": "9"'),
            "of 40 tasks, some",
        ),
        pytest.param(
            lambda t: "".join(t.splitlines(keepends=True)[::-1]),
            "of 40 tasks, some have another content or place",
            marks=pytest.mark.slow,
        ),
        (lambda t: t + '{"prompt": "9+9=", "answer": "18"}\n', "40 tasks then, 41 tasks now"),
    ],
    ids=["answer", "order", "row"],
)
def test_changed_tasks_are_refused_or_accepted(
    asked: tuple[Path, Path], capfd: pytest.CaptureFixture[str], change: Callable[[str], str], why: str
) -> None:
    folder, rows = asked
    before = rows.read_text()
    assert change(before) != before
    rows.write_text(change(before))
    with pytest.raises(UsageError) as caught:
        assay.train(resume=folder, quiet=True, overrides=["train.steps=6"])
    message = str(caught.value)
    assert f"the tasks of {rows} are not those this run was trained on: {why}" in message
    assert message.endswith(f"assay train --resume {folder} run.changed_tasks=accept")
    assert "\n" not in message
    assert "steps = 4" in (folder / "config.toml").read_text()
    capfd.readouterr()
    assay.train(resume=folder, overrides=["train.steps=6", "run.changed_tasks=accept"])
    assert f"the tasks of {rows} have changed, {why}" in capfd.readouterr().err
    assert running.metrics(folder)[-1]["step"] == 6
    # From here on, these are the run's tasks.
    assay.train(resume=folder, overrides=["train.steps=7", "run.changed_tasks=refuse"])
    assert "have changed" not in capfd.readouterr().err


def test_tasks_that_are_put_back_are_the_same(asked: tuple[Path, Path]) -> None:
    folder, rows = asked
    text = rows.read_text()
    rows.write_text(text + "\n")
    assay.train(resume=folder, quiet=True, overrides=["train.steps=5"])


# History


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (b"\xff\xfe\x00 garbage", "line 5 is damaged; rl steps 2 are missing"),
        (b"[" * 100_000, "line 5 is damaged; rl steps 2 are missing"),
        (b'["rl", 2]', "line 5 is damaged; rl steps 2 are missing"),
        (b'{"stage": "sl", "step": 2}', "line 5 is damaged; rl steps 2 are missing"),
        (b'{"stage": "rl", "step": "2"}', "line 5 is damaged; rl steps 2 are missing"),
        (b"", "rl steps 2 are missing"),
    ],
    ids=["bytes", "nested", "list", "stage", "step", "gone"],
)
def test_a_damaged_log_is_named_and_set_aside(
    copy: Path, whole: Path, capfd: pytest.CaptureFixture[str], damage: bytes, why: str
) -> None:
    log = copy / "metrics.jsonl"
    rows = log.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*rows[:4], damage + b"\n", *rows[5:]])
    log.write_bytes(damaged)
    assay.train(resume=copy)
    said = capfd.readouterr().err
    assert lines(said, "metrics.jsonl") == [
        f"{log}: {why}; the history goes on without, what was there is in metrics.damaged.jsonl"
    ]
    assert (copy / "metrics.damaged.jsonl").read_bytes() == damaged
    kept = running.metrics(whole)
    assert running.metrics(copy) == [*kept[:4], *kept[5:]]


@pytest.mark.parametrize("content", [b"half", b"", None], ids=["garbage", "empty", "flipped"])
def test_a_damaged_evaluation_is_named_and_set_aside(
    copy: Path, capfd: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    file = copy / "evals" / "step-000002.parquet"
    if content is None:
        flip_value(file, "response")
        content = file.read_bytes()
    file.write_bytes(content)
    assay.train(resume=copy)
    said = capfd.readouterr().err
    (line,) = lines(said, "step-000002.parquet")
    assert f"cannot read the evaluation {file}: " in line
    assert "set aside as step-000002.parquet.damaged" in line
    assert (copy / "evals" / "step-000002.parquet.damaged").read_bytes() == content
    assert not file.exists()


def test_an_evaluation_with_columns_of_other_types_is_refused(copy: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = copy / "evals" / "before.parquet"
    table = pq.ParquetFile(file).read()
    place = table.column_names.index("score")
    pq.write_table(table.set_column(place, "score", pa.array(["x"] * len(table))), file)
    with pytest.raises(RunError, match=r"cannot read the evaluation .*before.parquet: "):
        Evaluation.from_parquet(file)


def test_stray_files_among_the_rollouts_are_left_alone(copy: Path) -> None:
    stray = copy / "rollouts" / "step-mine.parquet"
    stray.write_bytes(b"mine")
    assay.train(resume=copy, quiet=True)
    assert stray.read_bytes() == b"mine"


def test_damaged_rollouts_are_noted_in_the_report(copy: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from assay.report.run import read_run

    folder = copy / "rollouts"
    table = pq.ParquetFile(folder / "step-000001.parquet").read()
    place = table.column_names.index("step")
    pq.write_table(table.set_column(place, "step", pa.array(["x"] * len(table))), folder / "step-000001.parquet")
    flip_value(folder / "step-000002.parquet", "response")
    table = pq.ParquetFile(folder / "step-000003.parquet").read()
    pq.write_table(table.set_column(place, "step", pa.nulls(len(table), pa.int64())), folder / "step-000003.parquet")
    found = read_run(copy)
    assert {row.step for row in found.rollouts} == {4}
    for step in (1, 2, 3):
        assert sum(f"rollouts/step-{step:06d}.parquet could not be read" in note for note in found.notes) == 1


# Failures of the system


def limited(log: Path, recipe_file: Path, size: int) -> None:
    """In a child: ``assay train`` that may write files of at most ``size`` bytes."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    running.command(log, "train", str(recipe_file))


@pytest.mark.parametrize("size", [2000, 40_000])
@pytest.mark.slow
def test_a_limit_on_file_sizes_is_one_line(tmp_path: Path, size: int) -> None:
    import tomli_w

    folder, log, file = tmp_path / "run", tmp_path / "log", tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(running.recipe(folder)))
    assert running.child(limited, log, file, size) == 1
    said = log.read_text()
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("assay: could not write ")
    assert "a file would be larger than is allowed (see ulimit -f)" in said


def test_a_report_that_cannot_be_written_is_one_line(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (copy / "report.html").mkdir()
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", str(copy)])
    assert ended.value.code == 1
    said = capfd.readouterr().err
    assert said.startswith(f"assay: could not write {copy / 'report.html'}: ")
    assert said.count("\n") == 1
    assert list(copy.glob(".report*")) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
@pytest.mark.parametrize("arguments", [["train", "--resume"], ["report"], ["eval"]])
def test_a_folder_that_may_not_be_entered_is_one_line(
    copy: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    copy.chmod(0)
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, str(copy)])
    finally:
        copy.chmod(0o755)
    assert ended.value.code in (1, 2)
    said = capfd.readouterr().err
    assert "Permission denied" in said
    assert said.count("\n") == 1


def test_output_that_cannot_be_written_is_one_line() -> None:
    import subprocess
    import sys

    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "assay", "papers", "show", "S014"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "assay: No space left on device; mend that, or name another place\n"
