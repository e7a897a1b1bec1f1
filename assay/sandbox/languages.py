"""The languages programs may be written in: how a source becomes something that runs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from assay.errors import UsageError, nearest


@dataclass(frozen=True, slots=True)
class Language:
    """A language other than Python.

    Attributes:
        file: name its source gets.
        run: command that runs a program.
        compile: command that makes ``program`` of ``file``, for the languages that have one.
        reserves: whether its runtime reserves address space it does not use.
    """

    file: str
    run: tuple[str, ...]
    compile: tuple[str, ...] = ()
    reserves: bool = False

    @property
    def tool(self) -> str:
        return (self.compile or self.run)[0]


LANGUAGES: dict[str, Language | None] = {
    "python": None,
    "c": Language("main.c", ("./program",), ("gcc", "-O2", "-std=gnu17", "-o", "program", "main.c", "-lm")),
    "cpp": Language("main.cpp", ("./program",), ("g++", "-O2", "-std=gnu++20", "-o", "program", "main.cpp")),
    "javascript": Language("main.js", ("node", "--max-old-space-size={megabytes}", "main.js"), reserves=True),
    "bash": Language("main.sh", ("bash", "main.sh")),
}


def language(name: str) -> Language | None:
    """Return the language ``name``, ``None`` for Python; raise UsageError if it is unknown or its tool missing."""
    if name not in LANGUAGES:
        raise UsageError(f"no language is called {name!r}{nearest(name, LANGUAGES)}")
    found = LANGUAGES[name]
    if found is not None and shutil.which(found.tool, path="/usr/bin:/bin") is None:
        raise UsageError(f"programs in {name} need {found.tool} in /usr/bin, which this machine does not have")
    return found
