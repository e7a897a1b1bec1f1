"""What the package ships of the lab is what its records say."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from assay import papers
from assay.lab.claim import claims_made
from assay.lab.paired import paired_effect
from assay.lab.results import collected, counts, page, results, verdict

ROOT = Path(__file__).parent.parent
RECORDS = sorted((ROOT / "lab").glob("S*.json"))


def test_summary_and_page_are_made_from_the_records() -> None:
    found = collected(ROOT / "lab")
    again = "; run: python -m assay.lab.results"
    assert results() == found, f"assay/lab/results.json is not what lab/ says{again}"
    rows = {row.id: row for row in papers.rows()}
    assert (ROOT / "docs" / "lab.md").read_text() == page(found, rows), f"docs/lab.md is not what lab/ says{again}"


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.stem)
def test_a_record_is_of_the_claim_that_the_paper_makes(path: Path) -> None:
    """Arms, setting and measure stand in the code as they were when the record was made."""
    record = json.loads(path.read_text())
    papers.find(record["paper"])
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
