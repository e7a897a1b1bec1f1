"""The page of seams is as ``make docs`` writes it, and its examples are those that are run."""

from __future__ import annotations

import re
from pathlib import Path

from assay.registry import PACKAGES
from assay.tables.seams import page
from assay.tables.starts import STARTS, started

PAGE = Path(__file__).parents[2] / "docs/seams.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_seam_has_a_section_with_the_code_that_new_writes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == list(PACKAGES) == list(STARTS)
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [b.rstrip() for b in blocks] == [c.rstrip() for s in PACKAGES for c in started(s, f"my_{s}")]
