"""The index of papers and what registers itself there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import assay.papers
from assay import catalogue
from assay.catalogue import papers as index
from assay.catalogue.mutants import Score
from assay.catalogue.shown import imported, shown
from assay.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that is the package's only place for implementations, and an empty register."""
    monkeypatch.setattr(assay.papers, "__path__", [str(tmp_path)])
    monkeypatch.setattr(index, "_REGISTERED", {})
    for name in implementations():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(index, "_modules", index._modules.__wrapped__)
    yield tmp_path
    for name in implementations():
        del sys.modules[name]


def implementations() -> list[str]:
    """Modules of papers imported so far."""
    return [name for name in sys.modules if re.match(r"assay\.papers\.(\w+\.)?s\d{3}_", name)]


DISPO = """
from assay.catalogue import paper

@paper("S014", "DISPO", arxiv="2602.00983", seams=["objective", "credit"])
def dispo(clip: float = 0.2):
    from assay.method import Method, make_method
    return Method()
"""


def test_every_paper_is_in_the_index_once_and_in_order() -> None:
    known = index._index()
    assert list(known) == [f"S{i:03d}" for i in range(1, 227)]
    assert len({r.name for r in known.values()}) == 226
    for row in known.values():
        assert row.title and row.title == row.title.strip()
        assert row.family in {"rewards", "data", "objectives", "judges", "multimodal_eval", "agents", "process"}
        assert re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", row.name), row.name
        assert row.arxiv is None or re.fullmatch(r"\d{4}\.\d{4,5}", row.arxiv)
        assert list(row.seams) == [s for s in index.SEAMS if s in row.seams]
        assert row.seams or row.id == "S192", "only the survey replaces nothing"
    assert len([r.arxiv for r in known.values() if r.arxiv]) == len({r.arxiv for r in known.values() if r.arxiv})


def test_known_rows() -> None:
    rows = index._index()
    assert (rows["S014"].name, rows["S014"].arxiv, rows["S014"].seams) == ("dispo", "2602.00983", ("objective",))
    assert rows["S213"].title == "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
    assert rows["S011"].arxiv == "2502.01456"


def test_nothing_implemented_is_all_absent(folder: Path) -> None:
    rows = catalogue.rows()
    assert len(rows) == 226 and {r.state for r in rows} == {"absent"}


def test_listing_the_index_loads_no_tensor_library(tmp_path: Path) -> None:
    program = (
        "import sys, assay.papers, assay.catalogue as p\n"
        f"assay.papers.__path__ = [{str(tmp_path)!r}]\n"
        "assert len(p.rows()) == 226 and p.find('s001').id == 'S001'\n"
        "assert not {'torch', 'transformers', 'pydantic'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_listing_and_showing_papers_loads_no_tensor_library() -> None:
    program = (
        "import sys\n"
        "from assay import catalogue\n"
        "from assay.catalogue.shown import shown\n"
        "assert all(shown(row.id).row == row for row in catalogue.listed())\n"
        "assert not {'torch', 'transformers', 'pydantic'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_listing_reads_what_the_files_register() -> None:
    listed = catalogue.listed()
    told = [shown(row.id) for row in listed]
    assert listed == [replace(row, factory=None) for row in catalogue.rows()] == [one.row for one in told]
    compared = set()
    for one in told:
        whole = imported(one.row.id)
        assert (one.text, one.claims) == (whole.text, whole.claims), one.row.id
        call: Any = ast.parse(f"f({one.options})", mode="eval").body
        values = [k.value for k in call.keywords]
        if all(not isinstance(inner, ast.Name | ast.Call) for v in values for inner in ast.walk(v)):
            assert one.options == whole.options, one.row.id
            compared.add(one.row.id)
    assert len(compared) > 120


def test_what_is_computed_is_asked_of_the_file(folder: Path) -> None:
    (folder / "s014_dispo.py").write_text(DISPO.replace('"DISPO"', '"dispo".upper()'))
    row = catalogue.listed()[13]
    assert (row.name, row.state, row.factory) == ("DISPO", "partial", None)
    assert row == replace(catalogue.find("S014"), factory=None)


def test_all_that_a_file_says_is_in_its_row(folder: Path) -> None:
    said = 'essentials={"it learns": "test_it"}, choices=("a rate of 3",), lacks="a judge", seams='
    (folder / "s014_dispo.py").write_text(DISPO.replace("seams=", said))
    for row in (catalogue.listed()[13], catalogue.find("S014")):
        assert [(what, test.rpartition("/")[2]) for what, test in row.essentials] == [
            ("it learns", "test_s014_dispo.py::test_it")
        ]
        assert (row.choices, row.lacks, row.state) == (("a rate of 3",), "a judge", "partial")


def test_a_file_is_found_and_its_registration_merged(folder: Path) -> None:
    (folder / "s014_dispo.py").write_text(DISPO)
    (folder / "helpers.py").write_text("raise AssertionError('not a paper, must not be imported')")
    row = catalogue.rows()[13]
    assert (row.id, row.name, row.state) == ("S014", "DISPO", "partial")
    assert row.seams == ("credit", "objective") and row.title.startswith("DISPO:")
    assert sum(r.state == "absent" for r in catalogue.rows()) == 225
    assert catalogue.find("dispo") == catalogue.find("s014") == catalogue.find("S014") == row
    assert row.factory is not None and row.factory.__name__ == "dispo"


def test_looking_up_one_paper_imports_only_that_one(folder: Path) -> None:
    (folder / "s014_dispo.py").write_text(DISPO)
    (folder / "s015_rlpr.py").write_text("raise AssertionError('another paper was imported')")
    assert catalogue.find("S014").state == "partial"
    assert catalogue.find("S016").state == "absent"


def test_a_file_that_registers_nothing_is_noticed(folder: Path) -> None:
    (folder / "s020_nothing.py").write_text("")
    with pytest.raises(ValueError, match="registers no paper S020"):
        catalogue.rows()


def test_make(folder: Path) -> None:
    from assay.method import Method, make_method

    (folder / "s014_dispo.py").write_text(DISPO)
    assert isinstance(catalogue.make("dispo", clip=0.3), Method)
    with pytest.raises(UsageError, match=r"S014 \(DISPO\) has no option 'clop'; did you mean 'clip'"):
        catalogue.make("S014", clop=0.3)
    with pytest.raises(UsageError, match=r"S001 \(verpo\) is not implemented"):
        catalogue.make("S001")
    catalogue.paper("S213", "rliable", seams=["evaluate"])(lambda: {"iqm": 1})
    with pytest.raises(UsageError, match="no training method: it provides evaluate"):
        make_method("S213")


def test_unknown_papers_get_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'dispo'"):
        catalogue.find("Dispos")
    with pytest.raises(UsageError, match="ids run from S001 to S226"):
        catalogue.find("S300")
    with pytest.raises(UsageError, match="`assay papers` lists"):
        catalogue.find("zzqqzzqq")


def test_registrations_that_contradict_the_index_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="S999"):
        catalogue.paper("S999", "x", seams=[])
    with pytest.raises(ValueError, match="unknown seams"):
        catalogue.paper("S014", "x", seams=["advantage"])
    with pytest.raises(ValueError, match=r"2602\.00983"):
        catalogue.paper("S014", "x", arxiv="1234.56789", seams=["objective"])


def test_a_paper_is_registered_once(folder: Path) -> None:
    def first() -> None: ...
    def second() -> None: ...

    catalogue.paper("S014", "DISPO", seams=["objective"])(first)
    catalogue.paper("S014", "DISPO", seams=["objective"])(first)
    with pytest.raises(ValueError, match="registered twice"):
        catalogue.paper("S014", "DISPO", seams=["objective"])(second)


def test_a_registration_without_a_number_keeps_that_of_the_index(folder: Path) -> None:
    catalogue.paper("S014", "a name", seams=["objective"])(lambda: None)
    assert (catalogue.find("S014").state, catalogue.find("S014").arxiv) == ("partial", "2602.00983")


def test_a_row_is_exact_only_with_essentials_and_nothing_lacking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> None: ...

    noticed = {"S014": Score(10, 9, "")}
    monkeypatch.setattr("assay.catalogue.papers.scores", lambda: noticed)

    made.__module__ = "assay.papers.objectives.s014_dispo"
    tests = {"four bounds": "test_bounds", "no KL": "objectives/test_objectives.py::test_no_kl"}
    catalogue.paper("S014", "DISPO", seams=["objective"], essentials=tests)(made)
    row = catalogue.find("S014")
    assert row.state == "exact" and row.lacks == ""
    for score in (Score(100, 89, ""), None):
        monkeypatch.setattr("assay.catalogue.papers.scores", lambda score=score: {"S014": score} if score else {})
        catalogue.paper("S014", "DISPO", seams=["objective"], essentials=tests)(made)
        assert catalogue.find("S014").state == "partial" and "small faults" in catalogue.find("S014").lacks
    monkeypatch.setattr("assay.catalogue.papers.scores", lambda: noticed)
    assert row.essentials == (
        ("four bounds", "tests/papers/objectives/test_s014_dispo.py::test_bounds"),
        ("no KL", "tests/objectives/test_objectives.py::test_no_kl"),
    )
    catalogue.paper("S014", "DISPO", seams=["objective"], essentials=tests, lacks="its schedule")(made)
    assert (catalogue.find("S014").state, catalogue.find("S014").lacks) == ("partial", "its schedule")
    catalogue.paper("S014", "DISPO", seams=["objective"])(made)
    assert catalogue.find("S014").state == "partial" and "not listed" in catalogue.find("S014").lacks
