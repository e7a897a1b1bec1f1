"""Write what the site is made of into a folder: the pages of ``docs/``, those at the top, and generated references.

Run as ``python docs/site/build.py FOLDER``; ``make docs-site`` does, and then builds the site of it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from assay import __all__ as names
from assay import cli
from assay.registry import PACKAGES
from assay.tables.parts import PartRow, part_rows
from assay.tables.settings import inline, keys

ROOT = Path(__file__).parents[2]
TOP = {"README.md": "index.md", "CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}
TOP |= {"SECURITY.md": "security.md"}


def build(folder: Path) -> None:
    """Write every page; the folder is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("site"))
    for source, page in TOP.items():
        (folder / page).write_text(_moved((ROOT / source).read_text(encoding="utf-8")), encoding="utf-8")
    for page in folder.glob("*.md"):
        page.write_text(_spaced(page.read_text(encoding="utf-8")), encoding="utf-8")
    reference = folder / "reference"
    reference.mkdir()
    for name, page in {"configuration": configuration, "parts": parts, "commands": commands, "python": python}.items():
        (reference / f"{name}.md").write_text("\n".join(page()) + "\n", encoding="utf-8")


def _moved(text: str) -> str:
    """Return a page of the top folder with links that hold where it goes."""
    for source, page in TOP.items():
        text = text.replace(f"]({source})", f"]({page})")
    return text.replace("](docs/", "](")


def _spaced(text: str) -> str:
    """Return a page with an empty line before each list, without which Python-Markdown takes it for text."""
    out: list[str] = []
    fenced = False
    for line in text.split("\n"):
        item = re.match(r"(?:[-*]|\d+\.) ", line)
        if item and not fenced and out and out[-1].strip() and not re.match(r"\s*(?:[-*]|\d+\.) |  ", out[-1]):
            out.append("")
        fenced ^= line.startswith("```")
        out.append(line)
    return "\n".join(out)


def configuration() -> Iterator[str]:
    yield "# Every key of a recipe\n"
    yield "`assay config` prints this; `assay init` writes a recipe that has it all.\n"
    section = None
    for key in keys():
        table, _, name = key.key.rpartition(".")
        if table != section:
            section = table
            yield from (f"\n## {table or 'at the top'}\n", "| key | default | type | meaning |", "|---|---|---|---|")
        default = "" if key.default is None else f"`{_cell(inline(key.default))}`"
        yield f"| `{name}` | {default} | {_cell(key.type)} | {_cell(key.about)} |"


def parts() -> Iterator[str]:
    yield "# Every part\n"
    yield "`assay parts SEAM` prints them. What each seam is asked, and a part of your own: [seams](../seams.md).\n"
    for seam in PACKAGES:
        yield f"\n## {seam}\n"
        for row in part_rows(seam):
            yield from _part(row)


def _part(row: PartRow) -> Iterator[str]:
    yield f"\n### {row.seam} `{row.name}`\n"
    yield f"{_text(row.about)} (`{row.module}`)\n"
    if row.options:
        yield from ("| option | type | default | meaning |", "|---|---|---|---|")
    for option in row.options:
        default = "required" if option.required else f"`{_cell(option.default)}`" if option.default else ""
        yield f"| `{option.name}` | {_code(option.type)} | {default} | {_cell(option.about)} |"


def commands() -> Iterator[str]:
    yield "# Every command\n"
    top, nested = cli.commands()
    every = {(name,): command for name, command in top.items()}
    every |= {(name, sub): command for name, (_, inner) in nested.items() for sub, command in inner.items()}
    for words in sorted(every):
        yield f"\n## assay {' '.join(words)}\n\n```text\n{helped(words)}\n```"


def helped(words: tuple[str, ...]) -> str:
    """Return what a command's help says, 100 columns wide, without colours."""
    said = io.StringIO()
    before = dict(os.environ)
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    try:
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            cli.main([*words, "--help"])
    finally:
        os.environ.clear()
        os.environ |= before
    return re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue()).rstrip()


def python() -> Iterator[str]:
    yield "# Python\n"
    yield "What `import assay` has; [promised](../contributing.md#what-a-version-promises) by versions.\n"
    package = importlib.import_module("assay")
    for name in sorted(names, key=str.lower):
        if not name.startswith("_"):
            yield from _object(name, getattr(package, name))
    yield from _object("evaluate", importlib.import_module("assay.api").evaluate, "from assay.api import ")


def _object(name: str, made: Callable[..., object], where: str = "assay.") -> Iterator[str]:
    yield f"\n## {where}{name}\n"
    with contextlib.suppress(ValueError, TypeError):
        yield f"```python\n{name}{_signature(made)}\n```\n"
    yield f"```text\n{inspect.getdoc(made) or ''}\n```"


def _signature(made: Callable[..., object]) -> str:
    text = str(inspect.signature(made))
    return text if len(text) < 90 else text.replace("(", "(\n    ", 1).replace(", ", ",\n    ")


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _text(text: str) -> str:
    """Return a docstring's text in Markdown: its roles as code, and nothing of it as a tag or a link."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", " ".join(text.split())).replace("``", "`")
    out = [part if i % 2 else _plain(part) for i, part in enumerate(text.split("`"))]
    return "`".join(out)


def _plain(text: str) -> str:
    return re.sub(r"([\[\]*_])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
