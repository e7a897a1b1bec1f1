"""The first commands of a newcomer, in a shell that says nothing of threads, as this suite does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BOTH = """
import json, sys
from assay import cli
for words in json.loads(sys.argv[1]):
    try:
        cli.main(words)
    except SystemExit as ended:
        if ended.code:
            raise
"""
"""Both in one process: most of a short command is the import of torch."""

SMALL = ["model.nano.hidden=16", "model.nano.layers=1", "model.nano.heads=2", "rollout.prompts=2", "rollout.group=2"]
SMALL += ["rollout.max_tokens=4", "train.steps=1", "warmup.steps=1", "warmup.batch=2", "evaluate.samples=1"]


@pytest.mark.slow
def test_quickstart_and_a_file_of_tasks(tmp_path: Path) -> None:
    rows = [{"question": f"{i}+1=", "answer": str(i + 1)} for i in range(20)]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    commands = [["train", "my.jsonl", *SMALL, "run.dir=own"], ["quickstart", *SMALL, "tasks.eval_size=4"]]
    unset = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "COVERAGE_PROCESS_START")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path[1:]])
    done = subprocess.run(
        [sys.executable, "-c", BOTH, json.dumps(commands)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "my.jsonl: 20 tasks" in done.stderr and "Traceback" not in done.stderr
    for folder in ("own", "runs/quickstart"):
        assert (tmp_path / folder / "report.html").is_file()
        assert [json.loads(line)["stage"] for line in (tmp_path / folder / "metrics.jsonl").open()] == ["warmup", "rl"]
