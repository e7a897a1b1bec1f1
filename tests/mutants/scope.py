"""What of the code is a paper's: its own file, and the parts that no other paper's file imports or names; its tests."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay import catalogue, registry

ROOT = Path(__file__).parents[2]
PARTS = (
    "audit",
    "credit",
    "curriculum",
    "evaluate",
    "inference",
    "objectives",
    "rewards",
    "rollout",
    "select",
    "signals",
    "statistics",
    "verify",
)
"""Packages whose modules can be a part that a paper brings."""
GENERAL = frozenset(
    {
        "base",
        "answers",
        "asking",
        "episodes",
        "meter",
        "templates",
        "intervals",
        "text",
        "lines",
        "aggregate",
        "pass_at_k",
    }
)
"""Modules there that serve all, whoever imports them first."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Modules to put faults into, and the tests to run, as pytest names them from the root."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


@functools.cache
def scopes() -> dict[str, Scope]:
    """Return the scope of every row that is implemented, by its id."""
    return {row.id: scope(row) for row in catalogue.rows() if row.factory is not None}


def scope(row: catalogue.PaperRow) -> Scope:
    """Return a row's scope.

    Its tests are the files that import one of its modules, its own first, and those of its essentials.
    """
    modules = modules_of(row)
    own = modules[0]
    tests = [path for path, names in tested().items() if names & set(modules)]
    tests += [test.partition("::")[0] for _, test in row.essentials]
    file = f"tests/{'/'.join(own.split('.')[1:-1])}/test_{own.rpartition('.')[2]}.py"
    return Scope(modules, tuple(dict.fromkeys([file, *tests])))


def modules_of(row: catalogue.PaperRow) -> tuple[str, ...]:
    """Return a row's own module, and then those that no other row's uses."""
    assert row.factory is not None
    own = row.factory.__module__
    return own, *sorted(module for module, users in imported().items() if users == {own})


@functools.cache
def tested() -> Mapping[str, set[str]]:
    """Return the test files, each with the modules of assay that it imports."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {str(file.relative_to(ROOT)): imports(file) for file in files}


def source(module: str) -> Path:
    return ROOT / Path(*module.split(".")).with_suffix(".py")


@functools.cache
def imported() -> Mapping[str, set[str]]:
    """Return the modules of parts that papers import or name, each with the papers' modules that do."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in catalogue.rows():
        if row.factory is None:
            continue
        own = row.factory.__module__
        for name in imports(source(own)) | named(source(own), row.arxiv):
            if name.split(".")[1] in PARTS and name.rpartition(".")[2] not in GENERAL:
                found[name].add(own)
    return found


def named(file: Path, arxiv: str | None) -> set[str]:
    """Return the modules of the parts that a file names by a string, as a method names its rollout, and that say they
    are from the paper."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    parts = [registry.find(seam, word) for seam in registry.PACKAGES for word in words & set(registry.names(seam))]
    modules = {made.__module__ for made in parts if source(made.__module__).is_file()}
    return {m for m in modules if arxiv and arxiv in source(m).read_text(encoding="utf-8")}


def imports(file: Path) -> set[str]:
    """Return the modules of assay that a file imports, within functions too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("assay."):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if source(name).is_file()}
