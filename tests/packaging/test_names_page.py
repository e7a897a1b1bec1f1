"""What docs/names.md says a recipe has to say makes a method, and the strategies and papers that it names are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from assay.catalogue import find
from assay.errors import UsageError
from assay.inference.named import read_spec
from assay.method import make_method
from assay.method.standard import standard
from assay.registry import find as find_part
from assay.registry import names

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "names.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!name \||here)(?!-)", line)]
METHODS = [text for row in ROWS for text in re.findall(r"`([^`]* = [^`]*)`", row)]
STRATEGIES = [
    text for row in PAGE.partition("## At test time")[2].splitlines() for text in re.findall(r"`([^`]+)`", row)
]


@pytest.mark.parametrize("text", METHODS)
def test_a_line_makes_a_method(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what it reads from a hub; keys are parted by commas as in a table in braces."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    table = tomllib.loads(f"method = {{{text}}}")["method"]
    if "SOME/" in text:
        with pytest.raises(UsageError, match="SOME/"):
            make_method(table.pop("name", "grpo"), **table)
        return
    make_method(table.pop("name", "grpo"), **table)


def test_names_beside_a_line_are_there() -> None:
    every = {name for seam in ("objective", "reward") for name in names(seam)} | set(standard())
    listed = [name.strip() for row in ROWS for part in re.findall(r"`: ([^|;]*)", row) for name in part.split(",")]
    for name in listed:
        if paper := re.match(r"S\d{3}", name):
            assert find(paper[0]).state != "absent"
        elif re.fullmatch(r"[a-z_+-]+", name):
            assert name in every, name
    assert len(listed) > 30


def test_strategies_are_there() -> None:
    """What a strategy is made of here, an engine and a head, is there only when it answers."""
    for text in STRATEGIES[1:]:
        spec = read_spec(text)
        find_part("inference", spec["name"])
        if "scorer" in spec:
            find_part("scorer", spec["scorer"])
    assert len(STRATEGIES) > 10


def test_links_lead_somewhere() -> None:
    assert [link for link in re.findall(r"\]\(([\w-]+\.md)\)", PAGE) if not (DOCS / link).is_file()] == []
