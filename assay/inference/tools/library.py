"""The tools there are, every call they have answered, and how few new ones it takes by now."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assay.environments.calls import misfit
from assay.errors import UsageError
from assay.inference.tools.code import BadTool, MadeTool, Ran, run
from assay.records.files import write_text

Merge = Callable[[Sequence[MadeTool]], MadeTool | None]
"""Makes one tool of several that do the same; ``None`` where it cannot."""
Group = Callable[[Sequence[MadeTool]], Mapping[str, Sequence[str]] | None]
"""Tells which tools do the same, each group by the name that one for all is to have; ``None`` where it cannot tell."""


@dataclass(frozen=True, slots=True)
class Use:
    """A call that ran: the tool, its arguments and what came out."""

    tool: str
    arguments: Mapping[str, Any]
    value: Any


@dataclass(slots=True)
class Work:
    """What one task has written, and the calls it has made: those that ran as ``uses``, all as ``called``."""

    tools: list[MadeTool] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    called: int = 0


@dataclass(slots=True)
class Library:
    """A library that grows while tasks are answered.

    Attributes:
        tools: by name.
        uses: calls that ran, without repetition, by the names that tools have now. No merger may make one of them fail.
        made, called: tools written and calls made so far.
    """

    tools: dict[str, MadeTool] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    made: int = 0
    called: int = 0

    @property
    def egl(self) -> float:
        """Evolutionary generality loss: tools written for each call made, so far; 0 before the first call.

        It falls exactly where the next tasks need fewer new tools for each call than those before.
        """
        return self.made / self.called if self.called else 0.0

    def absorb(self, work: Iterable[Work], merge: Merge, tries: int = 3, group: Group | None = None) -> None:
        """Take in what the tasks of a batch have written and called, and merge what does the same.

        ``group`` is asked which tools do the same once there are new ones, and nothing is merged where there are none.
        If it cannot tell, or nobody can be asked, tools do whose names differ in a number at the end, or in the order
        of their words. They become one tool: where their names are so alike, the shortest of their sources that answers
        all of their recorded calls as they were answered; else what ``merge`` makes of them if that does, ``tries``
        times; else all of them are kept. So absorbing again changes nothing, and every recorded call still runs.

        Raises:
            RunError: the sandbox failed.
        """
        before = set(self.tools)
        for one in work:
            names = {}
            for tool in one.tools:
                names[tool.name] = name = free(tool.name, self.tools, tool.source)
                self.tools[name] = MadeTool(name, tool.source)
            self._record(Use(names.get(use.tool, use.tool), use.arguments, use.value) for use in one.uses)
            self.made += sum(tool.name not in before for tool in one.tools)
            self.called += one.called
        told = None
        if group is not None:
            # What was here before has been told apart.
            told = {} if len(self.tools) < 2 or before.issuperset(self.tools) else group([*self.tools.values()])
        if told is None:
            told = {min(names, key=lambda n: (len(n), n)): names for names in clusters(self.tools).values()}
        for named, members in told.items():
            if len(members) > 1 and (kept := self._merged(members, merge, tries)) is not None:
                for name in members:
                    del self.tools[name]
                kept = MadeTool(free(named, self.tools, kept.source), kept.source)
                self.tools[kept.name] = kept
                uses, self.uses = self.uses, []
                self._record(Use(kept.name if u.tool in members else u.tool, u.arguments, u.value) for u in uses)

    def _record(self, uses: Iterable[Use]) -> None:
        for use in uses:
            if use not in self.uses:
                self.uses.append(use)

    def _merged(self, members: Sequence[str], merge: Merge, tries: int) -> MadeTool | None:
        alike = len(clusters(members)) == 1
        uses = [use for use in self.uses if use.tool in members]
        tools = [self.tools[n] for n in members]
        for tool in sorted(tools, key=lambda t: (len(t.source), t.name)) if alike else ():
            if answers(tool, uses):
                return tool
        for _ in range(tries):
            made = merge(tools)
            if made is not None and answers(made, uses):
                return made
        return None

    def save(self, path: Path) -> None:
        """Write the library as JSON."""
        write_text(path, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Library:
        """Read what :meth:`save` wrote.

        Raises:
            UsageError: it is no such file.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            tools = {name: MadeTool(**tool) for name, tool in found.pop("tools").items()}
            return cls(tools, [Use(**use) for use in found.pop("uses")], **found)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(f"{path} holds no library of tools: {error}") from None


def answers(tool: MadeTool, uses: Sequence[Use]) -> bool:
    """Whether a tool takes the arguments of all calls and answers each as it was answered."""
    try:
        schema = tool.tool.parameters
    except BadTool:
        return False
    if any(misfit(dict(use.arguments), schema) for use in uses):
        return False
    return [(r.ok, r.value) for r in run(tool.source, [use.arguments for use in uses])] == [
        (True, u.value) for u in uses
    ]


def clusters(names: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """Return names that are alike but for a number at the end or the order of their words, by those words, sorted."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        words = re.sub(r"(?<=[a-z])(?:_?\d+)+$", "", name.lower()).split("_")
        found.setdefault(tuple(sorted(filter(None, words))), []).append(name)
    return found


def free(name: str, tools: Mapping[str, MadeTool], source: str) -> str:
    """Return the name, or with a number where another tool has it."""
    taken, n = name, 2
    while taken in tools and tools[taken].source != source:
        taken, n = f"{name}_{n}", n + 1
    return taken


def called(tool: MadeTool, arguments: Mapping[str, Any]) -> Ran:
    """Make a call whose arguments fit; one whose do not, did not run.

    Raises:
        RunError: the sandbox failed.
    """
    if reason := misfit(dict(arguments), tool.tool.parameters):
        return Ran(False, error=reason)
    return run(tool.source, [arguments])[0]
