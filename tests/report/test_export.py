"""A run's model as a folder of its own: the same model, whatever had learned, as transformers reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from running import run
from transformers import AutoModelForCausalLM, AutoTokenizer

from assay import cli
from assay.engines.target import resolve
from assay.errors import UsageError
from assay.report.export import export

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL: dict[str, Any] = {"train": {"steps": 2}, "evaluate": {"every": 1, "samples": 1}, "run": {"best": "pass@1"}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("whole") / "run", **SMALL)


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With adapters that have learned enough to be seen."""
    return run(tmp_path_factory.mktemp("adapted") / "run", **{**SMALL, "train": {"steps": 2, "lr": 0.1}},
               model={"lora": {"rank": 2}, "nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}})  # fmt: skip


@pytest.mark.parametrize("name", ["whole", "adapted"])
def test_transformers_reads_the_model_that_was_trained(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(name)
    found = export(folder, tmp_path / "out" / "model")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(found), AutoTokenizer.from_pretrained(found)
    policy = resolve(str(folder)).load()
    ids = policy.encode("3+4=")
    assert tokenizer("3+4=")["input_ids"] == ids.tolist()
    ours = dict(policy.merged_state())
    theirs = model.state_dict()
    assert theirs.keys() - ours.keys() <= {"lm_head.weight"}, "which is the embedding"
    assert all(torch.allclose(value.float(), theirs[key].float(), atol=1e-6) for key, value in ours.items())
    assert not (found / "adapter_config.json").exists() and not list(found.rglob("*.parquet"))
    assert "# model\n" in (found / "README.md").read_text() and (found / "recipe.toml").is_file()
    assert (resolve(str(found)).load().encode("3+4=") == ids).all()
    assert not [path for path in found.parent.iterdir() if path != found], "nothing is left beside it"


def test_another_checkpoint(whole: Path, tmp_path: Path) -> None:
    begun = export(whole, tmp_path / "begun", "rl-000000")
    best = export(whole, tmp_path / "best", "best")
    assert "0 steps of RL" in (begun / "README.md").read_text()
    # Nothing is right, so that the first evaluation is the best one.
    assert "1 steps of RL" in (best / "README.md").read_text()
    assert (begun / "model.safetensors").read_bytes() != (best / "model.safetensors").read_bytes()


def test_what_is_there_is_left_as_it_is(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file"):
        with pytest.raises(UsageError, match="is there already, and a model would be mixed with what it has"):
            export(whole, tmp_path / name)
    (tmp_path / "empty").mkdir()
    assert (export(whole, tmp_path / "empty") / "config.json").is_file()
    with pytest.raises(UsageError, match="has no checkpoint 'rl-000009'; it has rl-000001, best, rl-000000"):
        export(whole, tmp_path / "other", "rl-000009")
    with pytest.raises(UsageError, match="is no run folder"):
        export(tmp_path, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_command(whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["export", str(whole), str(tmp_path / "model")])
    assert not ended.value.code and capfd.readouterr().out.strip() == str(tmp_path / "model")
