"""The site of the documentation: what its references say; built without warnings, it asks nothing of other hosts."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_build", ROOT / "docs" / "site" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_text_of_docstrings_becomes_markdown(made: ModuleType) -> None:
    assert made._text("see :func:`~a.b`, ``x_y`` and a_b <c> [d]") == r"see `a.b`, `x_y` and a\_b &lt;c> \[d\]"
    assert made._cell("a | b") == r"a \| b" and made._code("int | None") == r"`int \| None`"
    assert made._spaced("so:\n- a\n- b\n  c\n- d") == "so:\n\n- a\n- b\n  c\n- d"
    assert made._spaced("```\nx\n- a\n```") == "```\nx\n- a\n```"
    assert made._moved("[x](docs/code.md) [y](SECURITY.md)") == "[x](code.md) [y](security.md)"


def test_references_have_every_key_and_command(made: ModuleType) -> None:
    text = "\n".join(made.configuration())
    assert '| `lr` | `"auto"` | number, > 0 or "auto" |' in text and "## train\n" in text
    assert "usage: assay papers show" in made.helped(("papers", "show"))
    assert "\x1b" not in made.helped(("train",))


def test_every_page_is_in_the_sites_contents() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "docs" / "site" / "mkdocs.yml").read_text()))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= listed


@pytest.mark.slow
def test_the_site_is_built_without_warnings_and_asks_nothing_of_others(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs assay[docs]")
    pytest.importorskip("material", reason="needs assay[docs]")
    config = (ROOT / "docs" / "site" / "mkdocs.yml").read_text().replace("../../build/", f"{tmp_path}/")
    (tmp_path / "mkdocs.yml").write_text(config)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    for words in (
        [str(ROOT / "docs" / "site" / "build.py"), str(tmp_path / "docs")],
        ["-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(tmp_path / "mkdocs.yml")],
    ):
        done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr[-2000:]
    outside = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^\"'\s>]*")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    # Addresses of the site itself, of which there are none, would be the only ones allowed.
    assert [(p.name, hit) for p in pages for hit in outside.findall(p.read_text())] == []
    # The theme fetches mermaid where a page has a diagram, and a repository's stars where one is named.
    assert not [p.name for p in pages if 'class="mermaid"' in p.read_text() or "md-source" in p.read_text()]
    commands = (tmp_path / "site" / "reference" / "commands.html").read_text()
    assert "assay train" in commands and "assay papers show" in commands
