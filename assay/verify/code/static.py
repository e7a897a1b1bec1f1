"""What can be said of a program without running it: process rewards that are cheap and dense."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import UsageError, nearest
from assay.registry import part
from assay.sandbox import Limits, Outcome, Program, Sandbox, sandbox
from assay.sandbox.confine import interpreter, visible
from assay.sandbox.languages import LANGUAGES, language
from assay.types import Fault, Task, Verdict
from assay.verify.code.response import Blocks, find_program
from assay.verify.code.results import Abstain, ending

MIB = 1 << 20
LIMITS = Limits(cpu_seconds=10, wall_seconds=60, memory=1024 * MIB, stack=256 * MIB)
TOOL_LIMITS = Limits(cpu_seconds=60, wall_seconds=180, memory=3072 * MIB, output=4 * MIB, processes=64)
PYTHON_ONLY = ("pyflakes", "ruff", "types", "complexity", "length")
CHECKS = ("parses", "compiles", *PYTHON_ONLY)
SYNTAX: dict[str, tuple[str, ...]] = {
    "c": ("gcc", "-std=gnu17", "-fsyntax-only", "main.c"),
    "cpp": ("g++", "-std=gnu++20", "-fsyntax-only", "main.cpp"),
    "javascript": ("node", "--check", "main.js"),
    "bash": ("bash", "-n", "main.sh"),
}


_EXCUSES = re.compile(r"#[ \t]*(?:type:[ \t]*ignore|mypy:)[^\n]*")


@part("verify", "static")
@dataclass(frozen=True, slots=True)
class Static:
    """Scores the program in the response by static checks: the mean of the ``checks``, each in [0, 1], by weight.

    - ``parses``, ``compiles``: 1 or 0. Python's own parser and compiler; for other languages both are one check,
      ``gcc -fsyntax-only``, ``node --check``, ``bash -n``;
    - ``pyflakes``, ``ruff``, ``types`` (mypy): 1 / (1 + n) for n complaints;
    - ``complexity``: of the function with the highest cyclomatic complexity c (McCabe), min(1, ``most_complex`` / c);
    - ``length``: of the longest function with n lines, min(1, ``longest`` / n).

    Right iff the program parses and compiles and the score is at least ``threshold``. A program that does not parse
    scores 0 in everything. Checks that are for Python alone have no part in other languages' scores. The program is
    never run; the tools run in the sandbox.

    Args:
        language: of the program, where ``task.reference`` is no mapping with one.
        checks: which of the above; ``pyflakes``, ``ruff`` and ``types`` have to be installed.
        weights: by check, at least 0; 1 unless given.
        rules: ruff's rules, e.g. ``("E", "F", "B")``.
        strict: mypy's strict mode; without it functions without annotations are not checked.

    Raises:
        UsageError: when made, for an unknown check or language, a bad weight, or a tool that is not installed.
    """

    language: str = "python"
    checks: tuple[str, ...] = ("parses", "compiles", "complexity", "length")
    weights: Mapping[str, float] = field(default_factory=dict)
    threshold: float = 1.0
    most_complex: int = 10
    longest: int = 60
    rules: tuple[str, ...] = ("E", "F", "B")
    strict: bool = False
    blocks: Blocks = "last"

    def __post_init__(self) -> None:
        language(self.language)
        for name in (*self.checks, *self.weights):
            if name not in CHECKS:
                raise UsageError(f"verifier 'static' has no check {name!r}{nearest(name, CHECKS)}")
        for name, weight in self.weights.items():
            if not 0 <= weight < float("inf"):
                raise UsageError(f"verifier 'static': the weight of {name} is {weight}, it must be at least 0")
        if not any(self.weights.get(name, 1.0) > 0 for name in self.checks):
            raise UsageError("verifier 'static' needs a check with a weight above 0")
        if self.most_complex < 1 or self.longest < 1:
            raise UsageError("verifier 'static': most_complex and longest must be 1 or more")
        for name, module in (("pyflakes", "pyflakes"), ("types", "mypy")):
            if name in self.checks and importlib.util.find_spec(module) is None:
                raise UsageError(f"verifier 'static' with {name!r} needs {module}: pip install assay[code]")
        if "ruff" in self.checks and _ruff() is None:
            raise UsageError("verifier 'static' with 'ruff' needs ruff: pip install assay[code]")

    def ready(self) -> None:
        """Raise SandboxUnavailable where this machine cannot run programs in isolation."""
        sandbox().check()

    def __call__(self, task: Task, response: str) -> Verdict:
        given = task.reference if isinstance(task.reference, Mapping) else {}
        chosen = str(given.get("language", self.language)).lower()
        if chosen not in LANGUAGES:
            return Verdict.abstain(f"task {task.id}: no language is called {chosen!r}", "tests")
        found = find_program(response, chosen, self.blocks, str(given.get("entry_point", "")))
        wanted = [name for name in self.checks if chosen == "python" or name not in PYTHON_ONLY]
        if not wanted:
            return Verdict.abstain(f"no check of {', '.join(self.checks)} is for {chosen}")
        if found is None:
            return Verdict(0.0, False, dict.fromkeys(wanted, 0.0), f"no {chosen} program found")
        try:
            parts, said = self._python(found.source) if chosen == "python" else _other(chosen, found.source)
        except (Abstain, UsageError) as reason:
            fault: Fault = reason.fault if isinstance(reason, Abstain) else "infrastructure"
            return Verdict.abstain(str(reason), fault)
        scores: dict[str, float | None] = {name: parts[name] for name in wanted}
        total = sum(self.weights.get(name, 1.0) for name in wanted)
        score = sum(self.weights.get(name, 1.0) * parts[name] for name in wanted) / total if total else 0.0
        sound = parts["parses"] == parts["compiles"] == 1.0
        return Verdict(score, sound and score >= self.threshold - 1e-12, scores, "; ".join(said)[:500])

    def _python(self, source: str) -> tuple[dict[str, float], list[str]]:
        box = sandbox()
        flakes = "pyflakes" in self.checks
        found = _analyse(box, source, flakes)
        if found["parses"]:
            return dict.fromkeys(CHECKS, 0.0), [f"it does not parse: {found['parses']}"]
        said = [f"it does not compile: {found['compiles']}"] if found["compiles"] else []
        complexity, name = max((c, name) for name, c, _ in found["functions"])
        length, long = max((lines, name) for name, _, lines in found["functions"])
        parts = {"parses": 1.0, "compiles": float(not found["compiles"])}
        parts["complexity"] = min(1.0, self.most_complex / complexity)
        parts["length"] = min(1.0, self.longest / max(length, 1))
        if complexity > self.most_complex and "complexity" in self.checks:
            said.append(f"{name} has complexity {complexity}, more than {self.most_complex}")
        if length > self.longest and "length" in self.checks:
            said.append(f"{long} has {length} lines, more than {self.longest}")
        tools: dict[str, Callable[[], list[str] | None]] = {
            "pyflakes": lambda: list(map(str, found["flakes"])),
            "ruff": lambda: _tried(lambda text: _run_ruff(box, text, self.rules), source),
            "types": lambda: _tried(lambda text: _run_mypy(box, text, self.strict), source),
        }
        for check, complaints_of in tools.items():
            if check in self.checks:
                complaints = complaints_of()
                if complaints is None:
                    parts[check] = 0.0
                    said.append(f"{check}: the program brings the check down")
                    continue
                parts[check] = 1 / (1 + len(complaints))
                said += [f"{check}: {complaints[0]}" + _more(complaints)] if complaints else []
        return parts, said


def _tried(tool: Callable[[str], list[str]], source: str) -> list[str] | None:
    """Return a tool's complaints about ``source``; ``None`` if it fails on that and not on an empty program."""
    try:
        return tool(source)
    except Abstain as failed:
        if failed.fault == "infrastructure":
            raise
        tool("pass\n")
        return None


def _more(complaints: list[str]) -> str:
    return f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""


@functools.cache
def _analysis() -> str:
    return (Path(__file__).parent / "inside" / "analysis.py").read_text()


def _analyse(box: Sandbox, source: str, flakes: bool) -> dict[str, Any]:
    program = Program(_analysis(), packages=("pyflakes",) if flakes else ())
    try:
        done = box.call(program, "analyse", [((source, flakes), {})], LIMITS)
    except ValueError as error:
        return {"parses": f"it is no text: {error}"}
    if done.outcome.failed_here:
        raise Abstain(f"the sandbox failed: {done.outcome.reason}", "infrastructure")
    if not done.calls:
        # Only the parser can have been brought down, and only by the program.
        return {"parses": f"the parser gave up: {ending(done.outcome)}"}
    if not done.calls[0].returned:
        return {"parses": f"the parser gave up: {done.calls[0].exception}"}
    value: dict[str, Any] = done.calls[0].value
    return value


def _other(chosen: str, source: str) -> tuple[dict[str, float], list[str]]:
    line = SYNTAX[chosen]
    outcome = sandbox().command(line, {line[-1]: source}, TOOL_LIMITS)
    if outcome.failed_here:
        raise Abstain(f"the sandbox failed: {outcome.reason}", "infrastructure")
    good = outcome.status == "ok"
    lines = outcome.stderr.decode("utf-8", "replace").splitlines()
    wrong = next((one for one in lines if "rror" in one), lines[0] if lines else outcome.reason)
    return dict.fromkeys(("parses", "compiles"), float(good)), [] if good else [f"it does not compile: {wrong[:250]}"]


@functools.cache
def _ruff() -> str | None:
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.exists() else shutil.which("ruff")


def _run_ruff(box: Sandbox, source: str, rules: tuple[str, ...]) -> list[str]:
    tool = _ruff() or "ruff"
    line = [tool, "check", "--isolated", "--no-cache", "--ignore-noqa", "--output-format=json"]
    line += [f"--select={','.join(rules)}", "main.py"]
    outcome = _tool(box.command(line, {"main.py": source}, TOOL_LIMITS, readable=[str(Path(tool).resolve().parent)]))
    try:
        return [f"line {c['location']['row']}: {c['code']} {c['message']}"[:200] for c in json.loads(outcome.stdout)]
    except (ValueError, KeyError, TypeError):
        raise Abstain(f"ruff failed: {outcome.stderr[-200:].decode('utf-8', 'replace').strip()}") from None


def _run_mypy(box: Sandbox, source: str, strict: bool) -> list[str]:
    # A program may not excuse itself from the check.
    source = _EXCUSES.sub("#", source)
    packages = sysconfig.get_path("purelib")
    line = [interpreter(), "-m", "mypy", "--no-incremental", "--cache-dir=/dev/null", "--no-error-summary"]
    line += [
        "--config-file=",
        "--no-site-packages",
        "--ignore-missing-imports",
        *(["--strict"] if strict else []),
        "main.py",
    ]
    outcome = box.command(
        line, {"main.py": source}, TOOL_LIMITS, readable=[packages], environment={"PYTHONPATH": visible(packages)}
    )
    _tool(outcome)
    # What it cannot read at all is a complaint if it is about the program, and a failure of mypy's if not.
    if outcome.exit_code != 0 and not outcome.stdout.startswith(b"main.py:"):
        raise Abstain(f"mypy failed: {(outcome.stderr or outcome.stdout)[-200:].decode('utf-8', 'replace').strip()}")
    lines = outcome.stdout.decode("utf-8", "replace").splitlines()
    return [
        f"line {one.removeprefix('main.py:')}"[:200]
        for one in lines
        if one.startswith("main.py:") and " error: " in one
    ]


def _tool(outcome: Outcome) -> Outcome:
    if outcome.failed_here or outcome.status not in ("ok", "error"):
        raise Abstain(f"a tool failed: {outcome.reason}", "infrastructure" if outcome.failed_here else "tests")
    return outcome
