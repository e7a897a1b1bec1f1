"""Methods that ask where an answer stands act on tasks whatever marks their answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import metrics, recipe, run

import assay
from assay.config import load_config
from assay.console import Reporter
from assay.errors import UsageError
from assay.training.build import build_trainer

pytestmark = pytest.mark.usefixtures("one_thread")

SHORT = {
    "rollout": {"prompts": 4, "group": 12, "max_tokens": 4},
    "train": {"steps": 2, "mini_batches": 1, "epochs": 1},
    "evaluate": {"every": 0},
}


@pytest.mark.parametrize(
    ("name", "term", "options"),
    [
        ("S104", "opened", {"pool": 8, "tries": 2}),
        ("S127", "answered", {}),
        ("S026", "format", {}),
        ("S009", "opened", {"required": False}),
    ],
)
def test_an_answer_without_a_mark_is_found_where_the_verifier_reads_it(tmp_path: Path, name, term, options) -> None:
    """A sum is answered by the bare number on the last line; no paper knows that, and each learns from it."""
    warm = {"steps": 60 if name == "S127" else 3, "batch": 32, "lr": 2e-2}  # S127 learns from right beside wrong
    folder = run(tmp_path / "run", warmup=warm, method={"name": name, "reward": None, "options": options}, **SHORT)
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert max(row[f"reward/{term}"] for row in steps) > 0
    assert max(row["grad_norm"] for row in steps) > 0


@pytest.mark.parametrize("name", ["S001", "S012", "S105"])
def test_a_reward_that_comes_down_to_the_verdict_is_said_before_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    sections = recipe(tmp_path / "run", warmup={"steps": 0}, **SHORT)
    sections["method"] = {"name": name}
    trainer = build_trainer(load_config(sections), Reporter())
    trainer.folder.close()
    lines = [line for line in capfd.readouterr().err.splitlines() if "is the plain verdict" in line]
    assert len(lines) == 1


def test_a_mark_that_no_response_has_is_named_in_the_first_step(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The option overrides the verifier; what comes of it is said at once, and once."""
    sections = recipe(tmp_path / "run", warmup={"steps": 0}, **SHORT)
    sections["method"] = {"name": "S127", "options": {"rules": ["boxed"]}}
    assay.train(sections)
    lines = [line for line in capfd.readouterr().err.splitlines() if "'answer_tokens' is empty" in line]
    assert len(lines) == 1 and "boxed" in lines[0]


def test_a_likelihood_of_references_that_are_no_text_is_refused(tmp_path: Path) -> None:
    sections = recipe(tmp_path / "run", warmup={"steps": 0}, **SHORT)
    sections["tasks"]["source"] = {"name": "countdown"}
    sections["model"] = {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}}
    sections["method"] = {"name": "S104", "options": {"pool": 8}}
    with pytest.raises(UsageError, match="none that is a text or a number"):
        build_trainer(load_config(sections), Reporter(quiet=True))
