"""The notebooks, executed from the first cell to the last in an empty folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs assay[notebooks]")
    nbclient = pytest.importorskip("nbclient", reason="needs assay[notebooks]")
    pytest.importorskip("ipykernel", reason="needs assay[notebooks]")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert said and not [o for o in said if o.output_type == "error"]
    assert CHECKS[path.stem](tmp_path, "\n".join(map(_text, said)))


def _text(output: Any) -> str:
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


CHECKS = {
    "1-first-run": lambda folder, text: "after: pass@1 0." in text and (folder / "runs/first/report.html").is_file(),
    "2-own-reward": lambda folder, text: "'seven': 0.0" in text and "reward/short" in text and "careless" in text,
    "3-comparing-methods": lambda folder, text: (folder / "runs/compare/compare.html").is_file(),
}


def test_every_notebook_is_checked_and_kept_without_output() -> None:
    assert {path.stem for path in NOTEBOOKS} == CHECKS.keys()
    assert all('"execution_count": null' in p.read_text() and '"output_type"' not in p.read_text() for p in NOTEBOOKS)
