"""What the package ships of the lab is what its records say."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from assay import catalogue
from assay.catalogue import claim as claim_module
from assay.catalogue.claim import Claim, claims_made
from assay.cli.lab import lab
from assay.errors import UsageError
from assay.lab import results as results_module
from assay.lab.results import NOT_RUN, collected, counts, page, published, results, stale, verdict
from assay.statistics.paired_effect import paired_effect

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "lab").glob("S*.json"))


def test_summary_and_page_are_made_from_the_records() -> None:
    found = collected(ROOT / "lab")
    again = "; run: python -m assay.lab.results"
    assert results() == found, f"assay/lab/results.json is not what lab/ says{again}"
    rows = {row.id: row for row in catalogue.rows()}
    wrong = stale((ROOT / "docs" / "lab.md").read_text(), found, rows)
    assert wrong is None, f"docs/lab.md: {wrong}{again}"


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
        assert json.loads((tmp_path / "lab" / file).read_text()) == record
    text = (tmp_path / "docs" / "lab.md").read_text()
    assert text.count("| S065 PURE |") == 2
    shipped = json.loads((tmp_path / "assay" / "lab" / "results.json").read_text())
    assert [one["name"] for one in shipped["S065"]] == ["steps", "mechanism"]
    with pytest.raises(UsageError, match="register it first"):
        results_module.place_of(replace(second, name="other"))
    (tmp_path / "docs" / "lab.md").unlink()
    with pytest.raises(UsageError, match="no checkout"):
        published(record, second)


def test_what_differs_from_the_claim_is_not_published(tmp_path: Path) -> None:
    for options, seeds in (("steps=1",), 5), ((), 2):
        with pytest.raises(UsageError, match="without options, without --out and with at least 5 seeds"):
            lab("S065", options, seeds=seeds, publish=True, dir=tmp_path)
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


def test_a_claim_counts_by_students_interval_at_the_paper_s_confidence() -> None:
    """The interval at 1 - 0.05/m from the one at 95%, against one computed from the seeds themselves."""
    ours, theirs = [0.9, 0.4, 0.8, 0.65, 0.7, 0.5, 0.4, 0.72], [0.3, 0.5, 0.2, 0.6, 0.55, 0.58, 0.1, 0.3]
    usual = asdict(paired_effect(ours, theirs))
    assert usual["low"] > 0
    seen = set()
    for m in range(1, 40):
        strict = paired_effect(ours, theirs, 1 - 0.05 / m)
        assert counts(usual, m) == strict.shown
        seen.add(strict.shown)
    assert seen == {True, False}


def told(value: float, half: float, claims: int, seeds: int = 20) -> dict[str, Any]:
    low, high = value - half, value + half
    one = {"value": value, "low": low, "high": high, "seeds": seeds}
    return {
        **one,
        "verdict": "shown" if low > 0 else "opposite" if high < 0 else "not shown",
        "counts": counts(one, claims),
    }


def test_a_paper_is_shown_by_any_claim_that_counts_and_opposite_only_by_all() -> None:
    assert verdict([told(1.0, 0.9, 1)]) == "shown"
    assert verdict([told(-1.0, 0.5, 2), told(1.0, 0.5, 2)]) == "shown"
    # With two claims the interval is 2.433 / 2.093 times as wide: 0.9 becomes 1.046.
    assert verdict([told(1.0, 0.9, 2), told(0.0, 0.5, 2)]) == "not shown"
    assert verdict([told(-1.0, 0.5, 2), told(0.0, 0.5, 2)]) == "not shown"
    assert verdict([told(-1.0, 0.5, 2), told(-1.0, 0.9, 2)]) == "opposite"
