"""The benchmark of one accelerator, on the CPU: what it has of vLLM runs here."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
PARTS = ["generate, vLLM", "generate, assay vllm"]


def test_its_contenders_run(tmp_path: Path) -> None:
    """Both sides of the comparison, and the package's version though its distribution has another name."""
    out = tmp_path / "record.json"
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--tiny", "--only", *PARTS, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(out.read_text())
    assert list(record["parts"]) == PARTS
    for part in record["parts"].values():
        assert part["seconds"] > 0
        assert abs(part["tokens_per_second"] * part["seconds"] - 2 * 2 * 6) < 1e-6
    name = metadata.packages_distributions()["vllm"][0]
    assert record["packages"]["vllm"].startswith(metadata.version(name))
