"""What ``exact`` stands for: each implemented paper has a test file of its own, with numbers worked out by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from assay import catalogue

HERE = Path(__file__).parent
ROWS = [row for row in catalogue.rows() if row.factory is not None]
WITHOUT = {"S192": "a survey: what is tested is how methods are told apart, which has no numbers"}


def module_of(row: catalogue.PaperRow) -> str:
    assert row.factory is not None
    return row.factory.__module__


def asserted_numbers(test: ast.FunctionDef) -> set[float]:
    """Numbers other than 0, 1 and -1 that a test holds a result against, among its parameters too."""
    asserts = [n for n in ast.walk(test) if isinstance(n, ast.Assert)]
    found: set[float] = set()
    for node in [*asserts, *test.decorator_list] if asserts else []:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, int | float) and abs(part.value) not in (0, 1):
                found.add(float(part.value))
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_paper_that_counts_as_exact_has_worked_numbers_in_a_file_of_its_own(row: catalogue.PaperRow) -> None:
    """``test_sNNN_name.py`` names the paper, and one of its tests holds results against three numbers or more."""
    assert row.state in ("exact", "partial")
    module = module_of(row)
    [path] = HERE.glob(f"*/test_{module.rpartition('.')[2]}.py")
    assert path.is_file(), f"{row.id} ({row.name}) has no tests of its own"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    named = {n.value for n in nodes if isinstance(n, ast.Constant)}
    imported = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    assert row.id in named or module in imported, f"{path.name} neither makes {row.id} nor imports from it"
    tests = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    worked = any(len(asserted_numbers(test)) >= 3 for test in tests)
    assert worked or row.id in WITHOUT, f"no test in {path.name} has worked numbers"
