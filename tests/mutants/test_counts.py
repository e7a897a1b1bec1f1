"""Whether a row that calls itself exact does so on a count of the code that is there."""

from __future__ import annotations

import pytest

from assay import catalogue
from mutants.__main__ import counted
from mutants.scope import scopes


@pytest.mark.slow
def test_counts_of_exact_rows_are_of_the_code_that_is_there() -> None:
    """Slow though it is quick: parts change daily, and a release is the time at which all have been counted anew."""
    exact = [row.id for row in catalogue.rows() if row.state == "exact"]
    stale = [key for key in exact if not counted(key, scopes()[key])]
    assert not stale, f"make mutants ROWS='{' '.join(stale)}'"
