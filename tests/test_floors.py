"""The package's floors: imports go down them, no folder is crowded, and the page that draws them is right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
MOST = 24
"""Files side by side, at most; but for the papers, one file each, which stand in a folder by family."""


def test_imports_keep_the_contract(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0, capsys.readouterr().out


def test_the_page_draws_the_floors_of_the_contract() -> None:
    [contract] = [
        c
        for c in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if c["type"] == "layers"
    ]
    drawn = re.search(r"## Floors\n.*?```\n(.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)
    assert drawn is not None
    floors = [line[20:].split() for line in drawn[1].splitlines()]
    assert floors == [layer.split(" | ") for layer in contract["layers"]]


@pytest.mark.parametrize("package", ["assay", "tests"])
def test_folders_can_be_seen_through(package: str) -> None:
    folders: dict[Path, int] = {}
    for file in (ROOT / package).rglob("*.py"):
        folders[file.parent] = folders.get(file.parent, 0) + 1
    crowded = {str(f.relative_to(ROOT)): n for f, n in folders.items() if n > MOST and "papers" not in f.parts}
    assert not crowded
