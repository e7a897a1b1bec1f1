"""The index of papers and what registers itself there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import papers
from assay.errors import UsageError
from assay.papers import catalogue


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that is the package's only place for implementations, and an empty register."""
    monkeypatch.setattr(papers, "__path__", [str(tmp_path)])
    monkeypatch.setattr(catalogue, "_REGISTERED", {})
    # A second claim whose interval is above zero need not count: with several claims it is to be wider.
    verdicts = {"S014": (("opposite", False), ("shown", True)), "S015": (("opposite", False), ("shown", False))}
    found = {key: [{"verdict": v, "counts": c} for v, c in many] for key, many in verdicts.items()}
    monkeypatch.setattr(catalogue, "results", lambda: found)
    for name in implementations():
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(papers, name.rpartition(".")[2], raising=False)
    yield tmp_path
    for name in implementations():
        del sys.modules[name]


def implementations() -> list[str]:
    """Modules of papers imported so far."""
    return [name for name in sys.modules if re.match(r"assay\.papers\.s\d{3}_", name)]


DISPO = """
from assay.papers import paper

@paper("S014", "DISPO", arxiv="2602.00983", seams=["objective", "credit"])
def dispo(clip: float = 0.2):
    from assay.method import Method
    return Method()
"""


def test_every_paper_is_in_the_index_once_and_in_order() -> None:
    index = catalogue._index()
    assert list(index) == [f"S{i:03d}" for i in range(1, 227)]
    assert len({r.name for r in index.values()}) == 226
    for row in index.values():
        assert row.title and row.title == row.title.strip()
        assert row.family in {"rewards", "data", "objectives", "judges", "multimodal_eval", "agents", "process"}
        assert re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", row.name), row.name
        assert row.arxiv is None or re.fullmatch(r"\d{4}\.\d{4,5}", row.arxiv)
        assert list(row.seams) == [s for s in catalogue.SEAMS if s in row.seams]
        assert row.seams or row.id == "S192", "only the survey replaces nothing"
    assert len([r.arxiv for r in index.values() if r.arxiv]) == len({r.arxiv for r in index.values() if r.arxiv})


def test_known_rows() -> None:
    rows = catalogue._index()
    assert (rows["S014"].name, rows["S014"].arxiv, rows["S014"].seams) == ("dispo", "2602.00983", ("objective",))
    assert rows["S213"].title == "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
    assert rows["S011"].arxiv == "2502.01456"


def test_nothing_implemented_is_all_absent(folder: Path) -> None:
    rows = papers.rows()
    assert len(rows) == 226 and {r.state for r in rows} == {"absent"}


def test_listing_the_index_loads_no_tensor_library(tmp_path: Path) -> None:
    program = (
        "import sys, assay.papers as p\n"
        f"p.__path__ = [{str(tmp_path)!r}]\n"
        "assert len(p.rows()) == 226 and p.find('s001').id == 'S001'\n"
        "assert not {'torch', 'transformers', 'pydantic'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent.parent)


def test_a_file_is_found_and_its_registration_merged(folder: Path) -> None:
    (folder / "s014_dispo.py").write_text(DISPO)
    (folder / "helpers.py").write_text("raise AssertionError('not a paper, must not be imported')")
    row = papers.rows()[13]
    assert (row.id, row.name, row.state) == ("S014", "DISPO", "shown")
    assert row.seams == ("credit", "objective") and row.title.startswith("DISPO:")
    assert sum(r.state == "absent" for r in papers.rows()) == 225
    assert papers.find("dispo") == papers.find("s014") == papers.find("S014") == row
    assert row.factory is not None and row.factory.__name__ == "dispo"


def test_looking_up_one_paper_imports_only_that_one(folder: Path) -> None:
    (folder / "s014_dispo.py").write_text(DISPO)
    (folder / "s015_rlpr.py").write_text("raise AssertionError('another paper was imported')")
    assert papers.find("S014").state == "shown"
    assert papers.find("S016").state == "absent"


def test_a_file_that_registers_nothing_is_noticed(folder: Path) -> None:
    (folder / "s020_nothing.py").write_text("")
    with pytest.raises(ValueError, match="registers no paper S020"):
        papers.rows()


def test_make(folder: Path) -> None:
    from assay.method import Method

    (folder / "s014_dispo.py").write_text(DISPO)
    assert isinstance(papers.make("dispo", clip=0.3), Method)
    with pytest.raises(UsageError, match=r"S014 \(DISPO\) has no option 'clop'; did you mean 'clip'"):
        papers.make("S014", clop=0.3)
    with pytest.raises(UsageError, match=r"S001 \(verpo\) is not implemented"):
        papers.make("S001")
    papers.paper("S213", "rliable", seams=["evaluate"])(lambda: {"iqm": 1})
    with pytest.raises(UsageError, match="no training method: it provides evaluate"):
        papers.make("S213")


def test_unknown_papers_get_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'dispo'"):
        papers.find("Dispos")
    with pytest.raises(UsageError, match="ids run from S001 to S226"):
        papers.find("S300")
    with pytest.raises(UsageError, match="`assay papers` lists"):
        papers.find("zzqqzzqq")


def test_registrations_that_contradict_the_index_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="S999"):
        papers.paper("S999", "x", seams=[])
    with pytest.raises(ValueError, match="unknown seams"):
        papers.paper("S014", "x", seams=["advantage"])
    with pytest.raises(ValueError, match=r"2602\.00983"):
        papers.paper("S014", "x", arxiv="1234.56789", seams=["objective"])


def test_a_paper_is_registered_once(folder: Path) -> None:
    def first() -> None: ...
    def second() -> None: ...

    papers.paper("S014", "DISPO", seams=["objective"])(first)
    papers.paper("S014", "DISPO", seams=["objective"])(first)
    with pytest.raises(ValueError, match="registered twice"):
        papers.paper("S014", "DISPO", seams=["objective"])(second)


def test_the_state_is_what_the_lab_found_and_the_index_keeps_its_number(folder: Path) -> None:
    for key, state in (("S014", "shown"), ("S015", "exact"), ("S016", "exact")):
        papers.paper(key, "a name", seams=["objective"])(lambda: None)
        assert papers.find(key).state == state
    assert papers.find("S014").arxiv == "2602.00983"
