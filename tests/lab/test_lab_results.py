"""What the package ships of the lab is what its records say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay import catalogue
from assay.catalogue import claim as claim_module
from assay.catalogue.claim import Claim, claims_made
from assay.cli.lab import lab
from assay.errors import UsageError
from assay.lab import results as results_module
from assay.lab.page import NOT_RUN, Again, once_more, page, stale
from assay.lab.results import again, collected, published, results

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "lab").glob("S*.json"))


def test_summary_and_page_are_made_from_the_records() -> None:
    found = collected(ROOT / "lab")
    command = "; run: python -m assay.lab.results"
    assert results() == found, f"assay/lab/results.json is not what lab/ says{command}"
    rows = {row.id: row for row in catalogue.rows()}
    wrong = stale((ROOT / "docs" / "lab.md").read_text(), found, rows, again(ROOT / "lab"))
    assert wrong is None, f"docs/lab.md: {wrong}{command}"


def test_what_new_seeds_say_is_told() -> None:
    """Of twenty claims on the page; a record that differs from what was said before is named with both."""
    ran = again(ROOT / "lab")
    assert len(ran) == 20 and {one.name for one in ran} <= {path.stem for path in RECORDS}
    told = once_more([Again("S001", "shown", "shown"), Again("S002", "shown", "opposite")])
    assert told.endswith("Of 2, 1 kept their verdict; S002 was *shown* and is *opposite*.")
    assert once_more([Again("S001", "shown", "shown")]).endswith("Of 1, 1 kept their verdict.")


def test_a_claim_that_is_new_does_not_make_the_page_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding a paper is adding its file; a page that tells of claims or records that are not there is noticed."""
    found, rows = collected(ROOT / "lab"), {row.id: row for row in catalogue.rows()}
    before = page(found, rows)
    [key] = [key for key in sorted(rows) if key not in claims_made()][:1]
    new = Claim(key, "It works.", "tree", {"a": {}, "b": {}}, "a", "b", "final", name="new")
    monkeypatch.setitem(claim_module._CLAIMS, key, (new,))
    after = page(found, rows)
    assert f"{NOT_RUN}{key} (new)" in after or f", {key} (new)" in after
    assert stale(before, found, rows) is None and stale(after, found, rows) is None
    assert stale(after.replace(f"{key} (new)", f"{key} (old)"), found, rows) == (
        f"it says of claims that were run, or that are gone, that they were not run: {key} (old)"
    )
    fewer = {k: v for k, v in found.items() if k != min(found)}
    assert stale(page(fewer, rows), found, rows)
    assert stale(before.replace("+0.", "+1.", 1), found, rows) == "it is not what the records say"


def test_publishing_writes_record_row_and_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a made-up claim: its record goes to lab/, under its name, and the page has its row."""
    for name in ("lab", "docs", "assay/lab"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "docs" / "lab.md").write_text("")
    first, second = claims_made()["S065"][:2]
    monkeypatch.setattr(results_module, "__file__", str(tmp_path / "assay" / "lab" / "results.py"))
    for claim, file in ((first, "S065.json"), (second, "S065.mechanism.json")):
        record = json.loads((ROOT / "lab" / file).read_text())
        assert published(record, claim) == tmp_path / "lab" / file
        assert json.loads((tmp_path / "lab" / file).read_text()) == {**record, "earlier": []}
    text = (tmp_path / "docs" / "lab.md").read_text()
    assert text.count("| S065 PURE |") == 2
    shipped = json.loads((tmp_path / "assay" / "lab" / "results.json").read_text())
    assert [one["name"] for one in shipped["S065"]] == ["steps", "mechanism"]
    record["effect"]["value"] *= 2
    published(record, second, "twice as much")
    newer = json.loads((tmp_path / "lab" / "S065.mechanism.json").read_text())
    assert [old["because"] for old in newer["earlier"]] == ["twice as much"]
    assert newer["earlier"][0]["effect"]["value"] * 2 == pytest.approx(newer["effect"]["value"])
    assert "; run 2 |" in (tmp_path / "docs" / "lab.md").read_text()
    assert "## S065 PURE: mechanism" in (tmp_path / "docs" / "lab-arms.md").read_text()
    with pytest.raises(UsageError, match="register it first"):
        results_module.place_of(replace(second, name="other"))
    (tmp_path / "docs" / "lab.md").unlink()
    with pytest.raises(UsageError, match="no checkout"):
        published(record, second)


def test_what_differs_from_the_claim_is_not_published(tmp_path: Path) -> None:
    for options, seeds in (("steps=1",), 5), ((), 2):
        with pytest.raises(UsageError, match="without options, without --out and with at least 5 seeds"):
            lab("S065", options, seeds=seeds, publish=True, dir=tmp_path)
    with pytest.raises(UsageError, match="has a record of this claim; say with --because why"):
        lab("S065", publish=True, dir=tmp_path)
    assert not list(tmp_path.iterdir()), "it was run before it was refused"


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.stem)
def test_a_record_is_of_the_claim_that_the_paper_makes(path: Path) -> None:
    """Arms, setting and measure stand in the code as they were when the record was made."""
    record = json.loads(path.read_text())
    catalogue.find(record["paper"])
    first, *others = claims_made()[record["paper"]]
    label = record.get("name", record["setting"]["name"])
    claim = first if path.name.count(".") == 1 else next(c for c in others if c.label == label)
    assert path.name in (f"{claim.paper}.json", f"{claim.paper}.{label}.json")
    assert record["claim"] == claim.text and record["measure"] == claim.measure
    assert (record["better"], record["baseline"]) == (claim.better, claim.baseline)
    assert record["setting"]["name"] == claim.setting
    assert json.loads(json.dumps({k: dict(v) for k, v in claim.arms.items()})) == record["arms"]


def test_evidence_is_what_the_claim_says_today() -> None:
    found = collected(ROOT / "lab")
    kinds = {(key, one["name"]): one["evidence"] for key, many in found.items() for one in many}
    assert kinds["S108", "choices"] == "construction" and kinds["S017", "tree"] == "claim"
    assert kinds["S055", "mechanism"] == "mechanism"
