"""What the package ships of the lab is what its records say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay import papers
from assay.lab.claim import claims_made
from assay.lab.results import collected, page, results

ROOT = Path(__file__).parent.parent
RECORDS = sorted((ROOT / "lab").glob("S*.json"))


def test_summary_and_page_are_made_from_the_records() -> None:
    found = collected(ROOT / "lab")
    again = "; run: python -m assay.lab.results"
    assert results() == found, f"assay/lab/results.json is not what lab/ says{again}"
    titles = {row.id: row.name for row in papers.rows()}
    assert (ROOT / "docs" / "lab.md").read_text() == page(found, titles), f"docs/lab.md is not what lab/ says{again}"


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.stem)
def test_a_record_is_of_the_claim_that_the_paper_makes(path: Path) -> None:
    """Arms, setting and measure stand in the code as they were when the record was made."""
    record = json.loads(path.read_text())
    papers.find(record["paper"])
    first, *others = claims_made()[record["paper"]]
    setting = record["setting"]["name"]
    claim = first if path.name.count(".") == 1 else next(c for c in others if c.setting == setting)
    assert path.name in (f"{claim.paper}.json", f"{claim.paper}.{setting}.json")
    assert record["claim"] == claim.text and record["measure"] == claim.measure
    assert (record["better"], record["baseline"]) == (claim.better, claim.baseline)
    assert record["setting"]["name"] == claim.setting
    assert json.loads(json.dumps({k: dict(v) for k, v in claim.arms.items()})) == record["arms"]
