"""The table of methods is that of the parts as they are."""

from __future__ import annotations

from pathlib import Path

from assay.registry import build
from assay.tables.methods import METHODS, advantages, page, pull

DOCS = Path(__file__).parents[2] / "docs" / "objectives.md"


def test_the_page_is_up_to_date():
    assert DOCS.read_text() == page(), "run: python -m assay.tables.methods > docs/objectives.md"


def test_every_credit_and_objective_of_the_field_is_in_it():
    credits, objectives = ({spec[i]["name"] for spec in METHODS.values()} for i in (0, 1))
    surrogates = {"clip", "gspo", "gspo_token", "response", "cispo", "sapo", "gmpo", "gpg", "clip_cov", "kl_cov"}
    assert objectives == surrogates | {"reinforce"}
    here = {
        "grpo",
        "reinforce",
        "rloo",
        "remax",
        "reinforce++",
        "reinforce++-baseline",
        "opo",
        "gpg",
        "gae",
        "standardised",
    }
    assert here == credits


def test_its_numbers():
    """What the page's numbers are, from the formulas: Dr. GRPO's advantages and DAPO's pull."""
    assert advantages(build("credit", {"name": "grpo", "normalise": False})) == [0.75, -0.25, -0.25, -0.25]
    dapo = build("objective", {"name": "clip", "clip_high": 0.28})
    assert [round(x, 9) for x in pull(dapo, 1.0)] == [0.5, 0.9, 1.0, 1.1, 0.0]
    assert [round(x, 9) for x in pull(dapo, -1.0)] == [0.0, -0.9, -1.0, -1.1, -2.0]
