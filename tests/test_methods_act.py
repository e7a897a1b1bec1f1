"""Methods that ask where an answer stands act on tasks whatever marks their answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import metrics, run

pytestmark = pytest.mark.usefixtures("one_thread")

SHORT = {
    "rollout": {"prompts": 4, "group": 12, "max_tokens": 4},
    "train": {"steps": 2, "mini_batches": 1, "epochs": 1},
    "evaluate": {"every": 0},
}


@pytest.mark.parametrize(
    ("name", "term", "options"),
    [("S104", "opened", {}), ("S127", "answered", {}), ("S026", "format", {}), ("S009", "opened", {"required": False})],
)
def test_an_answer_without_a_mark_is_found_where_the_verifier_reads_it(tmp_path: Path, name, term, options) -> None:
    """A sum is answered by the bare number on the last line; no paper knows that, and each learns from it."""
    warm = {"steps": 60 if name == "S127" else 3, "batch": 32, "lr": 2e-2}  # S127 learns from right beside wrong
    folder = run(tmp_path / "run", warmup=warm, method={"name": name, "reward": None, "options": options}, **SHORT)
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert max(row[f"reward/{term}"] for row in steps) > 0
    assert max(row["grad_norm"] for row in steps) > 0
