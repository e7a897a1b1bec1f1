"""docs/first-hour.md, run as it stands in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "first-hour.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.slow


def shown(line: str, folder: Path, environment: dict[str, str]) -> None:
    """Start the viewer, and stop it once it says where it listens."""
    words = [sys.executable, "-m", *shlex.split(line)]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as viewer:
        assert viewer.stdout is not None
        said = viewer.stdout.readline().decode()
        viewer.send_signal(signal.SIGINT)
        assert "http://127.0.0.1:" in said, said


def test_the_page_in_at_most_ten_commands(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="needs assay[view]")
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        name = re.match(r"# (\w+\.py)\n", code)
        assert name is not None
        (tmp_path / name[1]).write_text(code)
    lines = [x for b in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) for x in b.splitlines()]
    assert len(lines) <= 10
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), environment.get("PYTHONPATH", "")])
    for line in lines:
        if line.startswith("assay view"):
            shown(line, tmp_path, environment)
            continue
        plain = re.sub(
            r"^(assay|python)", lambda m: shlex.quote(sys.executable) + " -m assay" * (m[1] == "assay"), line
        )
        done = subprocess.run(
            ["bash", "-c", plain], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and "Traceback" not in done.stderr, (line, done.stderr[-2000:])
    for file in ("runs/mine/report.html", "runs/dapo/report.html", "runs/compare/compare.html"):
        assert (tmp_path / file).is_file(), file
    assert len((tmp_path / "runs/credit/metrics.jsonl").read_text().splitlines()) >= 9
