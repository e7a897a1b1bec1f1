"""A package with a bug and misspelt names, and a checker that tells of them and of what each turn has mended."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.environments.base import Action, EnvironmentFailure, Step
from assay.environments.repository.environment import Repository, RepositoryTasks
from assay.environments.tools import ToolError, call, tool
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.tasks.seeded import generator
from assay.types import Task
from assay.verify.diagnostics.bundle import Weights, bundle, process_reward
from assay.verify.diagnostics.check import Checker, Diagnostic, check, hidden, installed
from assay.verify.diagnostics.places import confidence, resolve

SHOWN = 30
"""Findings, or places, that a tool shows."""


@dataclass(frozen=True, slots=True)
class DiagnosedTasks(RepositoryTasks):
    """As those of ``repository``; names are misspelt beside."""

    def __getitem__(self, index: int) -> Task:
        task = RepositoryTasks.__getitem__(self, index)
        told = f"{task.question} Some names are misspelt, too: the tool check tells of them."
        return replace(task, id=f"diagnosed/{task.id.partition('/')[2]}", prompt=told)


@part("environment", "diagnosed")
class Diagnosed(Repository):
    """As ``repository``, with misspelt names, a checker, and a reward of each turn for what the checker finds.

        r_t = errors (D_{t-1} - D_t) + safe S_t - unsure (1 - a_t)

    D counts the checker's errors, comments that hide one, and definitions that are gone (see
    :mod:`assay.verify.diagnostics.check`): nothing is won by silence. S is 1 if no call of the turn was refused:
    edits stay within the folder, and apply as a whole or not at all. a is how sure the places are that ``locate`` was
    asked for, 1 where it was not. The first terms add up to errors (D_0 - D_T). ``Step.info`` has the turn's record
    without the files, :attr:`trace` all of them: the same rewards follow from it again, bit for bit.

    Args:
        modules, hidden, shown, calls, seconds, partial, seed: as for ``repository``.
        checker: ``pyflakes``, ``mypy``, or ``pylsp``, a language server.
        typos: names that are misspelt, at most.
        errors, safe, unsure: weights, >= 0.

    Raises:
        UsageError: an option out of range, no such checker here, or a machine that cannot run programs in isolation.
    """

    needs: tuple[Checker, ...] = ()
    """What has to be installed beside the checker."""

    def __init__(
        self,
        modules: int = 3,
        hidden: int = 8,
        shown: int = 2,
        calls: int = 20,
        seconds: float = 5.0,
        partial: bool = False,
        checker: Checker = "pyflakes",
        typos: int = 3,
        errors: float = 0.5,
        safe: float = 0.4,
        unsure: float = 0.1,
        seed: int = 0,
    ):
        super().__init__(modules, hidden, shown, calls, seconds, partial, seed)
        if not 0 <= typos <= 20 or not all(0 <= x < math.inf for x in (errors, safe, unsure)):
            raise UsageError("environment 'diagnosed': typos must be 0 to 20, and errors, safe and unsure at least 0")
        for one in (checker, *self.needs):
            installed(one)
        self.made = DiagnosedTasks(seed, modules, hidden, shown)
        self.checker, self.typos, self.weights = checker, typos, Weights(errors, safe, unsure)

    def begin(self, task: Task, seed: int) -> str:
        opened = super().begin(task, seed)
        rng = generator(self.made.seed, task.meta.get("index", 0), 5)
        for _ in range(self.typos):
            names = [name for name in self.space.files if name.endswith(".py") and not name.startswith("tests/")]
            path = str(rng.choice(names))
            self.space.write(path, misspelt(self._text(path), rng))
        self.first = self._sources()
        self.sure, self.trace = 1.0, list[dict[str, Any]]()
        self._counted: tuple[dict[str, str], list[Diagnostic]] | None = None
        self.errors = self._errors()
        return opened

    def _sources(self) -> dict[str, str]:
        return {name: data.decode("utf-8", "replace") for name, data in self.space.files.items()}

    def findings(self) -> list[Diagnostic]:
        """Return what is found in the files as they are."""
        files = self._sources()
        if self._counted is None or self._counted[0] != files:
            try:
                self._counted = files, [*check(files, self.checker), *hidden(files, self.first)]
            except RunError as error:
                raise EnvironmentFailure(str(error)) from None
        return self._counted[1]

    def _errors(self) -> int:
        return sum(one.severity == "error" for one in self.findings())

    @tool
    def check(self, path: str = "") -> str:
        "Run the checker; shows what it finds, of one file or of all."
        self._spend()
        if path:
            self._text(path)
        found = [one for one in self.findings() if path in ("", one.path)]
        lines = [f"{one.path}:{one.line}:{one.column}: {one.severity}: {one.message}" for one in found[:SHOWN]]
        return "\n".join([*lines, *([f"({len(found) - SHOWN} more)"] if len(found) > SHOWN else [])]) or "nothing found"

    @tool
    def locate(self, selector: str) -> str:
        "Find a place: a/b.py@L3:C1, py://a.b#Class.method:body, or ast://a/b.py#function/if[0]."
        self._spend()
        found = resolve(selector, self._sources())
        self.sure = min(self.sure, confidence(found))
        if not found:
            raise ToolError(f"{selector[:100]!r} names no place")
        lines = [
            f"{p.path}@L{p.line}:C{p.column}-L{p.end_line}:C{p.end_column} ({one.score:.2f})"
            for one in found[:SHOWN]
            for p in [one.place]
        ]
        return "\n".join(lines)

    def step(self, action: Action) -> Step:
        if not self._under_way:
            return super().step(action)  # which refuses
        self.sure, before, files = 1.0, self.errors, self.space.digests()
        step = super().step(action)
        self.errors = self._errors()
        facts = {"before": before, "after": self.errors, "safe": step.valid, "sure": self.sure}
        reward = process_reward(before, self.errors, step.valid, self.sure, self.weights)
        now = self.space.digests()
        edits = [
            {"path": name, "before": files.get(name), "after": now.get(name)}
            for name in {*files, *now}
            if files.get(name) != now.get(name)
        ]
        request = {"calls": [{"name": c.name, "arguments": c.arguments} for c in action.calls]}
        self.trace.append(bundle(request, (), self.findings(), edits, {**facts, "r": reward}, self.checker))
        info = {**step.info, **facts, "safe": float(step.valid)}
        return replace(step, reward=reward, info=info)

    def gold(self) -> Sequence[Action]:
        """Return the files as they should be, and the submission."""
        if self.request is not None:
            return super().gold()
        right = {**self.package.files, self.package.path: self.package.whole}
        now = self._sources()
        return [
            *(call("write", path=name, content=text) for name, text in right.items() if now.get(name) != text),
            call("submit"),
        ]

    def restore(self, snapshot: bytes) -> None:
        super().restore(snapshot)
        self.errors = self._errors()


def misspelt(source: str, rng: np.random.Generator) -> str:
    """Return the source with one use of a parameter misspelt; the same where there is none."""
    uses = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            known = {one.arg for one in function.args.args}
            inside = (one for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
            uses += [one for one in inside if one.id in known]
    if not uses:
        return source
    name = uses[int(rng.integers(len(uses)))]
    lines = source.splitlines(keepends=True)
    line = lines[name.lineno - 1].encode()
    lines[name.lineno - 1] = (line[: name.end_col_offset] + b"_" + line[name.end_col_offset :]).decode()
    return "".join(lines)
