"""What the rows of papers say of themselves: every essential names a test that is there."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
from essentials_ran import is_slow, unrun

from assay import catalogue

ROOT = Path(__file__).parents[2]
ROWS = [row for row in catalogue.rows() if row.factory is not None]


@functools.cache
def defined(path: Path) -> frozenset[str]:
    """Names of the tests of a file, those of classes as ``Class::name``."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_essentials_name_tests_that_are_there(row: catalogue.PaperRow) -> None:
    for what, test in row.essentials:
        file, _, name = test.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{row.id}: {what}: there is no {file}"
        assert name.partition("[")[0] in defined(path), f"{row.id}: {what}: {file} has no test {name}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_rows_say_in_a_line_what_they_lack(row: catalogue.PaperRow) -> None:
    assert (row.state == "partial") == bool(row.lacks)
    said = [row.lacks, *row.choices, *(what for what, _ in row.essentials)]
    assert all(line == line.strip() and "\n" not in line and len(line) <= 200 for line in said)


def test_an_essential_whose_test_did_not_run_is_noticed() -> None:
    rows = {"S001": {"a": "tests/x.py::test_a", "b": "tests/x.py::test_b[1]", "c": "tests/x.py::test_c"}}
    outcomes = {"tests/x.py::test_a[0]": "passed", "tests/x.py::test_b[1]": "skipped"}
    assert unrun(rows, outcomes) == ["S001: the test of an essential did not run: c: tests/x.py::test_c"]
    assert unrun(rows, outcomes | {"tests/x.py::test_c": "failed"}) == []


def test_a_slow_one_is_asked_for_where_slow_tests_run() -> None:
    assert is_slow("tests/papers/process/test_s018_pav.py::test_the_policy_itself_and_a_perfect_prover_add_nothing")
    assert not is_slow("tests/catalogue/test_essentials.py::test_a_slow_one_is_asked_for_where_slow_tests_run")
