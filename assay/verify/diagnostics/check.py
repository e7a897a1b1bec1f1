"""What a checker finds in a folder of Python files, in the sandbox; what hides errors from it counts as one."""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from assay.errors import RunError, UsageError
from assay.sandbox import Limits, sandbox
from assay.sandbox.confine import interpreter, visible
from assay.sandbox.types import MIB
from assay.verify.diagnostics.server import served

Checker = Literal["pyflakes", "mypy", "pylsp"]
PACKAGES = {"pyflakes": ("pyflakes", "code"), "mypy": ("mypy", "code"), "pylsp": ("python-lsp-server", "lsp")}
LIMITS = Limits(cpu_seconds=60, wall_seconds=60, memory=1024 * MIB, processes=8)
WARNINGS = re.compile(r"imported but unused|never used|redefinition of|is missing placeholders|unable to detect")
SUPPRESSION = re.compile(
    r"#\s*(?:type:\s*ignore|noqa|pyright:\s*(?:ignore|basic)|mypy:\s*ignore|pylint:\s*disable)", re.I
)
_LINE = re.compile(r"(?P<path>[^:\n]+):(?P<line>\d+)(?::(?P<column>\d+))?:? (?P<text>.*)")


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One finding: lines and columns from 1; ``code`` is ``checker``, ``suppression`` or ``gone``."""

    path: str
    line: int
    column: int
    severity: Literal["error", "warning"]
    code: str
    message: str


@cache
def installed(checker: Checker) -> str:
    """Return the version of a checker.

    Raises:
        UsageError: it is not installed.
    """
    package, extra = PACKAGES.get(checker, (checker, "code"))
    try:
        return version(package)
    except PackageNotFoundError:
        raise UsageError(f"checker {checker!r} is not installed: pip install 'assay[{extra}]'") from None


def check(files: Mapping[str, str], checker: Checker = "pyflakes") -> list[Diagnostic]:
    """Return what a checker, or a language server (``pylsp``), finds in the Python files, in the order of their places.

    Raises:
        UsageError: the checker is not installed.
        RunError: the sandbox, or the checker itself, failed.
    """
    installed(checker)
    sources = {name: text for name, text in files.items() if name.endswith(".py")}
    if not sources:
        return []
    if checker == "pylsp":
        rows = served(sources).findings
        return [Diagnostic(p, i, c, "error" if error else "warning", checker, said) for p, i, c, error, said in rows]
    packages = sysconfig.get_path("purelib")
    line = [interpreter(), "-m", checker, *sorted(sources)]
    if checker == "mypy":
        line[3:3] = ["--no-incremental", "--cache-dir=/dev/null", "--no-error-summary", "--config-file="]
        line[3:3] = ["--no-site-packages", "--ignore-missing-imports", "--check-untyped-defs", "--show-column-numbers"]
    outcome = sandbox().command(
        line, sources, LIMITS, readable=[packages], environment={"PYTHONPATH": visible(packages)}
    )
    if outcome.failed_here or outcome.status not in ("ok", "error"):
        raise RunError(f"{checker} failed: {outcome.reason}")
    found = []
    text = (outcome.stdout + b"\n" + outcome.stderr).decode("utf-8", "replace")
    for one in map(_LINE.fullmatch, text.splitlines()):
        if one is None or one["path"] not in sources:
            continue
        said = one["text"]
        warns = bool(WARNINGS.search(said)) or said.startswith("note:")
        said = re.sub(r"^(?:error|note|warning): ", "", said)
        column = int(one["column"] or 1)
        found.append(Diagnostic(one["path"], int(one["line"]), column, "warning" if warns else "error", checker, said))
    if outcome.exit_code and not found:
        raise RunError(f"{checker} failed: {text.strip()[-200:]}")
    return sorted(found)


def hidden(files: Mapping[str, str], before: Mapping[str, str]) -> list[Diagnostic]:
    """Return what would lower the number of errors without mending one, each as an error.

    Comments that tell a checker to look away, more of a file than there were ``before``; and functions, classes and
    methods that are gone.
    """
    found = []
    for name in sorted({*files, *before}):
        now, then = files.get(name, ""), before.get(name, "")
        places = [(i, m.start() + 1) for i, text in enumerate(now.splitlines(), 1) for m in SUPPRESSION.finditer(text)]
        more = len(places) - len(SUPPRESSION.findall(then))
        found += [
            Diagnostic(name, i, c, "error", "suppression", "an error is hidden") for i, c in places[-more:] if more > 0
        ]
        if name.endswith(".py"):
            kept = definitions(now)
            lost = [one for one in definitions(then) or () if kept is not None and one not in kept]
            found += [Diagnostic(name, 1, 1, "error", "gone", f"{one} is gone") for one in lost]
    return found


def definitions(source: str) -> list[str] | None:
    """Return the functions, classes and methods of a source, as ``Class.method``; ``None`` if it is no program."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    out: list[str] = []
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        above, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                out.append(above + child.name)
                waiting.append((f"{above}{child.name}.", child))
    return sorted(out)
