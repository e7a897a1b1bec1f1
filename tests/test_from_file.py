"""Parts of a user's own, by file and name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.from_file import described
from assay.registry import build

OWN = '''
from dataclasses import dataclass

from halves_beside import HALF


@dataclass
class Halved:
    """Half of what a verdict says."""

    share: float = HALF

    def __call__(self, batch):
        raise NotImplementedError
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "halves_beside", raising=False)
    (tmp_path / "halves_beside.py").write_text("HALF = 0.5\n")
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


def test_a_file_is_read_as_it_is_written(file: Path) -> None:
    """Changed within a second and as long as before, it would be found in Python's cache as it was."""
    for value in ("0.25", "0.75", "0.50"):
        file.write_text(OWN.replace("= HALF", f"= {value}"))
        os.utime(file, (1e9, 1e9))
        assert build("credit", f"{file}:Halved").share == float(value)


@pytest.mark.parametrize("seam", ["credit", "select", "objective", "curriculum", "rollout", "environment", "tasks"])
def test_any_seam_takes_a_part_from_a_file(seam: str, file: Path) -> None:
    assert build(seam, f"{file}:Halved").share == 0.5
    assert build(seam, {"name": f"{file}:Halved", "share": 0.25}).share == 0.25
    with pytest.raises(UsageError, match=r"has no option 'shar'; did you mean 'share'"):
        build(seam, {"name": f"{file}:Halved", "shar": 1})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("away.py:Halved", r"credit '.*': no file '.*away.py'; write path/to/file.py:name"),
        ("own.py:Halve", r"own.py has no credit 'Halve'; did you mean 'Halved'\?"),
        ("own.py:", "own.py has no credit ''"),
        ("broken.py:Part", r"broken.py raised SyntaxError"),
        ("leaves.py:Part", r"leaves.py raised SystemExit: 0"),
    ],
)
def test_what_is_wrong_is_one_line(name: str, said: str, file: Path) -> None:
    (file.parent / "broken.py").write_text("class Part(:\n")
    (file.parent / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(UsageError, match=said) as caught:
        build("credit", str(file.parent / name))
    assert "\n" not in str(caught.value)


def test_an_object_is_called_by_where_it_is_defined() -> None:
    def inner() -> None: ...

    here = Path(__file__)
    assert described(inner) == f"{here}:test_an_object_is_called_by_where_it_is_defined.<locals>.inner"
    assert described([inner, inner]) == f"2 {described(inner)}" and described([inner]) == described(inner)
    assert described([inner, "verdict", {"name": "overlong"}]) == f"{described(inner)}, verdict, {{'name': 'overlong'}}"
    assert described(len) == "builtins:len" and described(Path()).endswith("Path")
    assert described([]) == ""
